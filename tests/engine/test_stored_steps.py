"""Compiled steps are stored: a sweep compiles once for all processes, and what is loaded is what was compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hushnet.agents.compilation import announcements
from hushnet.agents.compilation.code_store import CodeStore
from hushnet.agents.compilation.compile_cache import StoredCode
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.steps import building
from hushnet.simulator.contract.bench import protocol_parameters, small_setting

from .driving import drive, fast_world

PRIVACY = {"mechanism": "gaussian", "budget": {"epsilon": 1.0, "delta": 1e-3}, "updates": 3}
CLIPPED = {**PRIVACY, "sensitivity": "clip", "clip": 1.0}

PREPARE = """
import json, sys
from hushnet.simulator.contract import bench
point = json.loads(sys.argv[1])
bench.DIMENSION = point["p"]
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.protocols.steps import building
from hushnet.simulator.engine.selection import BatchedEngine
from hushnet.simulator.world.world import World
setting = bench.small_setting(agents=point["n"], seed=point["seed"], time=point["seed"])
parameters = CoordinateDescentParameters.model_validate({"kind": "coordinate_descent", **point["protocol"]})
driver = BatchedEngine().prepare(World(setting, CoordinateDescent, parameters))
(step,) = building._made.values()
print(json.dumps([step.compiled._cache.hits, step.compiled._cache.misses]))
author = step.compiled.py_func.__globals__["author_step"]
words = [value for value in author.py_func.__globals__.values() if hasattr(value, "overloads")]
assert len(words) == 3
print(json.dumps([len(one.part.overloads) for one in (author, *words)]))
"""

POINTS = [
    {"n": 6, "p": 3, "seed": 1, "protocol": {"mu": 0.1, "privacy": CLIPPED}},
    {"n": 11, "p": 5, "seed": 2, "protocol": {"mu": 0.7, "privacy": {**CLIPPED, "clip": 0.25}}},
    {
        "n": 6,
        "p": 2,
        "seed": 3,
        "protocol": {"mu": 0.1, "privacy": {**CLIPPED, "updates": 7, "budget": {"epsilon": 0.1, "delta": 1e-5}}},
    },
    {"n": 6, "p": 3, "seed": 1, "protocol": {"mu": 0.1, "privacy": {**CLIPPED, "mechanism": "laplace"}}},
]


def test_a_sweep_over_numbers_compiles_one_step_for_all_processes(tmp_path):
    """Under other hash seeds as well; another mechanism is another step."""
    found = []
    for seed, point in enumerate(POINTS):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "HUSHNET_CACHE_DIR": str(tmp_path / "code")}
        command = [sys.executable, "-c", PREPARE, json.dumps(point)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        looks, compiled_parts = map(json.loads, done.stdout.splitlines())
        found.append((*looks, all(compiled_parts), any(compiled_parts), "compiling the step" in done.stderr))
    compiled, loaded = (0, 1, True, True, True), (1, 0, False, False, False)
    assert found == [compiled, loaded, loaded, compiled]


@pytest.mark.parametrize("privacy", [None, CLIPPED])
def test_a_step_that_was_loaded_computes_what_a_compiled_one_does(privacy, monkeypatch):
    fields = {"mu": 0.3} if privacy is None else {"mu": 0.3, "privacy": privacy}

    def models():
        monkeypatch.setattr(building, "_made", {})
        world = fast_world(small_setting(time=20.0), CoordinateDescent, protocol_parameters(CoordinateDescent, fields))
        drive(world)
        (step,) = building._made.values()
        return step.compiled._cache, world.state.agent["model"].values.copy()

    models()
    stored, first = models()
    assert (stored.hits, stored.misses) == (1, 0)
    monkeypatch.setattr(CodeStore, "read", lambda *_: None)
    anew, second = models()
    assert (anew.hits, anew.misses) == (0, 1)
    assert np.abs(first).max() > 0
    np.testing.assert_array_equal(first, second)


def test_what_a_step_says_of_itself_is_about_its_protocol(monkeypatch, capsys):
    monkeypatch.setattr(building, "_made", {})
    monkeypatch.setattr(announcements, "_said", set())
    monkeypatch.setattr(StoredCode, "key", lambda *_: None)
    fast_world(small_setting(), CoordinateDescent, protocol_parameters(CoordinateDescent, {"mu": 0.3}))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("compiling the step of CoordinateDescent, once; ")


def test_compiling_is_said_once_however_many_steps_there_are_and_never_where_quiet_was_asked(monkeypatch, capsys):
    monkeypatch.setattr(announcements, "_said", set())
    with announcements.unannounced(quiet=True):
        announcements.say("the step of A", ", once")
    assert capsys.readouterr().err == ""
    with announcements.unannounced(quiet=False):
        for what in ("the step of A", "", "the step of B", "the step of A"):
            announcements.say(what, ", once")
    assert capsys.readouterr().err == "compiling the step of A, once\ncompiling the step of B, once\n"


def test_a_step_that_does_not_compile_is_tried_once(monkeypatch):
    class Sorting(CoordinateDescent):
        @staticmethod
        def step(me):
            me.message = me.model = sorted({"a": me.model})

    tried = []
    compile_it = building._compile
    monkeypatch.setattr(building, "_compile", lambda *given, **named: tried.append(1) or compile_it(*given, **named))
    parameters = protocol_parameters(CoordinateDescent, {"mu": 0.3})
    remarks = [fast_world(small_setting(), Sorting, parameters).remarks for _ in range(2)]
    assert len(tried) == 1
    assert "Sorting" in remarks[0][0] or "sorted" in remarks[0][0]
    assert remarks[0] == remarks[1]
