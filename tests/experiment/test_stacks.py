"""Runs that are made side by side are kept as they are alone, in any grouping, by any processes, after any end."""

from __future__ import annotations

import errno
import importlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.errors import OutOfResources
from hushnet.agents.objectives.objectives import LocalOnly
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.privacy.budget import Privacy
from hushnet.protocols.steps import average, batched, local_gradient, perturbed
from hushnet.simulator.experiment import Experiment, perform, worker_pool
from hushnet.simulator.language.loading import load

NOISE = {"mechanism": "gaussian", "target": {"verified": 3.0, "delta": 0.001}, "updates": 5, "clip": 0.2}
SCENARIO = {
    "schema": 1,
    "scenario": "stacks",
    "task": {"kind": "linear_classification", "agents": 7, "dimension": 3, "points": "ball"},
    "topology": {"kind": "ring"},
    "network": {"latency": {"kind": "exponential", "mean": 0.2}},
    "engine": "batched",
    "protocols": {
        "cd": {"kind": "coordinate_descent", "mu": 0.4},
        "private": {"kind": "coordinate_descent", "mu": 0.4, "privacy": {**NOISE, "sensitivity": "clip"}},
        "pairs": {"kind": "model_propagation"},
        "rounds": {"kind": "dual_averaging"},
        "local": {"kind": "local"},
    },
    "stop": {"time": 8.0},
    "record": {"every": 1.5, "metrics": ["objective", "accuracy", "traffic", "epsilon"]},
    "sweep": {"network.loss": [0.0, 0.1]},
    "seeds": 3,
}


class OwnParameters(ProtocolParameters):
    """What a scenario may set."""

    kind: str = "Own"
    privacy: Privacy


def performed(folder, workers=None, scenario=SCENARIO, **own):
    assert not perform(Experiment(load(scenario, extra=own), folder), workers=workers)
    return kept(folder)


def kept(folder):
    """What every run's folder holds, without how long it took."""
    found = {}
    for manifest in folder.glob("*/manifest.json"):
        for file in manifest.parent.iterdir():
            found[file.relative_to(folder)] = file.read_bytes()
        content = json.loads(manifest.read_text())
        del content["timings"], content["checksums"]["manifest"]
        found[manifest.relative_to(folder)] = content
    return found


@pytest.fixture
def stacks(monkeypatch):
    """How many runs were made side by side each time in this process; never any if asked for."""
    made, usual = [], worker_pool.run_stack

    def noted(experiment, stack, on_sample):
        made.append(len(stack))
        return usual(experiment, stack, on_sample)

    monkeypatch.setattr(worker_pool, "run_stack", noted)
    return made


def one_by_one(experiment, queue):
    return [[rank] for rank in range(len(queue))]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The runs, each made by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_pool, "in_stacks", one_by_one)
        return performed(tmp_path_factory.mktemp("alone"))


def test_runs_made_side_by_side_are_kept_as_they_are_alone(tmp_path, stacks, alone):
    assert performed(tmp_path) == alone
    assert stacks.count(6) >= 4  # both points and all seeds of a protocol


def test_runs_made_side_by_side_share_their_time_by_their_activations(tmp_path):
    outcomes = []
    perform(Experiment(load(SCENARIO), tmp_path), on_run=lambda run, outcome: outcomes.append((run.protocol, outcome)))
    paces = {}
    for protocol, outcome in outcomes:
        manifest = json.loads((tmp_path / outcome.run_id / "manifest.json").read_text())
        paces.setdefault(protocol, []).append(outcome.seconds / (1 + manifest["totals"]["activations"]))
    assert [pace == pytest.approx([pace[0]] * 6) for pace in paces.values()].count(True) >= 4


def test_a_run_that_fails_is_the_only_one_that_does(tmp_path, stacks, alone):
    scenario = {**SCENARIO, "limits": {"events": 170}}
    failures = perform(Experiment(load(scenario), tmp_path))
    statuses = [json.loads(file.read_text())["status"] for file in tmp_path.glob("*/manifest.json")]
    assert statuses.count("limited") == len(failures) > 0
    assert statuses.count("complete") == len(statuses) - len(failures) > 0


@pytest.mark.parametrize("room", [0.5, 0.8])
def test_a_stack_that_fills_the_disk_is_kept_as_far_as_there_is_room(tmp_path, monkeypatch, room):
    scenario, folder = {**SCENARIO, "protocols": {"rounds": {"kind": "dual_averaging"}}}, tmp_path / "small"
    usual, wanted = Path.write_bytes, performed(tmp_path / "large", scenario=scenario)
    most = room * sum(len(one) for path, one in wanted.items() if path.suffix == ".parquet")

    def write_bytes(path, content):
        if most < len(content) + sum(file.stat().st_size for file in folder.glob("*/*.parquet")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return usual(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write_bytes)
        with pytest.raises(OutOfResources, match="No space left"):
            perform(Experiment(load(scenario), folder))
    first = kept(folder)
    assert wanted.items() > first.items()
    assert len(first) > 0.5 * room * len(wanted)
    assert performed(folder, scenario=scenario) == wanted


class Growing(Protocol):
    """Models grow a hundredfold with every step, up to the objective's explosion."""

    def layout(self):
        return Layout(agent={"model": self.problem.task.dimension})

    def objective(self):
        return LocalOnly(self.problem.task)

    def start(self, me):
        me.model = np.ones(len(me.model))

    @staticmethod
    @batched
    def step(me):
        me.model = -100.0 * me.model


class Failing(Growing):
    """A step fails soon after the objective has exploded."""

    @staticmethod
    @batched
    def step(me):
        me.model = -100.0 * me.model
        if np.abs(me.model).max() > 1e9:
            raise ArithmeticError("too large")


EXPLODING = {
    "protocols": {
        "Growing": {"kind": "Growing"},
        "Failing": {"kind": "Failing"},
        "cd": {"kind": "coordinate_descent", "mu": 0.4},
        "local": {"kind": "local"},
    },
    "availability": {"kind": "always", "joins": {"share": 0.5, "between": [2, 6]}},
    "sweep": {"network.loss": [0.1]},
    "seeds": 2,
    "record": {"every": 0.2, "metrics": ["objective", "accuracy", "training_loss", "test_loss", "distance", "updates"]},
}


@pytest.mark.parametrize(("together", "engine"), [(1, "batched"), (3, "batched"), (1, "event")])
def test_a_run_is_the_same_however_many_instants_are_measured_at_once(tmp_path, monkeypatch, together, engine):
    """With objectives that explode between, steps that fail after that, and agents that join."""
    scenario, own = {**SCENARIO, **EXPLODING, "engine": engine}, {"Growing": Growing, "Failing": Failing}
    perform(Experiment(load(scenario, extra=own), tmp_path / "usual", contract=False))
    monkeypatch.setattr(importlib.import_module("hushnet.simulator.experiment.execute"), "TOGETHER", together)
    perform(Experiment(load(scenario, extra=own), tmp_path / "other", contract=False))
    usual = kept(tmp_path / "usual")
    assert usual == kept(tmp_path / "other")
    ends = [
        (one["protocol"], "exploded" in one["error"]) for path, one in usual.items() if path.name == "manifest.json"
    ]
    assert set(ends) == {("Growing", True), ("Failing", True), ("cd", False), ("local", False)}


class Together(Protocol):
    """A private gossip of a user's own, in batches."""

    Parameters = OwnParameters

    def prepare(self):
        self.step_noise = GradientNoise(self.parameters.privacy, self.problem.task, weights=np.full(3, 1 / 3))

    def most_steps(self):
        return 3

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.model = 0.1 * me.agent
        me.send("model", me.model, me.public("indices"))

    @staticmethod
    @batched
    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        me.model = (me.model + average(me)) / 2 - 0.1 * gradient
        me.message = me.model


class Alone(Together):
    """The same, one agent after the other."""

    @staticmethod
    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        me.model = (me.model + average(me)) / 2 - 0.1 * gradient
        me.message = me.model


class Mixing(Together):
    """What an agent does depends on who is in its batch."""

    @staticmethod
    @batched
    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        me.model = (me.model + average(me)) / 2 - 0.1 * gradient * (1 + me.now.mean())
        me.message = me.model


@pytest.mark.parametrize(("kind", "made"), [(Together, {6}), (Alone, {6}), (Mixing, {1})])
def test_own_protocols_are_made_side_by_side_where_batches_were_seen_to_change_nothing(
    tmp_path, stacks, monkeypatch, kind, made
):
    privacy = {"mechanism": "gaussian", "clip": 0.5, "multiplier": 3.0, "updates": 3, "delta": 1e-3}
    scenario = {**SCENARIO, "protocols": {"own": {"kind": "Own", "privacy": privacy}}}
    found = performed(tmp_path / "together", scenario=scenario, Own=kind)
    assert set(stacks) == made
    monkeypatch.setattr(worker_pool, "in_stacks", one_by_one)
    assert performed(tmp_path / "alone", scenario=scenario, Own=kind) == found
