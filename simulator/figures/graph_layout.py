"""Places of agents on a page: as their topology is drawn by hand, or with neighbours near, the same every time."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXACT = 150
"""Agents up to which distances on the page are those in the graph."""

SPRUNG = 400
"""Agents up to which a graph is laid out by springs."""


@cache
def graph_layout(
    agents: int, edges: tuple[tuple[int, int, float], ...], drawn_as: str = "", rows: int | None = None
) -> NDArray[np.float64]:
    """(n, 2) places of the agents, the same for the same graph, from its edges (tail, head, weight), one for each pair.

    Where the topology is drawn by hand, as circle, star or grid of so many rows
    (`hushnet.simulator.network.graphs.Topology.drawn_as`), it is so. Small sparse graphs are laid out so that distances
    are those in the graph (Kamada and Kawai 1989), larger ones by springs (Fruchterman and Reingold 1991) that start
    from the graph's eigenvectors, which unfolds rings, and large ones by these alone.
    """
    if drawn_as == "grid" and rows:
        return np.array([(agent % (agents // rows), agent // (agents // rows)) for agent in range(agents)], dtype=float)
    if drawn_as == "star" and agents > 1:
        return np.vstack([np.zeros((1, 2)), _circle(agents - 1)])
    if drawn_as in ("circle", "star") or agents < 3:
        return _circle(agents)
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(agents))
    graph.add_weighted_edges_from(edges)
    if agents > SPRUNG:
        return _by_spectrum(nx.laplacian_matrix(graph).astype(np.float64))
    connected = nx.is_connected(graph)
    if connected and agents <= EXACT and len(edges) <= 8 * agents:
        places = nx.kamada_kawai_layout(graph, weight=None)
    else:
        start = nx.spectral_layout(graph) if connected else None
        places = nx.spring_layout(graph, pos=start, seed=0, k=2.0 / np.sqrt(agents))
    return np.array([places[agent] for agent in range(agents)])


def _by_spectrum(laplacian: Any) -> NDArray[np.float64]:
    """The second and third eigenvectors: as `networkx.spectral_layout`, whose search begins anywhere."""
    from scipy.sparse.linalg import eigsh

    n = laplacian.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(laplacian, 3, which="SM", ncv=max(7, int(np.sqrt(n))), v0=start)
    return vectors[:, np.argsort(values)[1:]]


def _circle(n: int) -> NDArray[np.float64]:
    angles = 2 * np.pi * np.arange(n) / max(n, 1) - np.pi / 2
    return np.column_stack([np.cos(angles), np.sin(angles)])
