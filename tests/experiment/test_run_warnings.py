"""A run tells its author of models that stand still, of releases that were not made, and of growth."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.base import Layout, MessageKind, Protocol
from hushnet.simulator import run

PRIVATE = {"mu": 0.5, "privacy": {"mechanism": "laplace", "multiplier": 2.0, "updates": 20, "clip": 1.0}}


class Sketch(Protocol):
    def layout(self):
        return Layout(agent={"model": 3, "dual": 3}, messages={"model": MessageKind(3)})

    def start(self, me):
        pass


class StandsStill(Sketch):
    def step(self, me):
        me.dual += 1.0


class Explodes(Sketch):
    def step(self, me):
        me.model = np.sin(me.now)
        me.dual = 3.0 ** (me.updates + 1)


class Collects(Sketch):
    def prepare(self):
        self.history = []

    def step(self, me):
        me.model = me.now
        self.history.extend([me.now] * 10)


def warnings_of(tmp_path, protocol, *, time=40, **fields):
    scenario = {
        "schema": 1,
        "scenario": "warnings",
        "task": {"kind": "linear_classification", "agents": 4, "dimension": 3, "samples": [4, 8]},
        "topology": {"kind": "ring"},
        "protocols": {"mine": {"kind": "mine", **fields}},
        "stop": {"time": time},
        "record": {"every": 5, "metrics": ["accuracy"]},
        "seeds": 1,
    }
    result = run(scenario, protocols={"mine": protocol}, out=tmp_path / "results", contract=False)
    [manifest] = result.manifests
    return [warning for warning in manifest["warnings"] if "not checked" not in warning]


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (StandsStill, r"mine: no model has changed in \d+ steps"),
        (Explodes, r"mine: the block dual grows without bound: \S+ at time 15, \S+ at time 40"),
        (
            Collects,
            r"mine: the protocol's attribute history grows without bound: \d+ entries at time 15, \d+ at time 40",
        ),
    ],
)
def test_a_run_warns(tmp_path, protocol, sentence):
    [warning] = warnings_of(tmp_path, protocol)
    assert re.match(sentence, warning)


def test_releases_planned_and_not_made_are_counted(tmp_path):
    [warning] = [text for text in warnings_of(tmp_path, CoordinateDescent, time=5, **PRIVATE) if "planned" in text]
    assert warning.startswith("mine: releases planned for each agent 20, made ")


def test_a_plan_that_was_kept_needs_no_remark(tmp_path):
    assert not any("planned" in text for text in warnings_of(tmp_path, CoordinateDescent, time=60, **PRIVATE))
