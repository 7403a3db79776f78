"""Noise that neighbours share, by hand: what it hides, from whom, and what becomes of it (Allouah et al. 2024)."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hushnet.protocols.algorithms.muffliato import Muffliato
from hushnet.simulator.contract import ContractViolation, check_replay, protocol_parameters
from hushnet.simulator.observers import deliveries_of, linear_view

from .worlds import ENGINES, NOISE, found, gossip, mu_of

SHARED = {"shared_noise": 3.0}


class SharesNothing(Muffliato):
    """A map that states shared noise which was not added."""

    def start(self, me):
        self.releases[me.agent] = release = self.noise.release(me)
        me.reserve(release)
        me.disclose(release)
        me.model = me.before = -0.5 * release.perturb(self._gradient(me.data), rng=me.stream("noise"))


def mu_of_covariance(graph, inside):
    """mu of each agent, sigma 2 and shared noise of deviation 6: [(4 I + 36 L)^-1]_uu, L without known ends."""
    rest = graph.subgraph([one for one in graph if one not in inside])
    covariance = 4 * np.eye(len(rest)) + 36 * nx.laplacian_matrix(rest, nodelist=sorted(rest)).toarray()
    found = np.full(len(graph), np.nan)
    found[sorted(rest)] = np.sqrt(np.diag(np.linalg.inv(covariance)))
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("graph", [nx.complete_graph(6), nx.path_graph(5), nx.barbell_graph(3, 1)])
def test_who_hears_all_values_sees_them_through_own_and_shared_noise(graph, engine):
    """One round sends each value as it was released. Members know the noise that they share."""
    world = gossip(graph, 1, engine=engine, fields=SHARED)
    np.testing.assert_allclose(mu_of(found(world, "eavesdropper").epsilons)[0], mu_of_covariance(graph, []), atol=1e-7)
    np.testing.assert_allclose(mu_of(found(world, "everyone").epsilons)[0], 0.5, atol=1e-7)
    if nx.density(graph) == 1:
        single, pair = found(world).epsilons[1], found(world, {"coalition": [1, 4]}).epsilons[0]
        np.testing.assert_allclose(mu_of(single), mu_of_covariance(graph, [1]), atol=1e-7)
        np.testing.assert_allclose(mu_of(pair), mu_of_covariance(graph, [1, 4]), atol=1e-7)


def test_shared_noise_cancels_in_the_mean_and_hides_the_values():
    graph = nx.random_regular_graph(4, 40, seed=2)
    plain, shared, lost = (gossip(graph, 1, fields=fields) for fields in ({}, SHARED, {**SHARED, "seeds_lost": 0.5}))
    values = [np.array([world.begun[agent] for agent in range(40)]) for world in (plain, shared, lost)]
    np.testing.assert_allclose(values[1].mean(axis=0), values[0].mean(axis=0), atol=1e-12)
    moved, scale = values[1] - values[0], 3.0 * next(iter(plain.protocol.releases.values())).scale
    np.testing.assert_allclose(np.sqrt((moved**2).mean()), scale * 2, rtol=0.2)  # four pairs an agent
    assert (values[2] - values[0]).std() < moved.std()
    worst = [np.nanmax(found(world, "eavesdropper").epsilons) for world in (plain, shared, lost)]
    assert worst[1] < worst[2] <= worst[0]


def test_noise_stays_where_its_other_half_was_lost():
    """Whoever hears one of two values alone sees own noise of deviation 2 and shared noise of deviation 6."""
    world = gossip(nx.path_graph(3), 1, fields=SHARED)
    np.testing.assert_allclose(mu_of(found(world, {"agent": 0}).epsilons)[0], [np.nan, (4 + 36) ** -0.5, 0], atol=1e-7)
    view = linear_view(world, deliveries_of(world))
    assert sorted(view.declared.shared.pairs.tolist()) == [[0, 1], [1, 2]]


def test_the_contract_forces_the_sum():
    fields = {"gossip": "simple", "rounds": 2, "privacy": NOISE, **SHARED}
    assert check_replay(Muffliato, protocol_parameters(Muffliato, fields))
    with pytest.raises(ContractViolation, match="another value than that to which its shared noise was added"):
        check_replay(SharesNothing, protocol_parameters(SharesNothing, fields))
