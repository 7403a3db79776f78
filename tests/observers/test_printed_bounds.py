"""Printed bounds on graphs of which they have a closed form."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hushnet.protocols.privacy.composition import gaussian_epsilon
from hushnet.simulator.observers.printed_bounds import (
    decor_epsilon,
    largest_by_distance,
    muffliato_bound,
    token_walk_bound,
)


@pytest.mark.parametrize(
    ("agents", "rounds", "pair", "square"),
    [
        (2, 0, (0, 1), 0),  # nothing was sent
        (2, 1, (0, 1), 1),  # the first message is the release itself
        (3, 1, (0, 2), 0),
        (3, 2, (0, 2), 1 / 3),  # W_01^2 / |W_1|^2, all three weights of agent 1 being 1 / 3
        (3, 2, (1, 0), 1),  # never more than the release
        (3, 3, (0, 2), 1 / 3 + 1 / 3),  # (W^2)_1 has equal weights, too
    ],
)
def test_muffliato_on_a_path(agents, rounds, pair, square):
    assert muffliato_bound(nx.path_graph(agents), rounds)[pair] == pytest.approx(math.sqrt(square))


def test_muffliato_corrected_is_no_bound_on_a_path():
    """Agent 0 hears weights of agent 1 over agents 0 to 1, to 2, ..., and so solves for every value one by one."""
    path, power, heard = nx.path_graph(6), np.eye(6), [np.eye(6)[0]]
    weights = nx.to_numpy_array(path) / 3
    weights += np.diag(1 - weights.sum(axis=0))
    for _ in range(4):
        heard.append(power[1])
        power = weights @ power
    seen = np.linalg.pinv(np.array(heard)) @ np.array(heard)  # projects onto what is seen
    assert muffliato_bound(path, 4, corrected=True)[4, 0] ** 2 == pytest.approx(
        weights[3, 4] ** 3 / sum(np.linalg.matrix_power(weights, 3)[1] ** 2)
    )
    assert muffliato_bound(path, 4, corrected=True)[4, 0] < math.sqrt(seen[4, 4]) == pytest.approx(1)


def test_a_token_on_a_complete_graph():
    """I - W + 1 1^T / n has the eigenvalue n / (n - 1) beside 1, so that its logarithm is -log(n / (n - 1)) / n."""
    agents, visits, mu = 10, 40, 0.3
    bound = token_walk_bound(nx.complete_graph(agents), mu, visits)
    square = 2 * mu**2 * visits / agents**2 * math.log(visits * agents / (agents - 1))
    assert bound[3, 7] == pytest.approx(math.sqrt(square))
    assert token_walk_bound(nx.complete_graph(2), mu, 400)[0, 1] == pytest.approx(mu * math.sqrt(200))


@pytest.mark.parametrize(("known", "left"), [((), (1 + 4) / (1 + 3 * 4)), ((0,), (1 + 4) / (1 + 2 * 4)), ((0, 1), 1)])
def test_decor_on_a_triangle(known, left):
    """(I + s^2 L)^-1 of a complete graph has (1 + s^2) / (1 + n s^2) on its diagonal; the exact epsilon is smaller."""
    divergence = 5 * left / (2 * 3.0**2)
    epsilon = decor_epsilon(nx.complete_graph(3), 3.0, 2.0, 5, 0.01, known=known)
    assert epsilon == pytest.approx(divergence + 2 * math.sqrt(divergence * math.log(100)))
    assert epsilon > gaussian_epsilon(math.sqrt(2 * divergence), 0.01)


def test_the_largest_at_each_distance():
    path = nx.path_graph(4)
    bounds = muffliato_bound(path, 2)
    assert largest_by_distance(path, bounds) == {
        1: bounds[0, 1],
        2: max(bounds[0, 2], bounds[1, 3], bounds[2, 0], bounds[3, 1]),
        3: bounds[0, 3],
    }
