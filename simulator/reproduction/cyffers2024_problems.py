"""Bound that Cyffers, Bellet and Upadhyay (2024) print for two agents of a walk, on the graph of their scenario."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np

from .cyffers2022_problems import mu_of

__all__ = ["mu_of", "printed"]

AGENTS, REACH = 16, 2


def printed(mu: float, visits: int, distance: int) -> float:
    """Largest mu that the paper prints for two agents at a distance, where each visit is a release of a mu.

    The divergence of order alpha, averaged over routes of T visits of n agents, is at most
    alpha T log T / (sigma^2 n^2) - alpha T / (sigma^2 n) log(I - W + 1 1^T / n)_uv, W the walk's matrix, 1 / sigma = mu
    (the authors' code, github.com/totilas/DPrandomwalk, `priv_global`); of one Gaussian release it is alpha mu^2 / 2.
    Never more than that of all visits of an agent.
    """
    graph = nx.circulant_graph(AGENTS, range(1, REACH + 1))
    values, vectors = np.linalg.eigh(nx.to_numpy_array(graph) / (2 * REACH))
    logarithms = -(vectors[:, :-1] * np.log1p(-values[:-1])) @ vectors[:, :-1].T
    apart = np.asarray(nx.floyd_warshall_numpy(graph))
    spread = float(logarithms[apart == distance].max())
    square = 2 * mu**2 * visits / AGENTS * (math.log(visits) / AGENTS + spread)
    return math.sqrt(min(square, mu**2 * visits / AGENTS))
