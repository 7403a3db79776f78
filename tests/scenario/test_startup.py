"""Commands that only read wait for no library that only runs need."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("numba", "pandas", "scipy")
REHEARSED = ("numba",)
"""What `check` has no need of, though it draws every figure of a scenario from made-up results."""
PROGRAM = """
import io, json, sys
from contextlib import redirect_stdout
from hushnet.simulator.cli import main

for command in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as said:
        code = main(command)
    print(json.dumps([code, len(said.getvalue()), sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def imported(*commands: list[str]) -> list[tuple[int, int, set[str]]]:
    """Exit code, characters said, and top packages after each of several commands in one fresh process."""
    given = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    return [(code, said, set(packages)) for code, said, packages in map(json.loads, done.stdout.splitlines())]


SCENARIOS = ("quickstart", "privacy-frontier", "bellet2018-fig2a", "hu2019-fig1", "async-variants-columns")


def test_a_command_that_only_reads_imports_nothing_heavy():
    commands = [["list"], ["schema"], *(["check", name] for name in SCENARIOS)]
    for command, (code, said, packages) in zip(commands, imported(*commands), strict=True):
        assert code == 0, command
        assert said, command
        assert packages >= {"pydantic", "hushnet"}, command
        assert packages.isdisjoint(REHEARSED if command[0] == "check" else HEAVY), command


def test_a_scenario_that_names_a_compiled_law_is_checked_without_compiling(tmp_path):
    file = tmp_path / "gamma.yaml"
    file.write_text(
        "schema: 1\nscenario: gamma\nseeds: 1\ntask: {kind: mean_estimation, agents: 4}\ntopology: {kind: complete}\n"
        "clock: {kind: poisson}\navailability: {kind: on_off, online: 0.5, mean_down: 1}\n"
        "network: {latency: {kind: gamma, mean: 1.0, shape: 2.0}}\nprotocols: {a: {kind: local}}\nstop: {updates: 3}\n"
    )
    ((code, _, packages),) = imported(["check", str(file)])
    assert code == 0
    assert packages.isdisjoint(HEAVY)
