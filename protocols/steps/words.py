"""The words that steps are written in.

Each is a function of the record ``me`` with two forms: the Python below, and a compiled one (`word_form`) that is
chosen when a run is built, for its loss, its noise and the type of its rows. They agree up to the rounding of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...agents import losses
from ...agents.clipping import clip_rows
from ...agents.optimisation.splitting import minimise_rows
from ...agents.tables import Shard
from . import gradient_forms, neighbour_forms, noise_forms, row_forms
from .word_form import OTHER_COUNT, Form

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
Word = TypeVar("Word", bound=Callable[..., Any])


def word(form: Form) -> Callable[[Word], Word]:
    """Give a word its compiled form."""

    def give(function: Word) -> Word:
        function.compiled_form = form  # type: ignore[attr-defined]
        return function

    return give


def as_written(function: Word) -> Word:
    """Compile a function of a text without reordering sums, where both ends of an edge must round alike.

    Otherwise compiled arithmetic may add in another order, and so find sums that differ by rounding.
    """
    function.as_written = True  # type: ignore[attr-defined]
    return function


def _check_count(given: Any, wanted: int) -> None:
    """Refuse another number of values than there are rows: NumPy would repeat a single one."""
    if np.shape(given) != (wanted,):
        raise ValueError(OTHER_COUNT)


def received(me: Any, kind: str | None = None) -> Array:
    """(degree, width) the neighbours' newest vectors of a kind, by default the first, as `View.received`.

    Who sends none of a kind that others send is there with zeros.
    """
    names, view = me._names, me._view
    kind = kind or next(iter(names.layout.messages))
    values = view.received(kind)
    if isinstance(values, np.ndarray):
        return values
    padded = np.zeros((len(values), int(names.heard_widths[kind][view.agent])))
    for row, value in zip(padded, values, strict=True):
        row[: len(value)] = value
    return padded


@word(neighbour_forms.AVERAGE)
def average(me: Any) -> Array:
    """Weighted mean of the neighbours' newest vectors, sum_j W_ij v_j / sum_j W_ij.

    Parameters
    ----------
    me : record
        Of an agent with neighbours.

    Returns
    -------
    (width,) float64
        Who was never heard counts as the agent's own block (`MessageKind.mirrors`), or as zeros.
    """
    view = me._view
    return view.weights @ received(me) / view.weights.sum()


@word(neighbour_forms.HEARD_OF)
def heard_of(me: Any, rank: int) -> Array:
    """(width,) the newest vector of one neighbour, by its rank; the own block or zeros if it was never heard."""
    return received(me)[rank]


@word(neighbour_forms.HEARD_SUM)
def heard_sum(me: Any) -> Array:
    """(width,) sum of the neighbours' newest vectors, with the own block or zeros for those that were never heard."""
    return received(me).sum(axis=0)


@word(neighbour_forms.WEIGHTED_SUM)
def weighted_sum(me: Any, weights: Array) -> Array:
    """Sum of the neighbours' newest vectors with weights of its own, as `heard_sum`.

    Parameters
    ----------
    me : record
    weights : (degree,) float64

    Returns
    -------
    (width,) float64
    """
    return weights @ received(me)


@word(gradient_forms.LOCAL_GRADIENT)
def local_gradient(me: Any, model: Array) -> Array:
    """Gradient of the agent's local objective at a model: of its mean loss, and 2 lambda_i of the model.

    Where the protocol's noise relies on clipping, every example's gradient is clipped as it asks
    (`hushnet.protocols.steps.noise.StepNoise.clip`).

    Parameters
    ----------
    me : record
    model : (p,) float64

    Returns
    -------
    (p,) float64
        Zeros for an agent without rows.
    """
    return _mean_gradient(me, model, me._view.data, me.regularisation)


@word(gradient_forms.LOSS_GRADIENT)
def loss_gradient(me: Any, model: Array, rows: Ranks | None = None) -> Array:
    """Gradient of the mean loss over some of the agent's rows, without regulariser; clipped as by `local_gradient`.

    Parameters
    ----------
    me : record
    model : (p,) float64
    rows : (k,) int64, optional
        Ranks among the agent's own rows; all of them by default.

    Returns
    -------
    (p,) float64
        Zeros for no rows.
    """
    shard = me._view.data if rows is None else Shard(me.features[rows], me.labels[rows])
    return _mean_gradient(me, model, shard, 0.0)


def _mean_gradient(me: Any, model: Array, shard: Shard, regularisation: float) -> Array:
    protocol = me._names.protocol
    noise, loss = protocol.step_noise, protocol.problem.task.loss
    if noise is not None and noise.clip is not None:
        return losses.clipped_gradient(model, shard, loss, regularisation, *noise.clip)
    return losses.local_gradient(model, shard, loss, regularisation)


@word(noise_forms.PERTURBED)
def perturbed(me: Any, vector: Array) -> Array:
    """A vector with the noise of this step's release, which is charged with the step's message.

    Parameters
    ----------
    me : record
    vector : (p,) float64

    Returns
    -------
    (p,) float64
        The vector itself without privacy, or for an agent without rows.
    """
    release = me._release
    return release.perturb(vector, rng=me._view.stream("noise")) if release.noisy else vector


@word(noise_forms.DRAW_ROWS)
def draw_rows(me: Any, count: int) -> NDArray[np.int64]:
    """Ranks of rows of the agent's own, drawn without replacement.

    Parameters
    ----------
    me : record
    count : int
        > 0; at most all rows are drawn.

    Returns
    -------
    (k,) int64
    """
    stream, rows = me._view.stream("sampling"), me.rows
    drawn = min(int(count), rows)
    if drawn == 1:
        return np.array([stream.integers(rows)])
    return stream.choice(rows, drawn, replace=False)


@word(noise_forms.DRAW_EACH)
def draw_each(me: Any, share: float) -> NDArray[np.int64]:
    """Ranks of rows of the agent's own, each drawn with this probability, independently: (k,) int64, ascending."""
    return np.flatnonzero(me._view.stream("sampling").random(me.rows) < share)


@word(noise_forms.AFFORDS)
def affords(me: Any) -> bool:
    """Set budget aside for this step's release; false if the agent cannot afford it.

    Every step begins so, and an agent that cannot afford it falls silent, unless a text asks for itself: one that calls
    this word anywhere asks before it draws, and its other steps need no budget.
    """
    return me._reserve(me._release)


@word(noise_forms.POST_PROCESSED)
def post_processed(me: Any) -> None:
    """Say that what this step sends follows from what was released and heard before, so that it costs nothing.

    What a step draws is charged all the same. The replay of the contract shows whether it is so.
    """
    me.__dict__["_follows"] = True


@word(neighbour_forms.ADD_SCALED)
def add_scaled(total: Array, weight: float, vector: Array) -> None:
    """Add a multiple of a vector to a sum in place: ``total += weight * vector``, compiled without an array between.

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
        raise ValueError(neighbour_forms.OTHER_LENGTH)
    total += weight * vector


@word(neighbour_forms.TAKE_IN)
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
        raise ValueError(neighbour_forms.OTHER_LENGTHS)
    total += told - taken
    taken[:] = told


@word(row_forms.SLOPES)
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
    return me._names.protocol.problem.task.loss.slope(scores, labels)


@word(row_forms.BENDS)
def bends(me: Any, scores: Array) -> Array:
    """(m,) second derivatives of the task's loss with respect to the scores of the agent's own rows."""
    _check_count(scores, len(me.labels))
    return me._names.protocol.problem.task.loss.second_slope(scores, me.labels)


@word(row_forms.SCORES_OF)
def scores_of(me: Any, model: Array, rows: Ranks | None = None) -> Array:
    """(m,) products of the agent's own rows, or of those with these ranks, with a model."""
    return (me.features if rows is None else me.features[rows]) @ model


@word(row_forms.SUM_OF_ROWS)
def sum_of_rows(me: Any, weights: Array, rows: Ranks | None = None) -> Array:
    """(p,) sum of the agent's own rows, or of those with these ranks, each times a weight."""
    return weights @ (me.features if rows is None else me.features[rows])


@word(row_forms.ROWS_MINIMISED)
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
    return minimise_rows(me._names.protocol.problem.task.loss, me.labels, curvature=curvature, linear=linear)


@word(row_forms.CLIPPED)
def clipped(vector: Array, bound: float) -> Array:
    """A vector scaled down to an l2 norm if it is longer, as `hushnet.agents.clipping.clip_rows` has it.

    Parameters
    ----------
    vector : (k,) float64
        Zeros take its place if it is not finite.
    bound : float
        > 0; infinite to leave vectors as they are.

    Returns
    -------
    (k,) float64
    """
    return vector if math.isinf(bound) else clip_rows(np.asarray(vector, dtype=np.float64)[None, :], bound)[0]


@word(row_forms.SOLVED_BY)
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
        raise ValueError(row_forms.OTHER_SIZE)
    return cho_solve((factor.reshape(len(right), -1), True), right, check_finite=False)
