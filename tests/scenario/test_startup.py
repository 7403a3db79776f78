"""Commands that only read wait for no library that only runs need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("numba", "pandas", "scipy")
REHEARSED = ("numba",)
"""What `check` has no need of, though it draws every figure of a scenario from made-up results."""
PROGRAM = """
import io, json, sys
from contextlib import redirect_stdout
from hushnet.simulator.cli import main

with redirect_stdout(io.StringIO()) as said:
    code = main(sys.argv[1:])
print(json.dumps([code, len(said.getvalue()), sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def imported(*arguments: str) -> tuple[int, int, set[str]]:
    """Exit code, characters said, and top packages after a command."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True)
    code, said, packages = json.loads(done.stdout)
    return code, said, set(packages)


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["schema"],
        ["check", "quickstart"],
        ["check", "privacy-frontier"],
        ["check", "bellet2018-fig2a"],
        ["check", "hu2019-fig1"],
        ["check", "async-variants-columns"],
    ],
    ids=" ".join,
)
def test_a_command_that_only_reads_imports_nothing_heavy(command):
    code, said, packages = imported(*command)
    assert code == 0
    assert said
    assert packages >= {"pydantic", "hushnet"}
    assert packages.isdisjoint(REHEARSED if command[0] == "check" else HEAVY)


def test_a_scenario_that_names_a_compiled_law_is_checked_without_compiling(tmp_path):
    file = tmp_path / "gamma.yaml"
    file.write_text(
        "schema: 1\nscenario: gamma\nseeds: 1\ntask: {kind: mean_estimation, agents: 4}\ntopology: {kind: complete}\n"
        "clock: {kind: poisson}\navailability: {kind: on_off, online: 0.5, mean_down: 1}\n"
        "network: {latency: {kind: gamma, mean: 1.0, shape: 2.0}}\nprotocols: {a: {kind: local}}\nstop: {updates: 3}\n"
    )
    code, _, packages = imported("check", str(file))
    assert code == 0
    assert packages.isdisjoint(HEAVY)
