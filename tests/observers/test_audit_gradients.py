"""Attacks by single agents where gradients are noisy: shared noise, gossip rounds between gradients, and a token."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD
from hushnet.protocols.algorithms.random_walk_sgd import RandomWalkSGD

from .test_audit import AGENTS, TRIALS, check
from .worlds import Vectors, ran

STEP = 1e-3
"""So short that gradients stay what they are at zero, where every coordinate tells one bit."""
CASES = [
    (DecentralisedSGD, {"shared_noise": 1.0, "seeds_lost": 0.2}),
    (DecentralisedSGD, {"order": "adapt_then_combine", "gossip_steps": 2}),
    (RandomWalkSGD, {}),
]


def world_of(seed: int):
    """A random small world, run twice alike: with a log, and with what was sent; the bits; and noise that is shared."""
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
    world = ran(graph, fields, **given)
    shared = world.protocol.step_noise.shared
    return world, sent, bits, lambda agent: [] if shared is None else list(shared.at(np.full(3, agent), np.arange(3)))


def test_no_attack_of_an_agent_comes_below_its_bound():
    check(world_of, range(6), 0.5)


@pytest.mark.slow
def test_no_attack_comes_below_its_bound_in_two_hundred_worlds():
    check(world_of, range(100, 300), 0.5)
