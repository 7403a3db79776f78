"""Runs whose steps are made in the same batches have the bits that each has alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.edge_consensus_admm import EdgeConsensusAdmm
from hushnet.protocols.algorithms.epidemic_learning import EpidemicLearning
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.algorithms.stochastic_gradient_push import StochasticGradientPush
from hushnet.protocols.steps import (
    batched,
)
from hushnet.simulator.contract.bench import protocol_parameters
from hushnet.simulator.engine.batched.planned_batches import StepsInBatches
from hushnet.simulator.engine.batched.side_by_side import Apart, run_side_by_side
from hushnet.simulator.network.compute import COMPUTE_TIMES
from hushnet.simulator.network.graph_changes import GRAPH_CHANGES
from hushnet.simulator.network.topology import TOPOLOGIES
from hushnet.simulator.recording.recorder import Recorder

from ..protocols.random_worlds import assert_same, random_setting
from ..protocols.test_plans import Parameters, Together
from .driving import drive, driver_of, fast_world

NOISE = {"mechanism": "gaussian", "multiplier": 2.0, "clip": 0.5}
CASES = [
    (CoordinateDescent, {"mu": 0.5, "privacy": NOISE}),
    (CoordinateDescent, {"mu": 0.5, "schedule": "rounds"}),
    (DualAveraging, {"privacy": NOISE, "batch": 2}),
    (PushSumDualAveraging, {"sampling": "poisson", "batch": 2}),
    (ModelPropagation, {"alpha": 0.8}),
    (CollaborativeAdmm, {"local_steps": 2}),
    (EdgeConsensusAdmm, {}),
    (PerturbedAdmm, {"noise": {"alpha": 3.0}, "loss_weight": 0.1}),
    (StochasticGradientPush, {"schedule": "async"}),
    (EpidemicLearning, {"schedule": {"kind": "rounds", "patience": 0.5}}),
]


def side_by_side(worlds):
    """Run worlds together."""
    run_side_by_side([driver_of(world) for world in worlds])


def slow_and_directed(setting, *, changing):
    """A setting with a directed graph, which may change, steps that take time and a shared downlink."""
    topology = TOPOLOGIES["exponential"].model_validate({"kind": "exponential"})
    graph = topology.build(setting.task, rng=np.random.default_rng(0), base=None)
    changes = GRAPH_CHANGES["in_turn"].model_validate({"kind": "in_turn"}) if changing else None
    network = setting.network.model_copy(update={"downlink": 200.0})
    slow = COMPUTE_TIMES["constant"].model_validate({"kind": "constant", "value": 0.3})
    return replace(setting, graph=graph, changes=changes, network=network, compute=slow)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("protocol", "fields"), CASES)
def test_runs_side_by_side_are_those_that_they_are_alone(protocol, fields, seed, monkeypatch):
    spec = protocol_parameters(protocol, fields)
    world = {"loss": "logistic", "easy": bool(seed % 2), "dimension": 3, "agents": 6}
    settings = [random_setting(10 * seed + k, **world)() for k in range(4)]
    start = {"start": settings[0].network.start}
    settings = [replace(one, network=one.network.model_copy(update=start)) for one in settings]
    if protocol.traits.directed:
        settings = [slow_and_directed(one, changing=bool(k % 2)) for k, one in enumerate(settings)]

    def made():
        recorders = [Recorder(("objective", "traffic"), protocol="p", seed=k) for k in range(4)]
        both = zip(settings, recorders, strict=True)
        worlds = [fast_world(one, protocol, spec, recorder=its, every=2.5) for one, its in both]
        return worlds, recorders

    (alone, seen_alone), (together, seen) = made(), made()
    for one in alone:
        drive(one)
    made_alone, make = [], StepsInBatches._make
    monkeypatch.setattr(
        StepsInBatches, "_make", lambda self, total, plain: made_alone.append(total) or make(self, total, plain)
    )
    side_by_side(together)
    assert sum(made_alone) < sum(world.activations for world in together) / 4
    for one, other in zip(together, alone, strict=True):
        assert_same(one, other)
        assert one.now == other.now
    for one, other in zip(seen, seen_alone, strict=True):
        assert one.trace().equals(other.trace())


def worlds_of(*specs, **fields):
    """Worlds of coordinate descent that differ in what is given alone."""
    make = random_setting(1, **{"loss": "logistic", "easy": True, "dimension": 3, "agents": 6, **fields})
    return [fast_world(make(), CoordinateDescent, protocol_parameters(CoordinateDescent, one)) for one in specs]


@pytest.mark.parametrize(
    ("worlds", "why"),
    [
        (lambda: worlds_of({"mu": 0.5}, {"mu": 0.6}), "parameters or constants differ"),
        (lambda: [*worlds_of({"mu": 0.5}), *worlds_of({"mu": 0.5}, dimension=2)], "differ in width"),
        (lambda: [*worlds_of({"mu": 0.5}), *worlds_of({"mu": 0.5}, loss="squared")], "differ in code"),
    ],
)
def test_runs_of_which_steps_may_read_something_else_stay_apart(worlds, why):
    with pytest.raises(Apart, match=why):
        side_by_side(worlds())


class Explodes(Together):
    """Steps that leave all bounds."""

    @staticmethod
    @batched
    def step(me):
        me.model = 1e60 * (me.model + 1.0)
        me.message = me.model


class Fails(Together):
    """Steps that fail after a while."""

    @staticmethod
    @batched
    def step(me):
        if (me.updates > 3).any():
            raise ValueError("too many")
        me.message = me.model


@pytest.mark.parametrize(
    ("kind", "why"), [(Explodes, "diverge|became"), (Fails, "a step of one of them failed|a step ends it")]
)
def test_runs_of_which_one_ends_with_an_error_are_to_be_made_apart(kind, why):
    make = random_setting(1, loss="logistic", easy=True, dimension=3, agents=6)
    with pytest.raises(Apart):
        side_by_side([fast_world(make(), kind, Parameters()) for _ in range(3)])
