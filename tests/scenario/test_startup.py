"""Commands that only read wait for no library that only runs need."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("pandas", "matplotlib", "numba", "scipy")
"""What reading has no need of."""
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


SCENARIOS = ("quickstart", "bellet2018-fig2a", "async-variants-columns")
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


def test_a_command_that_only_reads_imports_nothing_heavy():
    for code, said, packages in imported(["list"], ["schema"], ["check", "quickstart"]):
        assert code == 0
        assert said
        assert packages >= {"pydantic", "hushnet"}
        assert packages.isdisjoint(HEAVY)


def test_a_scenario_is_checked_without_compiling(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHNET_CACHE_DIR", str(tmp_path / "code"))
    (tmp_path / "gamma.yaml").write_text(GAMMA)
    for code, said, _ in imported(*(["check", name] for name in (*SCENARIOS, str(tmp_path / "gamma.yaml")))):
        assert code == 0
        assert said
    assert not list(tmp_path.rglob("*.nbi"))
