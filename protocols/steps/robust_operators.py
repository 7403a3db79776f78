"""Robust aggregation of an agent's own vector and those of its neighbours, some of whom may be byzantine.

Rules of aggregation take (k, width) vectors, the agent's own first, and give (width,). They see the rows of one agent
alone, so that it has the same bits alone and in any batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .operators import per_edge, received, segment_sum
from .record import Record

Array = NDArray[np.float64]
SMOOTHING = 1e-12
"""Distance below which a vector counts as the geometric median itself, relative to the largest."""
ITERATIONS = 1000


def aggregated(me: Record, own: Array, rule: Callable[[Array], Array]) -> Array:
    """Own vector and the neighbours' newest, by a rule of aggregation.

    Parameters
    ----------
    me : record
    own : (width,) float64
    rule : callable
        ``rule(vectors)`` of (k, width) vectors, 1 <= k <= 1 + degree: the own one, and those of the neighbours that
        were ever heard, in the order of their indices.

    Returns
    -------
    (width,) float64
    """
    kind, mine = me.tables_.first_kind, me.matrix_(own)
    heard, known = received(me), me.was_heard_(kind)
    out, end = np.empty(mine.shape), 0
    for b, degree in enumerate(me.degrees_.tolist()):
        begin, end = end, end + degree
        out[b] = rule(np.vstack((mine[b : b + 1], heard[begin:end][known[begin:end]])))
    return me.given_(out)


def coordinate_median(vectors: Array) -> Array:
    """Median of (k, width) vectors, coordinate by coordinate (Yin et al. 2018, definition 1)."""
    return np.median(vectors, axis=0)


def coordinate_trimmed_mean(vectors: Array, byzantine: int) -> Array:
    """Mean of (k, width) vectors without the smallest and largest, by coordinate (Yin et al. 2018, definition 2).

    Parameters
    ----------
    vectors : (k, width) float64
    byzantine : int
        How many of either end are left out, from 0; fewer where none would be left.
    """
    cut = min(byzantine, (len(vectors) - 1) // 2)
    return np.sort(vectors, axis=0)[cut : len(vectors) - cut].mean(axis=0)


def krum(vectors: Array, byzantine: int) -> Array:
    """Krum: the vector nearest to its k - f - 2 nearest, by the sum of squared distances (Blanchard et al. 2017).

    Parameters
    ----------
    vectors : (k, width) float64
        Of equals the first is taken.
    byzantine : int
        f >= 0, how many of them may be byzantine; at least one neighbour counts.
    """
    nearest = max(len(vectors) - byzantine - 2, 1)
    distances = np.array([((vectors - one) ** 2).sum(axis=1) for one in vectors])
    scores = np.sort(distances, axis=1)[:, 1 : 1 + nearest].sum(axis=1)  # without the distance to itself
    return vectors[int(np.argmin(scores))]


def geometric_median(vectors: Array) -> Array:
    """Geometric median of (k, width) vectors, argmin_v sum_i |v - v_i|, by Weiszfeld's steps (Pillutla et al. 2022).

    It starts at the coordinate-wise median and ends when a step is below 1e-12 of the largest distance, or after 1,000.
    """
    found = coordinate_median(vectors)
    for _ in range(ITERATIONS):
        distances = np.sqrt(((vectors - found) ** 2).sum(axis=1))
        scale = float(distances.max())
        if scale == 0.0:
            break
        weights = 1.0 / np.maximum(distances, SMOOTHING * scale)
        following = (weights[:, None] * vectors).sum(axis=0) / weights.sum()
        moved = float(np.sqrt(((following - found) ** 2).sum()))
        found = following
        if moved <= SMOOTHING * scale:
            break
    return found


def clipped_gossip(me: Record, own: Array, weights: Any, radius: float) -> Array:
    """Own vector moved towards the neighbours', each difference clipped (ClippedGossip, He et al. 2022, algorithm 1).

    It is x_i + sum_j w_ij clip(v_j - x_i, tau), clip(z, tau) = min(1, tau / |z|) z.

    Parameters
    ----------
    me : record
    own : (width,) float64
        x_i.
    weights : (degree,) float64
        w_ij, for instance of `mixing_weights`. In a batch, (R, 1).
    radius : float
        tau > 0.

    Returns
    -------
    (width,) float64
        A neighbour that was never heard moves it nowhere.
    """
    moves = received(me) - per_edge(me, own)
    moves = moves * me.was_heard_(me.tables_.first_kind)[:, None]
    sizes = np.sqrt((moves**2).sum(axis=1, keepdims=True))
    factors = radius / np.maximum(sizes, radius)
    return own + segment_sum(me, np.reshape(weights, (-1, 1)) * factors * moves)
