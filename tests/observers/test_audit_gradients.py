"""Attacks by single agents where gradients are noisy: shared noise, gossip rounds between gradients, and a token."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD
from hushnet.protocols.algorithms.random_walk_sgd import RandomWalkSGD
from hushnet.protocols.privacy.composition import gaussian_mu
from hushnet.simulator.observers import deliveries_of

from .test_audit import AGENTS, TRIALS, attack
from .worlds import DELTA, Vectors, found, ran

STEP = 1e-3
"""So short that gradients stay what they are at zero, where every coordinate tells one bit."""
CASES = [
    (DecentralisedSGD, {"shared_noise": 1.0, "seeds_lost": 0.2}),
    (DecentralisedSGD, {"order": "adapt_then_combine", "gossip_steps": 2}),
    (RandomWalkSGD, {}),
]


def world_of(seed: int):
    """A random small world, run twice alike: with a log, and with what was sent."""
    rng, (protocol, own) = np.random.default_rng(seed), CASES[seed % len(CASES)]
    graph = nx.random_labeled_tree(AGENTS, seed=seed)
    graph.add_edges_from(rng.choice(AGENTS, 2, replace=False).tolist() for _ in range(rng.integers(0, 4)))
    noise = {"mechanism": "gaussian", "multiplier": 1 / math.sqrt(TRIALS), "clip": 0.5 * math.sqrt(TRIALS)}
    fields = {"mu": 0.0, "step_size": STEP, "privacy": {**noise, "updates": int(rng.integers(1, 4))}, **own}
    network = {"latency": {"kind": "exponential", "mean": float(rng.uniform(0, 1))}, "loss": float(rng.uniform(0, 0.4))}
    bits = rng.choice([-1.0, 1.0], (AGENTS, TRIALS))
    features = np.zeros((3 * AGENTS, TRIALS))
    features[2::3] = bits
    given = {"protocol": protocol, "seed": seed, "time": 25.0, "network": network, "features": features}
    vectors = Vectors()
    ran(graph, fields, observer=vectors, **given)
    sent = {key: vector[:TRIALS] / STEP for key, vector in vectors.sent_at.items() if len(vector) >= TRIALS}
    return ran(graph, fields, **given), sent, bits


def audited(seed: int):
    """Pairs of stated and attacked mu of one coordinate, in which a bit moves a gradient by all of its sensitivity."""
    world, sent, bits = world_of(seed)
    deliveries, stated, shared = deliveries_of(world), found(world), world.protocol.step_noise.shared
    for observer in range(AGENTS):
        makers = np.unique(deliveries.made_by[(deliveries.receiver == observer) & deliveries.heard])
        seen = [sent[int(deliveries.agent[w]), int(deliveries.tick[w])] for w in makers if w >= 0]
        seen += [vector for (agent, _), vector in sorted(sent.items()) if agent == observer]
        seen += [] if shared is None else list(shared.at(np.full(3, observer), np.arange(3)))
        for source in set(range(AGENTS)) - {observer} if seen else ():
            others = bits[np.arange(AGENTS) != source]
            epsilon = stated.epsilons[observer, source]
            mu = 0.0 if epsilon == 0 else gaussian_mu(epsilon, DELTA) / math.sqrt(TRIALS)
            yield mu, *attack(np.array([*seen, *others]), bits[source])


def check(seeds: range) -> None:
    stated, proved, estimated = np.array([pair for seed in seeds for pair in audited(seed)]).T
    assert (proved <= stated + 1e-9).all()
    near = stated > 0.4
    assert near.sum() > len(seeds)
    assert (proved[near] > 0.4 * stated[near]).mean() > 0.3
    assert 0.5 < np.median(estimated[near] / stated[near]) < 1.05


def test_no_attack_of_an_agent_comes_below_its_bound():
    check(range(6))


@pytest.mark.slow
def test_no_attack_comes_below_its_bound_in_two_hundred_worlds():
    check(range(100, 300))
