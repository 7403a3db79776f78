"""Shipped protocols come to the same on both engines, bit by bit, with and without a plan of their steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.protocols.algorithms.consensus_admm import ConsensusAdmm
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.edge_consensus_admm import EdgeConsensusAdmm
from hushnet.protocols.algorithms.local_dp_descent import LocalDPDescent
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.simulator.contract.bench import protocol_parameters

from .random_worlds import check_engines_agree, joining, random_setting

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 30))]
SMOOTH = ["logistic", "squared", "smoothed_hinge"]
ALL = [*SMOOTH, "hinge"]
BOUNDED = ["logistic", "smoothed_hinge"]
"""Losses whose slope is bounded, as noise asks."""
ROUNDS: Any = ["rounds", {"kind": "rounds", "patience": 1.5}]
BUDGET = {"epsilon": 5.0, "delta": 1e-3}
ONCE = {"mechanism": "laplace", "budget": {"epsilon": 2.0, "delta": 0.0}, "updates": 1, "sensitivity": "claimed"}
GRADIENTS = [
    {"mechanism": "laplace", "budget": {**BUDGET, "by": "advanced_composition"}, "updates": 4, "clip": 1.0},
    {"mechanism": "gaussian", "multiplier": 2.0, "sensitivity": "clip", "clip": 0.5},
    {
        "mechanism": "laplace",
        "sensitivity": "clip",
        "clip": 1.0,
        "budget": {"epsilon": 5.0, "delta": 0.0},
        "updates": 4,
        "allocation": "proposition2",
    },
]
SUBGRADIENTS = [
    None,
    {
        "mechanism": "gaussian",
        "budget": {"epsilon": 1.0, "delta": 0.01, "by": "basic_composition"},
        "updates": 9,
        "sensitivity": "claimed",
    },
    {
        "mechanism": "gaussian",
        "target": {"verified": 4.0, "delta": 1e-3},
        "updates": 7,
        "sensitivity": "clip",
        "clip": 0.3,
    },
    {"mechanism": "gaussian", "multiplier": 0.8, "sensitivity": "clip", "clip": 1.5},
    {"mechanism": "gaussian", "multiplier": 0.0, "updates": 5, "sensitivity": "clip", "clip": 0.1},
]
OBJECTIVES = [
    {"alpha": 3.0},
    {"alpha": 2.0, "growth": 1.03},
    {"alpha": 5.0, "updates": 6},
    {"target": {"verified": 20.0, "delta": 1e-3}, "updates": 5, "growth": 1.05},
]
Fields = Mapping[str, Any]
Rng = np.random.Generator


def averaging(seed: int, rng: Rng) -> Fields:
    """Dual averaging with all kinds of samples, with and without noise."""
    fields: dict[str, Any] = {"mu": 0.1, "gamma": 2.0, "sampling": str(rng.choice(["uniform", "poisson", "full"]))}
    if fields["sampling"] != "full":
        fields["batch"] = int(rng.integers(1, 6))
    if rng.random() < 0.3:
        fields["radius"] = 0.7
    return {
        **fields,
        "step_weights": str(rng.choice(["linear", "constant"])),
        "privacy": SUBGRADIENTS[seed % len(SUBGRADIENTS)],
    }


def descending(seed: int, rng: Rng) -> Fields:
    """Coordinate descent under every schedule, with and without noise."""
    schedule = ["async", *ROUNDS][int(rng.integers(3))]
    start = ["zero", "local"][int(rng.integers(2))]
    privacy = [None, *GRADIENTS][seed % 4]
    return {"mu": 0.5, "schedule": schedule, "radius": 0.8} | (
        {"start": start} if privacy is None else {"privacy": privacy}
    )


def propagating(seed: int, rng: Rng) -> Fields:
    """Model propagation under every schedule, with and without noise at the start."""
    schedule = ["exchange", "async", "rounds"][seed % 3]
    more = {"partners": "weighted"} if schedule == "exchange" and rng.random() < 0.5 else {}
    return {"alpha": 0.8, "schedule": schedule, **more} | ({"privacy": ONCE} if seed % 2 else {})


def by_agent(low: float, high: float) -> Callable[[Rng, int], list[float]]:
    """A number for each agent."""
    return lambda rng, agents: rng.uniform(low, high, agents).tolist()


def agreeing(seed: int, rng: Rng) -> Fields:
    """ADMM for a consensus in rounds."""
    return [
        {"loss_weight": 2.0, "rho": 0.5},
        {"penalty_growth": 1.05, "dual_step_growth": 1.02},
        {"penalty": by_agent(0.3, 2.0), "dual_step": by_agent(0.1, 1.0)},
    ][seed % 3]


def collaborating(seed: int, rng: Rng) -> Fields:
    """Collaborative ADMM in pairs or in rounds."""
    schedule = {"schedule": "rounds"} if rng.random() < 0.5 else {}
    return {
        **schedule,
        **[
            {},
            {"local_steps": 1 + seed % 3, "objective": "bellet", "mu": 0.7},
            {"start": "zero", "rho": 0.3, "alpha": 0.9},
            {"confidence": by_agent(0.1, 1.0), "solitary": {"steps": 3, "step_size": 0.5}},
        ][seed % 4],
    }


def perturbing(seed: int, rng: Rng) -> Fields:
    """ADMM whose objectives have noise."""
    growth = 1.0 if seed % 2 else 1.05
    return {"loss_weight": 0.1, "penalty": 1.0, "penalty_growth": growth, "noise": OBJECTIVES[seed % 4]}


def alone(seed: int, rng: Rng) -> Fields:
    """Descent on rows that were perturbed once."""
    privacy = {"mechanism": "laplace", "budget": BUDGET, "updates": 1, "clip": 1.0}
    return {"mu": 0.5, "privacy": privacy, "schedule": ["async", "rounds"][seed % 2]}


CASES = [
    pytest.param(CoordinateDescent, descending, BOUNDED, id="coordinate descent"),
    pytest.param(LocalDPDescent, alone, BOUNDED, id="local privacy"),
    pytest.param(DualAveraging, averaging, BOUNDED, id="dual averaging"),
    pytest.param(PushSumDualAveraging, averaging, BOUNDED, id="push-sum in rounds or not"),
    pytest.param(ModelPropagation, propagating, SMOOTH, id="model propagation"),
    pytest.param(ConsensusAdmm, agreeing, SMOOTH, id="consensus in rounds"),
    pytest.param(EdgeConsensusAdmm, lambda seed, _: {"penalty": 0.3 + 0.1 * seed}, SMOOTH, id="consensus in pairs"),
    pytest.param(CollaborativeAdmm, collaborating, ALL, id="collaboration"),
    pytest.param(PerturbedAdmm, perturbing, BOUNDED, id="consensus with noise"),
]


def world_of(protocol: Any, fields: Any, losses: list[str], seed: int) -> tuple[Any, Any]:
    """What makes a random setting, and a protocol's parameters there."""
    rng = np.random.default_rng(1000 + seed)
    made = dict(fields(seed, rng))
    if protocol is PushSumDualAveraging:
        made["schedule"] = ["async", *ROUNDS][seed % 3]
    make = random_setting(seed, loss=losses[seed % len(losses)], easy=bool(seed % 2))
    agents = make().task.agents
    return make, protocol_parameters(
        protocol, {name: value(rng, agents) if callable(value) else value for name, value in made.items()}
    )


ASKS = "event, because PushSumDualAveraging asks for its budget by numbers"
TOLD_BEFORE = "event, because it sends every neighbour something else, and who joins late is told what it was sent last"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("protocol", "fields", "losses"), CASES)
def test_engines_agree_in_random_worlds(protocol, fields, losses, seed):
    make, spec = world_of(protocol, fields, losses, seed)
    privacy = getattr(spec, "privacy", None)
    asks = protocol is PushSumDualAveraging and privacy is not None and privacy.updates is not None
    engine = ASKS if asks else "batched (steps in batches)"
    assert check_engines_agree(make, protocol, spec, engine=engine).activations >= 10


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("protocol", "fields", "engine"),
    [
        (CoordinateDescent, {"mu": 0.5}, None),
        (ModelPropagation, {}, None),
        (ModelPropagation, {"schedule": "async"}, None),
        (CollaborativeAdmm, {}, None),
        (PushSumDualAveraging, {}, TOLD_BEFORE),
    ],
)
def test_engines_agree_where_agents_join_late(protocol, fields, engine, seed):
    make = joining(random_setting(seed, loss="logistic", easy=True))
    how = {} if engine is None else {"engine": engine}
    check_engines_agree(make, protocol, protocol_parameters(protocol, fields), **how)
