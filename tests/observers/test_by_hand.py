"""Epsilon against observers, by hand: what noise of others is mixed into what an agent hears."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.observers import deliveries_of, linear_view

from .worlds import ENGINES, NOISE, Vectors, found, gossip, mu_of, ran

LATE = {"latency": {"kind": "exponential", "mean": 3.0}}


@pytest.mark.parametrize(("engine", "network"), [("event", {}), ("batched", LATE)], ids=["at once", "late"])
@pytest.mark.parametrize(
    ("graph", "rounds", "by_distance"),
    [
        (nx.path_graph(4), 1, [0.5, 0, 0]),
        (nx.hypercube_graph(5), 2, [0.5, 0.35355339, 0, 0, 0]),
        (nx.hypercube_graph(5), 3, [0.5, 0.35355339, 0.35355339, 0, 0]),
    ],
    ids=["path", "cube, two rounds", "cube, three rounds"],
)
def test_what_an_agent_learns_of_another_falls_with_their_distance(graph, rounds, by_distance, network, engine):
    """One noise each, sigma 2, Delta 1. Bonus: on the cube, k rounds give k (5 choose k)^-1 of the squared mu."""
    graph = nx.convert_node_labels_to_integers(graph, ordering="sorted")
    result = found(gossip(graph, rounds, engine=engine, network=network))
    apart = np.array(nx.floyd_warshall_numpy(graph))
    for distance, mu in enumerate(by_distance, start=1):
        np.testing.assert_allclose(mu_of(result.epsilons)[apart == distance], mu, atol=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rounds", [1, 3])
def test_of_noisy_gradients_each_edge_holds_back_one(rounds, engine):
    """The gradient form by data flow: of T releases with mu = 1/2, T + 1 - d have come d edges far."""
    fields = {"order": "adapt_then_combine", "privacy": {**NOISE, "updates": rounds}}
    result = found(ran(nx.path_graph(4), fields, protocol=DecentralisedSGD, engine=engine))
    for distance in (1, 2, 3):
        mu = np.sqrt(max(0, rounds + 1 - distance)) / 2
        np.testing.assert_allclose(mu_of(result.epsilons)[0, distance], mu, atol=1e-8)


def star_where(lost: bool):
    """A star with its hub at 1 after two rounds, with the first message of 3 to the hub lost or nothing lost.

    Clocks tick together and messages take half a tick, so that steps of the agents' own clocks are rounds.
    """
    for seed in range(400 if lost else 1):
        given = {"clock": Periodic(kind="periodic", phase="common"), "fields": {"schedule": "async"}, "seed": seed}
        network = {"latency": {"kind": "constant", "value": 0.5}, "loss": 0.1 if lost else 0.0}
        world = gossip(nx.Graph([(0, 1), (1, 2), (1, 3)]), 2, network=network, **given)
        table = deliveries_table(world)
        gone = table[table["fate"] == "lost"][["sender", "receiver", "step"]]
        if gone.to_numpy().tolist() == ([["3", "1", 0]] if lost else []):
            return world
    raise AssertionError("no seed loses that message alone")


def deliveries_table(world):
    deliveries = deliveries_of(world)
    none = np.full(len(deliveries.agent), -1)
    names = pd.CategoricalDtype([str(one) for one in world.setting.task.ids])
    return deliveries.table(names, list(world.layout.messages), none)


def test_a_loss_may_raise_what_an_observer_learns_exactly_and_never_what_can_have_reached_it():
    whole, lossy = (found(star_where(lost), {"agent": 2}) for lost in (False, True))
    np.testing.assert_allclose(mu_of(whole.epsilons)[0], [0.5 / np.sqrt(2), 0.5, np.nan, 0.5 / np.sqrt(2)], atol=1e-8)
    np.testing.assert_allclose(mu_of(lossy.epsilons)[0], [0.5, 0.5, np.nan, 0], atol=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("graph", "rounds", "known"),
    [
        (nx.path_graph(4), 1, {0: [1], 1: [0, 2], 2: [1, 3], 3: [2]}),
        (nx.star_graph(3), 2, {0: [1, 2, 3], 1: [0], 2: [0], 3: [0]}),
        (nx.path_graph(4), 4, {0: [1, 2, 3], 1: [0, 2, 3], 2: [0, 1, 3], 3: [0, 1, 2]}),
    ],
    ids=["path", "star", "path, four rounds"],
)
def test_without_noise_values_are_computed_from_what_was_heard(graph, rounds, known, engine):
    """Leaves of a star hear the sum of the others. What is said to be known follows from the messages themselves."""
    given = {"engine": engine, "fields": {"privacy": None}}
    world, vectors = gossip(graph, rounds, **given), Vectors()
    gossip(graph, rounds, observer=vectors, **given)
    result, deliveries = found(world), deliveries_of(world)
    assert result.mistake == ""
    assert {k: np.flatnonzero(row).tolist() for k, row in enumerate(result.reconstructed)} == known
    view, values = linear_view(world, deliveries), np.array([world.begun[agent] for agent in range(len(graph))])
    for observer, sources in known.items():
        heard = np.unique(deliveries.made_by[(deliveries.receiver == observer) & deliveries.heard])
        sent = [vectors.sent_at[int(deliveries.agent[w]), int(deliveries.tick[w])] for w in heard]
        rows = np.vstack([view.sent[heard], np.eye(len(graph))[observer]])
        solved = np.linalg.lstsq(rows, np.vstack([sent, values[observer]]), rcond=None)[0]
        np.testing.assert_allclose(solved[sources], values[sources], atol=1e-9)


def test_noise_leaves_nothing_to_reconstruct():
    assert not found(gossip(nx.path_graph(4), 4)).reconstructed.any()
