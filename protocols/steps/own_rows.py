"""Operators over sums in place, and over the own rows of one agent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.clipping import clip_rows
from ...agents.optimisation.splitting import minimise_rows

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]

OTHER_COUNT = "there are more or fewer values than rows"
OTHER_LENGTH = "what is added to a sum has another length"
OTHER_LENGTHS = "a sum, the total that was told, and what was taken in of it have different lengths"
OTHER_SIZE = "a factor has as many numbers as the square of what it is to solve for"


# Sums in place.


def add_scaled(total: Array, weight: float, vector: Array) -> None:
    """Add a multiple of a vector to a sum in place: ``total += weight * vector``.

    Parameters
    ----------
    total, vector : (p,) float64
        The same vector, or two that do not overlap.
    weight : float

    Raises
    ------
    ValueError
        If their lengths differ.
    """
    if len(vector) != len(total):
        raise ValueError(OTHER_LENGTH)
    total += weight * vector


def take_in(total: Array, told: Array, taken: Array) -> None:
    """Take in a running total: add what it has grown by since it was last taken in, and note it as taken in.

    Where a sender tells the total of all that it has ever given, and a receiver takes in what is new of it, nothing is
    lost with messages that are lost or overtake each other (running sums: Hadjicostis, Vaidya and Dominguez-Garcia
    2016).

    Parameters
    ----------
    total : (p,) float64
        What ``told - taken`` is added to, in place.
    told : (p,) float64
        The newest total heard of.
    taken : (p,) float64
        The total when it was last taken in; becomes ``told``. The three do not overlap.

    Raises
    ------
    ValueError
        If their lengths differ.
    """
    if not len(total) == len(told) == len(taken):
        raise ValueError(OTHER_LENGTHS)
    total += told - taken
    taken[:] = told


# The own rows, of one agent.


def check_linear(me: Any) -> None:
    """Raise a `ValueError` if the task's model is not the linear one, which is all that an operator is for."""
    if me.tables_.task.model is not None:
        raise ValueError(
            "this operator is for linear models, and gradients are for all; set task.model to {kind: linear}"
        )


def _check_count(given: Any, wanted: int) -> None:
    """Refuse another number of values than there are rows: NumPy would repeat a single one."""
    if np.shape(given) != (wanted,):
        raise ValueError(OTHER_COUNT)


def slopes(me: Any, scores: Array, rows: Ranks | None = None) -> Array:
    """(m,) derivatives of the task's loss with respect to the scores of the agent's own rows.

    Parameters
    ----------
    me : record
    scores : (m,) float64
    rows : (m,) int64, optional
        Ranks among the agent's own rows whose scores these are; all of them by default.
    """
    labels = me.labels if rows is None else me.labels[rows]
    _check_count(scores, len(labels))
    return me.tables_.loss.slope(scores, labels)


def bends(me: Any, scores: Array) -> Array:
    """(m,) second derivatives of the task's loss with respect to the scores of the agent's own rows."""
    _check_count(scores, len(me.labels))
    return me.tables_.loss.second_slope(scores, me.labels)


def scores_of(me: Any, model: Array, rows: Ranks | None = None) -> Array:
    """(m,) products of the agent's own rows, or of those with these ranks, with a linear model."""
    check_linear(me)
    return (me.features if rows is None else me.features[rows]) @ model


def sum_of_rows(me: Any, weights: Array, rows: Ranks | None = None) -> Array:
    """(p,) sum of the agent's own rows, or of those with these ranks, each times a weight."""
    return weights @ (me.features if rows is None else me.features[rows])


def rows_minimised(me: Any, curvature: float, linear: Array) -> Array:
    """The minimisers of phi(z, y_k) + (curvature / 2) z^2 - linear_k z, one scalar problem for each of the own rows.

    By `hushnet.agents.optimisation.splitting.minimise_rows`; for smooth losses of bounded slope.

    Parameters
    ----------
    me : record
    curvature : float
        > 0.
    linear : (m,) float64

    Returns
    -------
    (m,) float64
    """
    _check_count(linear, len(me.labels))
    return minimise_rows(me.tables_.loss, me.labels, curvature=curvature, linear=linear)


def clipped(vector: Array, bound: float) -> Array:
    """A vector scaled down to an l2 norm if it is longer, as `hushnet.agents.clipping.clip_rows` has it.

    Parameters
    ----------
    vector : (k,) float64
        Zeros take its place if it is not finite. In a batch, (B, k).
    bound : float
        > 0; infinite to leave vectors as they are.

    Returns
    -------
    (k,) float64
    """
    if math.isinf(bound):
        return vector
    rows = np.asarray(vector, dtype=np.float64)
    return clip_rows(rows, bound) if rows.ndim == 2 else clip_rows(rows[None, :], bound)[0]


def solved_by(factor: Array, right: Array) -> Array:
    """The solution of L L' x = right, by the lower Cholesky factor of a positive definite matrix.

    Parameters
    ----------
    factor : (k k,) float64
        L row after row, as a block of an agent keeps it; what is above its diagonal is not read.
    right : (k,) float64

    Returns
    -------
    (k,) float64

    Raises
    ------
    ValueError
        If the factor has another size.
    """
    from scipy.linalg import cho_solve

    if len(factor) != len(right) ** 2:
        raise ValueError(OTHER_SIZE)
    return cho_solve((factor.reshape(len(right), -1), True), right, check_finite=False)
