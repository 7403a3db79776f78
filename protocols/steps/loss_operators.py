"""Operators of an agent's own loss: its value, gradients and minimisers, for one agent and for a batch.

Shapes are those of one agent; in a batch, vectors of an agent are (B, p), its numbers (B, 1), and values over its edges
(R, ...), all edges of the batch's agents in order. An agent's row has the same bits alone and in any batch.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents import losses
from ...agents.clipping import clip_rows
from ...agents.loss_codes import UNKNOWN
from ...agents.optimisation.solvers import minimise_local
from ...agents.optimisation.splitting import minimise_rows
from ...agents.tables import Shard
from . import kernels as rows_of
from .batch_record import ranks_of
from .record import Record, segments

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


def local_gradient(me: Record, model: Array) -> Array:
    """Gradient of the agent's local objective at a model: of its mean loss, and 2 lambda_i of the model.

    Where the protocol's noise relies on clipping, every example's gradient is clipped as it asks, or their mean
    (`hushnet.protocols.steps.declarations.StepNoise.clip` and ``clip_mean``).

    Parameters
    ----------
    me : record
    model : (p,) float64

    Returns
    -------
    (p,) float64
        Zeros for an agent without rows.
    """
    mean = _mean_gradient if me.tables_.clip_mean is None else _clipped_mean_gradient
    return mean(me, model, me.decays_, None)


def local_loss(me: Record, model: Array) -> Any:
    """The agent's local objective at a model: its mean loss, and lambda_i |model|^2, as `local_gradient` derives.

    Parameters
    ----------
    me : record
    model : (p,) float64

    Returns
    -------
    float
        In a batch, (B, 1). Zero for an agent without rows.
    """
    tables, regularisation = me.tables_, me.decays_ / 2.0
    models = me.matrix_(model, tables.dimension)
    out = np.empty((len(models), 1))
    if tables.task.model is not None:
        features, labels, starts = _rows_of(me, None)
        values = tables.loss.value(tables.task.model.scores(models, features, starts), labels)
        for b, (first, last) in enumerate(pairwise(starts.tolist())):
            out[b] = values[first:last].mean() + regularisation[b] * (models[b] @ models[b]) if last > first else 0.0
    elif tables.code != UNKNOWN:
        features, labels, offsets, agents = me.data_
        rows_of.objectives(features, labels, offsets, agents, models, regularisation, tables.code, out)
    else:
        for b, agent in enumerate(me.agents_.tolist()):
            out[b] = losses.local_loss(models[b], me.source_.shard(agent), tables.loss, float(regularisation[b]))
    return me.sized_(out, None)


def loss_gradient(me: Record, model: Array, rows: Any = None) -> Array:
    """Gradient of the mean loss over some of the agent's rows, without regulariser; clipped as by `local_gradient`.

    Parameters
    ----------
    me : record
    model : (p,) float64
    rows : (k,) int64 or Sample, optional
        Ranks among the agent's own rows, as `draw_rows` and `draw_each` give them; all of them by default.

    Returns
    -------
    (p,) float64
        Zeros for no rows.
    """
    mean = _mean_gradient if me.tables_.clip_mean is None else _clipped_mean_gradient
    return mean(me, model, np.zeros(len(me.agents_)), rows)


def _clipped_mean_gradient(me: Record, model: Array, decays: Array, rows: Any) -> Array:
    """Gradients of `_mean_gradient`, of which each agent's mean is clipped."""
    tables, models = me.tables_, me.matrix_(model)
    assert tables.clip_mean is not None
    norm, bound = tables.clip_mean
    means = me.matrix_(_mean_gradient(me, model, np.zeros(len(decays)), rows))
    decays = np.where(tables.counts[me.agents_] > 0, decays, 0.0)
    return me.given_(clip_rows(means, bound, norm) + decays[:, None] * models)


def _mean_gradient(me: Record, model: Array, decays: Array, rows: Any) -> Array:
    """Gradients of mean losses over some rows or all, in which case ``decays`` times the models are added."""
    tables, code = me.tables_, me.tables_.code
    if code == UNKNOWN:
        if tables.task.model is not None:
            return _gradient_of_model(me, model, decays, rows)
        return _gradient_by_shards(me, model, decays / 2.0, rows)
    models, forms, (norm, bound) = me.matrix_(model, tables.dimension), me.source_.forms, tables.clip
    (features, labels, offsets, agents), out = me.data_, np.empty(models.shape)
    if rows is None:
        forms[rows_of.gradients](features, labels, offsets, agents, models, decays, code, norm, bound, out)
    else:
        chosen = ranks_of(me, rows)
        forms[rows_of.gradients_at](features, labels, offsets, agents, models, *chosen, code, norm, bound, out)
    return me.given_(out)


def _rows_of(me: Record, rows: Any) -> tuple[Array, Array, Ranks]:
    """Features and labels of the agents' own rows, or of those with some ranks, and (B + 1,) where each's begin."""
    features, labels, offsets, agents = me.data_
    if rows is None:
        counts = offsets[agents + 1] - offsets[agents]
        places, starts = segments(offsets[agents], counts), rows_of.table_starts(counts)
    else:
        ranks, starts = ranks_of(me, rows)
        places = ranks + np.repeat(offsets[agents], np.diff(starts))
    return features[places], labels[places], starts


def _gradient_of_model(me: Record, model: Array, decays: Array, rows: Any) -> Array:
    """Gradients of a model that is not linear, plus ``decays`` times the models of agents with rows."""
    tables, noise = me.tables_, me.tables_.protocol.step_noise
    models = me.matrix_(model, tables.dimension)
    features, labels, starts = _rows_of(me, rows)
    clip = None if noise is None else noise.clip
    out = tables.task.model.mean_gradients(models, features, labels, starts, tables.loss, clip)
    if decays.any():
        out += np.where(np.diff(starts) > 0, decays, 0.0)[:, None] * models
    return me.given_(out)


def _gradient_by_shards(me: Record, model: Array, regularisation: Array, rows: Any) -> Array:
    """Gradients agent by agent, of losses and data that kernels do not know."""
    tables, models = me.tables_, me.matrix_(model)
    ranks, starts = (None, None) if rows is None else ranks_of(me, rows)
    out, noise = np.empty_like(models), tables.protocol.step_noise
    for b, agent in enumerate(me.agents_.tolist()):
        shard = me.source_.shard(agent)
        if ranks is not None and starts is not None:
            own = ranks[starts[b] : starts[b + 1]]
            shard = Shard(shard.features[own], shard.labels[own])
        given = models[b], shard, tables.loss, float(regularisation[b])
        if noise is not None and noise.clip is not None:
            out[b] = losses.clipped_gradient(*given, *noise.clip)
        else:
            out[b] = losses.local_gradient(*given)
    return me.given_(out)


def minimised(me: Record, weight: Any, curvature: Any, linear: Array, start: Array, tolerance: Any) -> Array:
    """The minimiser of an agent's mean loss between a quadratic and a linear term.

    It minimises weight * mean_k phi(x_k . f, y_k) + (curvature / 2) |f|^2 - linear . f over the agent's own rows
    (`hushnet.agents.optimisation.solvers.minimise_local`).

    Parameters
    ----------
    me : record
    weight : float
        >= 0.
    curvature : float
        > 0.
    linear, start : (p,) float64
        ``start`` changes the effort, not the result.
    tolerance : float
        Norm of the gradient that counts as none, > 0.

    Returns
    -------
    (p,) float64
    """
    terms = (me.column_(weight), me.column_(curvature), me.column_(tolerance))
    return me.given_(minimisers_of(me, *terms, me.matrix_(linear), me.matrix_(start)))


def minimisers_of(
    me: Record, weights: Array, curvatures: Array, tolerances: Array, linear: Array, starts: Array
) -> Array:
    """(B, p) minimisers, as `minimised`, of (B,) terms and (B, p) rows."""
    tables, out = me.tables_, np.empty(np.shape(linear))
    check_linear(me)
    if tables.code != UNKNOWN and tables.loss.smooth:
        features, labels, offsets, agents = me.data_
        if linear.shape[1] != features.shape[1] or starts.shape != linear.shape:
            raise ValueError(OTHER_COUNT)
        # Copies, so that all callers have one compiled form: other forms may round otherwise.
        given = (np.array(one, order="C") for one in (weights, curvatures, linear, starts, tolerances))
        rows_of.minimisers(features, labels, offsets, agents, *given, tables.code, out)
        return out
    for b, agent in enumerate(me.agents_.tolist()):
        out[b], _ = minimise_local(
            me.source_.shard(agent),
            tables.loss,
            weight=float(weights[b]),
            curvature=float(curvatures[b]),
            linear=linear[b],
            start=starts[b],
            tolerance=float(tolerances[b]),
        )
    return out


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


def accumulate(total: Array, told: Array, taken: Array) -> None:
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
