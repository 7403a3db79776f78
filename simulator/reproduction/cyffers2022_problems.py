"""Bounds that Cyffers, Even, Bellet and Massoulie (2022) print, on a grid with joined borders."""

from __future__ import annotations

import math
from functools import cache

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...protocols.privacy.composition import gaussian_mu

SIDE, NEIGHBOURS = 8, 4
"""Agents on a side of the grid, and neighbours of each."""

DELTA = 1e-4
"""Where the scenarios read epsilon."""

Array = NDArray[np.float64]


def mu_of(epsilon: float) -> float:
    """The mu of the Gaussian release that has an epsilon at `DELTA`; 0 of nothing."""
    return gaussian_mu(epsilon, DELTA) if epsilon > 0 else 0.0


def theorem_1(rounds: int, distance: int) -> float:
    """Largest mu that theorem 1 prints for two agents at a distance, after rounds of simple gossip.

    A Gaussian release of mu has the Renyi divergence alpha mu^2 / 2 at every order alpha. The theorem gives, where
    Delta = sigma, alpha / 2 times the sum, over messages t < rounds and neighbours w of the observer, of
    (W^t)_uw^2 / |(W^t)_w|^2; the authors' code (github.com/totilas/muffliato) takes at most what the release has, 1.
    """
    squares, apart = _printed(rounds)
    return math.sqrt(min(1.0, float(squares[apart == distance].max())))


def stop_after() -> int:
    """T^stop, the rounds of accelerated gossip that the paper asks for, with noise above the spread of values."""
    return math.ceil(math.log(SIDE**2) / math.sqrt(spectral_gap()))


def spectral_gap() -> float:
    """Gap of the gossip matrix: 1 less its second eigenvalue."""
    return 1.0 - float(np.linalg.eigvalsh(_weights(_grid()))[-2])


def _grid() -> nx.Graph:
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(SIDE, SIDE, periodic=True), ordering="sorted")


def _weights(graph: nx.Graph) -> Array:
    """Metropolis's weights of a graph whose agents all have as many neighbours."""
    return (nx.to_numpy_array(graph) + np.eye(len(graph))) / (1 + NEIGHBOURS)


@cache
def _printed(rounds: int) -> tuple[Array, NDArray[np.int64]]:
    """(n, n) what theorem 1 prints of mu^2, a row an observer, and the distances of agents."""
    graph = _grid()
    links, weights, power = nx.to_numpy_array(graph), _weights(graph), np.eye(len(graph))
    squares = np.zeros_like(power)
    for _ in range(rounds):
        shares = power**2 / (power**2).sum(axis=1, keepdims=True)
        squares += links @ shares
        power = weights @ power
    return squares, np.asarray(nx.floyd_warshall_numpy(graph)).astype(np.int64)
