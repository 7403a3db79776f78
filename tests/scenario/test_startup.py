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
    packages = sorted({name.partition(".")[0] for name in sys.modules})
    from hushnet.agents.parameters import Parameters
    kinds = [Parameters]
    for kind in kinds:
        kinds += kind.__subclasses__()
    built = [kind.__name__ for kind in kinds if kind.__pydantic_complete__]
    print(json.dumps([code, len(said.getvalue()), packages, built]))
"""


def imported(*commands: list[str]) -> list[tuple[int, int, set[str], list[str]]]:
    """Exit code, characters said, top packages and models built after each of some commands in one fresh process."""
    given = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    found = map(json.loads, done.stdout.splitlines())
    return [(code, said, set(packages), models) for code, said, packages, models in found]


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
    for code, said, packages, _ in imported(["list"], ["schema"], ["check", "quickstart"]):
        assert code == 0
        assert said
        assert packages >= {"pydantic", "hushnet"}
        assert packages.isdisjoint(HEAVY)


def test_a_list_builds_no_model():
    ((_, _, _, models),) = imported(["list"])
    assert models == []


def test_a_scenario_is_checked_without_compiling(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHNET_CACHE_DIR", str(tmp_path / "code"))
    (tmp_path / "gamma.yaml").write_text(GAMMA)
    for code, said, *_ in imported(*(["check", name] for name in (*SCENARIOS, str(tmp_path / "gamma.yaml")))):
        assert code == 0
        assert said
    assert not list(tmp_path.rglob("*.nbi"))
