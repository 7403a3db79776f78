"""Where agents stand: as their topology is drawn by hand, and the same every time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.graph import Graph

MOST_SPRUNG = 400
"""Agents of a graph that is laid out by springs; beyond it stand by their spectrum."""


def positions(graph: Graph, drawn_as: str, rows: int | None = None, places: object = None) -> NDArray[np.float64]:
    """Coordinates in [0, 1].

    Parameters
    ----------
    graph : Graph
    drawn_as : str
        Of the topology (`hushnet.simulator.network.graphs.Topology.drawn_as`).
    rows : int, optional
        Of a grid.
    places : (n, 2) array_like, optional
        Where the task says that agents are.

    Returns
    -------
    (n, 2) array
    """
    n = graph.agents
    if places is not None:
        return _scaled(np.asarray(places, dtype=np.float64))
    if drawn_as == "grid" and rows:
        return _scaled(np.array([(agent % (n // rows), agent // (n // rows)) for agent in range(n)], dtype=np.float64))
    if drawn_as == "star":
        return np.vstack([[0.5, 0.5], _circle(n - 1)]) if n > 1 else np.array([[0.5, 0.5]])
    if drawn_as == "circle" or n < 3:
        return _circle(n)
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(range(n))
    weights = graph.weights / max(float(graph.weights.max(initial=0.0)), 1e-12)
    drawn.add_weighted_edges_from(zip(graph.tails.tolist(), graph.heads.tolist(), weights.tolist(), strict=True))
    if n > MOST_SPRUNG:
        return _scaled(_by_spectrum(nx.laplacian_matrix(drawn).astype(np.float64)))
    found = nx.spring_layout(drawn, seed=1, iterations=80)
    return _scaled(np.array([found[agent] for agent in range(n)], dtype=np.float64))


def _by_spectrum(laplacian: Any) -> NDArray[np.float64]:
    """The second and third eigenvectors: as `networkx.spectral_layout`, whose search begins anywhere."""
    from scipy.sparse.linalg import eigsh

    n = laplacian.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(laplacian, 3, which="SM", ncv=max(7, int(np.sqrt(n))), v0=start)
    return vectors[:, np.argsort(values)[1:]]


def _circle(n: int) -> NDArray[np.float64]:
    angles = 2 * np.pi * np.arange(n) / max(n, 1) - np.pi / 2
    return 0.5 + 0.5 * np.column_stack([np.cos(angles), np.sin(angles)])


def _scaled(points: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = points.min(axis=0), points.max(axis=0)
    return (points - low) / np.where(high > low, high - low, 1.0)
