"""Bounds that papers print on what agents learn of each other, beside what `hushnet.simulator.observers` proves.

Most are the mu of a Gaussian release that tells no less: its Renyi divergence of order alpha is alpha mu^2 / 2, and
`hushnet.protocols.privacy.composition.gaussian_epsilon` gives its epsilon at a delta. Graphs are over agents
0, ..., n - 1, undirected and connected; weights of their edges do not count.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["decor_epsilon", "largest_by_distance", "muffliato_bound", "token_walk_bound"]

Array = NDArray[np.float64]


def muffliato_bound(graph: nx.Graph, rounds: int, *, corrected: bool = False) -> Array:
    """Bound on simple gossip of values that were released once, with Gaussian noise as large as what they may move by.

    It is an (n, n) array, mu in [0, 1] of agent u's value against agent v after so many rounds. mu_uv^2 is the sum,
    over messages t < rounds and neighbours w of v, of (W^t)_uw^2 / |(W^t)_w|^2, W with Metropolis's weights (Cyffers,
    Even, Bellet, Massoulie 2022, arXiv 2206.05091, theorem 1), and never taken for more than that of the release, 1
    (the authors' code, github.com/totilas/muffliato). Noise that is larger by a factor divides mu. The exact view
    (`hushnet.simulator.observers.linear_view`) may be above it, for the sum takes noise that messages share for
    independent. As later work takes it for corrected, the numerator has no square (the code of Bellet et al. 2025,
    arXiv 2510.17480, ``epsilon_upper_bound``, for one release); on a path the exact view is above that.
    """
    links, weights = _links(graph), _metropolis(graph, 1.0)
    squares, power = np.zeros_like(links), np.eye(len(links))
    for _ in range(rounds):
        squares += ((power if corrected else power**2) / (power**2).sum(axis=0)) @ links
        power = weights @ power
    return np.sqrt(np.minimum(squares, 1.0))


def token_walk_bound(graph: nx.Graph, mu: float, visits: int) -> Array:
    """Bound on a token that walks at random, averaged over its routes.

    It is an (n, n) array, mu >= 0 of agent u against agent v, where a release at a visit has `mu`. mu_uv^2 is at most 2
    mu^2 T / n (log T / n - log(I - W + 1 1^T / n)_uv) for T >= 1 visits of all n agents together, W the walk's matrix
    with Metropolis's weights (Cyffers, Bellet, Upadhyay 2024, arXiv 2402.07471; the authors' code,
    github.com/totilas/DPrandomwalk, ``priv_global``), and never taken for more than that of an agent's T / n visits.
    `hushnet.simulator.observers.walk_bound` has the bound on the route that a token took.
    """
    agents = len(graph)
    values, vectors = np.linalg.eigh(np.eye(agents) - _metropolis(graph, 0.0) + 1 / agents)
    logarithm = (vectors * np.log(values)) @ vectors.T
    most = mu**2 * visits / agents
    return np.sqrt(np.clip(2 * most * (math.log(visits) / agents - logarithm), 0.0, most))


def decor_epsilon(
    graph: nx.Graph,
    multiplier: float,
    shared_noise: float,
    gradients: int,
    delta: float,
    *,
    known: Collection[int] = (),
) -> float:
    """Epsilon of every agent where neighbours share noise (DECOR), against whoever hears all and knows some seeds.

    A gradient has the Renyi divergence alpha e of order alpha, 2 multiplier^2 e the largest ((I + shared_noise^2
    L)^-1)_uu, L the Laplacian of those whose seeds are unknown, and T of them have T e + 2 sqrt(T e log(1 / delta))
    (Allouah et al. 2024, arXiv 2405.01031; the authors' code, github.com/elfirdoussilab1/DECOR, ``rdp_account`` and
    ``rdp_compose_convert``). The same noise in `hushnet.simulator.observers.learned` is read without divergences.

    Parameters
    ----------
    graph : networkx.Graph
    multiplier : float
        Deviation of own noise over the sensitivity of a gradient, > 0.
    shared_noise : float
        Deviation of the noise that two neighbours share over that of own noise, >= 0.
    gradients : int
        Of each agent, at least 0.
    delta : float
        In (0, 1).
    known : collection of int
        Agents whose seeds are known.
    """
    links = np.delete(np.delete(_links(graph), list(known), axis=0), list(known), axis=1)
    laplacian = np.diag(links.sum(axis=0)) - links
    left = float(np.diag(np.linalg.inv(np.eye(len(links)) + shared_noise**2 * laplacian)).max())
    divergence = gradients * left / (2 * multiplier**2)
    return divergence + 2 * math.sqrt(divergence * math.log(1 / delta))


def largest_by_distance(graph: nx.Graph, bounds: Array) -> dict[int, float]:
    """The largest of (n, n) bounds on two agents at each distance in the graph, as ``epsilon_observers`` has it."""
    from scipy.sparse.csgraph import shortest_path

    apart = shortest_path(_links(graph), unweighted=True)
    return {int(distance): float(bounds[apart == distance].max()) for distance in np.unique(apart[apart > 0])}


def _links(graph: nx.Graph) -> Array:
    import networkx as nx

    return (nx.to_numpy_array(graph, range(len(graph))) != 0).astype(np.float64)


def _metropolis(graph: nx.Graph, own: float) -> Array:
    """(n, n) doubly stochastic weights 1 / (own + the larger degree of two neighbours)."""
    links = _links(graph)
    degrees = links.sum(axis=0)
    weights = links / (own + np.maximum.outer(degrees, degrees))
    return weights + np.diag(1.0 - weights.sum(axis=0))
