"""What holds of observers in any world: weights are those of the run, and bounds are in their order."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hushnet.agents.availability import Always, Window
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.compute import COMPUTE_TIMES
from hushnet.simulator.observers import deliveries_of, linear_view

from .worlds import DELTA, ENGINES, NOISE, Vectors, found, gossip, ran

GRAPH = nx.random_regular_graph(3, 16, seed=3)
LOSSY = {"latency": {"kind": "exponential", "mean": 0.7}, "loss": 0.25}
TOGETHER = Periodic(kind="periodic", phase="common")
LATE = Always(kind="always", joins=Window(share=0.5, between=[1.0, 4.0]), leaves=Window(share=0.3, between=[5.0, 9.0]))
SLOW = COMPUTE_TIMES["constant"].model_validate(
    {"kind": "constant", "value": 0.5, "speed": {"kind": "stragglers", "share": 0.5, "slow": 0.2}}
)
PATIENT = {"kind": "rounds", "patience": 0.8}
WORLDS = {
    "rounds": {"fields": {}, "network": {}},
    "momentum": {"fields": {"gossip": "chebyshev"}, "network": LOSSY},
    "patience": {"fields": {"schedule": PATIENT}, "network": LOSSY},
    "cut short": {
        "fields": {"schedule": {"kind": "rounds", "patience": 0.3}},
        "network": LOSSY,
        "time": 6.0,
        "seed": 21,
    },
    "own clocks": {"fields": {"schedule": "async"}, "network": LOSSY},
    # What is sent as a neighbour's patience ends arrives after that.
    "ties": {"fields": {"schedule": {"kind": "rounds", "patience": 0.5}}, "network": {"loss": 0.3}, "clock": TOGETHER},
    "joins": {"fields": {"schedule": "async"}, "network": LOSSY, "availability": LATE},
    "steps that take time": {"fields": {"schedule": "async"}, "network": LOSSY, "compute": SLOW},
    "slow rounds": {"fields": {"schedule": PATIENT}, "network": LOSSY, "compute": SLOW},
    "slow ties": {"fields": {"schedule": "async"}, "network": {"loss": 0.3}, "clock": TOGETHER, "compute": SLOW},
}
ITERATIVE = {
    "noisy gradients": (CoordinateDescent, {"mu": 0.5, "privacy": {**NOISE, "updates": 5}}),
    "noisy gradients in rounds": (
        DualAveraging,
        {"privacy": {**NOISE, "updates": 5}, "sampling": "full", "gamma": 1.0},
    ),
    "exchanges in pairs": (ModelPropagation, {"alpha": 0.5, "privacy": {**NOISE, "updates": 1}}),
}


@pytest.mark.parametrize(
    ("case", "engine"),
    [(case, "event" if "compute" in WORLDS[case] else [*ENGINES][rank % 2]) for rank, case in enumerate(WORLDS)],
)
def test_weights_times_released_values_are_what_is_sent(case, engine):
    """The declared map, led along the log of deliveries and reads, gives every message of the run."""
    world, vectors = gossip(GRAPH, 6, engine=engine, **WORLDS[case]), Vectors()
    gossip(GRAPH, 6, engine=engine, observer=vectors, **WORLDS[case])
    deliveries = deliveries_of(world)
    weights = linear_view(world, deliveries).sent
    keys = list(zip(deliveries.agent.tolist(), deliveries.tick.tolist(), strict=True))
    firsts = [keys.index((agent, min(tick for who, tick in keys if who == agent))) for agent in range(16)]
    released = np.linalg.solve(weights[firsts], [vectors.sent_at[keys[first]] for first in firsts])
    np.testing.assert_allclose(weights @ released, [vectors.sent_at[key] for key in keys], atol=1e-12)
    assert (len(keys) == 96) is (case not in ("cut short", "joins"))
    assert (np.count_nonzero(np.abs(weights) > 1e-9, axis=1) > 3).mean() > (0.0 if case == "cut short" else 0.5)


@pytest.mark.parametrize(("seed", "case"), [(rank % 3, case) for rank, case in enumerate(WORLDS)])
def test_bounds_are_in_their_order(case, seed):
    world = gossip(GRAPH, 3, **{"seed": seed, **WORLDS[case]})
    check_order(world)
    result = found(world)
    assert result.mistake == ""
    flow = flow_alone(world)
    assert (result.epsilons <= flow * (1 + 1e-9))[~np.eye(16, dtype=bool)].all()
    assert (result.epsilons < flow * 0.99).any()


@pytest.mark.parametrize("case", ITERATIVE)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_release_that_has_not_arrived_is_not_learned(case, engine):
    protocol, fields = ITERATIVE[case]
    world = ran(nx.path_graph(6), fields, protocol=protocol, engine=engine, time=3.0, network=LOSSY)
    check_order(world)
    epsilons, everyone = found(world).epsilons, found(world, "everyone").epsilons[0]
    np.testing.assert_array_equal(everyone, world.ledger.epsilon("verified", DELTA))
    assert (epsilons < 0.9 * everyone).any()
    assert epsilons[0, 5] == epsilons[5, 0] == 0


def check_order(world):
    """A member learns no more than its coalition, what is delivered is sent, and everyone hears everything."""
    members = [1, 4, 6] if world.setting.graph.agents > 6 else [1, 4]
    single, sent = found(world).epsilons, found(world, heard="sent").epsilons
    together, everyone = found(world, {"coalition": members}).epsilons[0], found(world, "everyone").epsilons[0]
    around = found(world, "neighbours").epsilons
    others = ~np.isin(np.arange(len(together)), members)
    room = 1 + 1e-9
    assert (single[members][:, others] <= together[others] * room).all()
    assert (single <= sent * room)[~np.isnan(single)].all()
    assert (np.nanmax(sent, axis=0) <= everyone * room).all()
    for agent in range(len(together)):
        heard_by = world.setting.graph.neighbours(agent)
        assert single[heard_by, agent].max() <= around[agent, agent] * room


def flow_alone(world):
    """(n, n) epsilon of agents against each other by data flow."""
    protocol = world.protocol
    declared = type(protocol).linear_map
    try:
        type(protocol).linear_map = lambda _: None
        return found(world).epsilons
    finally:
        type(protocol).linear_map = declared
