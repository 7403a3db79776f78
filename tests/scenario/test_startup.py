"""Commands that only read wait for no library that only runs need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("pandas", "scipy")
"""What listing has no need of."""
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


@pytest.mark.parametrize("command", ["list", "schema"])
def test_a_command_that_only_reads_imports_nothing_heavy(command):
    code, said, packages = imported(command)
    assert code == 0
    assert said
    assert packages >= {"pydantic", "hushnet"}
    assert packages.isdisjoint(HEAVY)


@pytest.mark.parametrize("scenario", ["quickstart", "privacy-frontier", "hu2019-fig1", "gamma"])
def test_a_scenario_is_checked_without_compiling(scenario, tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHNET_CACHE_DIR", str(tmp_path / "code"))
    if scenario == "gamma":
        scenario = tmp_path / "gamma.yaml"
        scenario.write_text(GAMMA)
    code, said, _ = imported("check", str(scenario))
    assert (code, said > 0) == (0, True)
    assert not list(tmp_path.rglob("*.nbi"))


GAMMA = """
schema: 1
scenario: gamma
seeds: 1
task: {kind: mean_estimation, agents: 4}
topology: {kind: complete}
clock: {kind: poisson}
availability: {kind: on_off, online: 0.5, mean_down: 1}
network: {latency: {kind: gamma, mean: 1.0, shape: 2.0}}
protocols: {a: {kind: local}}
stop: {updates: 3}
"""
