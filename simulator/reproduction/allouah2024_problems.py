"""Accountant of Allouah, Koloskova, El Firdoussi, Jaggi and Guerraoui (2024), on the graph of their scenario."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np

from .cyffers2022_problems import DELTA

SIDE = 4


def accountant(multiplier: float, shared: float, gradients: int, *, known: int) -> float:
    """Epsilon at `DELTA` of the printed accountant, where the seeds of some agents are known.

    A gradient has the divergence alpha e with e = 2 clip^2 max_u [(sigma_cdp^2 I + sigma_cor^2 L)^-1]_uu, L the
    Laplacian of all others, clip = sigma_cdp / (2 multiplier), and T of them are T e + 2 sqrt(T e log(1 / delta)) (the
    authors' code, github.com/elfirdoussilab1/DECOR, `rdp_account` and `rdp_compose_convert`).
    """
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(SIDE, SIDE, periodic=True))
    others = np.arange(known, len(graph))
    laplacian = nx.laplacian_matrix(graph.subgraph(others.tolist()), nodelist=others.tolist()).toarray()
    left = float(np.diag(np.linalg.inv(np.eye(len(others)) + shared**2 * laplacian)).max())
    divergence = gradients * left / (2 * multiplier**2)
    return divergence + 2 * math.sqrt(divergence * math.log(1 / DELTA))
