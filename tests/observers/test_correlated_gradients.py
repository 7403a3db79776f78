"""Gradients with noise that neighbours share, and several gossip rounds between two gradients, by hand."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD
from hushnet.simulator.contract import check_replay, protocol_parameters
from hushnet.simulator.observers import deliveries_of, release_record

from .test_any_world import LOSSY, check_order
from .test_shared_noise import mu_of_covariance
from .worlds import DELTA, ENGINES, NOISE, Vectors, found, mu_of, ran


def gradients(graph, rounds, *, shared=3.0, engine="event", fields=None, **given):
    """Noisy gradients in rounds, sigma = 2 Delta, shared noise of three times that."""
    privacy = {**NOISE, "updates": rounds}
    made = {"step_size": 0.5, "privacy": privacy, "shared_noise": shared, **(fields or {})}
    return ran(graph, made, protocol=DecentralisedSGD, engine=engine, **given)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("graph", [nx.complete_graph(6), nx.path_graph(5), nx.barbell_graph(3, 1)])
def test_rounds_of_correlated_noise_compose_as_one_gaussian_mechanism(graph, engine):
    """mu^2 = T [(4 I + 36 L)^-1]_uu against all links, and T / 4 against whoever knows all seeds."""
    world = gradients(graph, 4, engine=engine)
    np.testing.assert_allclose(
        mu_of(found(world, "eavesdropper").epsilons)[0], 2 * mu_of_covariance(graph, []), atol=1e-6
    )
    np.testing.assert_allclose(mu_of(found(world, "everyone").epsilons)[0], 1.0, atol=1e-6)
    if nx.density(graph) == 1:
        pair = found(world, {"coalition": [1, 4]}).epsilons[0]
        np.testing.assert_allclose(mu_of(pair), 2 * mu_of_covariance(graph, [1, 4]), atol=1e-6)


def test_what_has_not_come_so_far_is_not_learned():
    """On a path of four the last agent hears the first one's releases two rounds late."""
    graph = nx.path_graph(4)
    for rounds, heard in ((2, 0), (3, 1), (5, 3)):
        single = mu_of(found(gradients(graph, rounds)).epsilons)
        assert single[3, 0] == pytest.approx(np.sqrt(heard) * mu_of_covariance(graph, [3])[0], abs=1e-6)


def test_shared_noise_cancels_in_the_mean_of_what_is_sent():
    graph = nx.random_regular_graph(4, 40, seed=2)
    sent = []
    for shared in (0.0, 3.0):
        vectors = Vectors()
        world = gradients(graph, 1, shared=shared, observer=vectors)
        sent.append(np.array([vectors.sent_at[key] for key in sorted(vectors.sent_at)]))
    np.testing.assert_allclose(sent[1].mean(axis=0), sent[0].mean(axis=0), atol=1e-12)
    scale = 3.0 * world.protocol.step_noise.scales()[0, 0] * 0.5
    np.testing.assert_allclose((sent[1] - sent[0]).std(), 2 * scale, rtol=0.2)  # four pairs an agent


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"seeds_lost": 0.5},
        {"order": "adapt_then_combine", "gossip_steps": 3},
        {"order": "adapt_then_combine", "gossip_steps": 2, "gossip": "chebyshev"},
    ],
)
@pytest.mark.parametrize("network", [{}, LOSSY])
def test_bounds_are_in_their_order(fields, network):
    graph = nx.random_regular_graph(3, 16, seed=3)
    world = gradients(graph, 3, fields=fields, network=network)
    check_order(world)
    everyone, wire = (found(world, one).epsilons[0] for one in ("everyone", "eavesdropper"))
    assert (wire <= everyone * (1 + 1e-9)).all()
    assert (wire < everyone).any()


@pytest.mark.parametrize("engine", ENGINES)
def test_releases_stand_at_every_kth_step(engine):
    """Three gossip rounds a gradient, six messages an agent: the first value comes six edges far, the second three."""
    fields = {"order": "adapt_then_combine", "gossip_steps": 3}
    world = gradients(nx.path_graph(9), 2, shared=0.0, engine=engine, fields=fields)
    record = release_record(world, deliveries_of(world), DELTA)
    assert record.step.tolist() == [0, 3] * 9
    assert record.at_start.sum() == 0
    once, twice = (np.sqrt(k) / 2 for k in (1, 2))
    np.testing.assert_allclose(mu_of(found(world).epsilons[1:, 0]), [twice] * 3 + [once] * 3 + [0] * 2, atol=1e-6)


@pytest.mark.parametrize(
    "fields", [{}, {"order": "adapt_then_combine", "gossip_steps": 2, "gossip": "chebyshev", "seeds_lost": 0.3}]
)
def test_the_replay_holds(fields):
    given = {"privacy": {**NOISE, "updates": 3}, "shared_noise": 2.0, **fields}
    assert check_replay(DecentralisedSGD, protocol_parameters(DecentralisedSGD, given))
