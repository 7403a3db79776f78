"""Methods of multipliers run the same as Python and compiled: updates and charges exactly, models to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.protocols.algorithms.consensus_admm import ConsensusAdmm
from hushnet.protocols.algorithms.edge_consensus_admm import EdgeConsensusAdmm
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.simulator.contract.bench import protocol_parameters
from hushnet.simulator.world.world import World

from .text_worlds import check_forms, random_setting
from .worlds import quiet_edges

SMOOTH = ["logistic", "squared", "smoothed_hinge"]
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))]


def check(seed, protocol, fields) -> World:
    make = random_setting(seed, loss=SMOOTH[seed % 3], easy=bool(seed % 2))
    agents = make().task.agents
    fields = {name: value(agents) if callable(value) else value for name, value in fields.items()}
    world = check_forms(make, protocol, protocol_parameters(protocol, fields))
    assert world.activations >= 10
    return world


def check_in_pairs(seed, protocol, fields) -> World:
    """`check` of a world that ends with a quiet edge; now and then one has a session under way on every edge."""
    worlds = (check(other, protocol, fields) for other in range(seed, seed + 600, 60))
    return next(world for world in worlds if quiet_edges(world).any())


def apart(world: World, own: str, other: str) -> float:
    """How far a block of one end of quiet edges is from one of the other end, in a run with compiled steps."""
    edge, quiet, back = world.state.edge, quiet_edges(world), world.setting.graph.reverse
    assert quiet.any()
    return float(np.abs(edge[own].rows - edge[other].rows[back])[quiet].max())


@pytest.mark.parametrize("seed", SEEDS)
def test_consensus_in_rounds(seed):
    rng = np.random.default_rng(seed)
    fields = [
        {"loss_weight": 2.0, "rho": 0.5},
        {"penalty_growth": 1.05, "dual_step_growth": 1.02},
        {
            "penalty": lambda n: rng.uniform(0.3, 2.0, n).tolist(),
            "dual_step": lambda n: rng.uniform(0.1, 1, n).tolist(),
        },
    ]
    check(seed, ConsensusAdmm, fields[seed % 3])


@pytest.mark.parametrize("seed", SEEDS)
def test_consensus_in_pairs(seed):
    world = check_in_pairs(seed, EdgeConsensusAdmm, {"penalty": 0.3 + 0.1 * seed, "loss_weight": 1.0 + seed % 4})
    assert apart(world, "between", "between") == 0.0


@pytest.mark.parametrize("seed", [3, *SEEDS[:3], *SEEDS[4:]])  # in 3, budgets end while others go on
def test_consensus_with_noise(seed):
    noises = [
        {"alpha": 3.0},
        {"alpha": 2.0, "growth": 1.03},
        {"alpha": 5.0, "updates": 6},
        {"target": {"verified": 20.0, "delta": 1e-3}, "updates": 5, "growth": 1.05},
    ]
    noise = noises[seed % 4] if seed % 3 != 1 else noises[seed % 3]  # nothing bounds the slope of the squared loss
    growth = 1.0 if seed % 2 else 1.05
    check(seed, PerturbedAdmm, {"loss_weight": 0.1, "penalty": 1.0, "penalty_growth": growth, "noise": noise})


@pytest.mark.parametrize("seed", SEEDS)
def test_collaboration_in_pairs(seed):
    rng = np.random.default_rng(seed)
    fields = [
        {},
        {"local_steps": 1 + seed % 3, "objective": "bellet", "mu": 0.7},
        {"start": "zero", "rho": 0.3, "alpha": 0.9},
        {"confidence": lambda n: rng.uniform(0.1, 1, n).tolist(), "solitary": {"steps": 3, "step_size": 0.5}},
    ]
    assert apart(check_in_pairs(seed, CollaborativeAdmm, fields[seed % 4]), "z_own", "z_peer") == 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_collaboration_in_rounds(seed):
    fields = [
        {},
        {"local_steps": 1 + seed % 3, "objective": "bellet", "mu": 0.7},
        {"start": "zero", "rho": 0.3, "alpha": 0.9},
    ]
    check(seed, CollaborativeAdmm, {"schedule": "rounds", **fields[seed % 3]})


def test_the_hinge_s_exact_minimiser_has_no_compiled_form():
    why = "batched (Python step, because the exact minimiser of the hinge loss, which has kinks, has no compiled form)"
    make = random_setting(5, loss="hinge", easy=True)
    check_forms(make, CollaborativeAdmm, protocol_parameters(CollaborativeAdmm, {}), engine=why)
