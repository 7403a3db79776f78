"""Operators that draw: noise of releases, rows, and numbers of one's own, for one agent and for a batch.

Shapes are those of one agent; in a batch, vectors of an agent are (B, p), its numbers (B, 1), and values over its edges
(R, ...), all edges of the batch's agents in order. An agent's row has the same bits alone and in any batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .loss_operators import minimisers_of
from .record import Record
from .samples import Sample, ranks_of
from .sources import OWN, SAMPLING

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


def perturbed(me: Record, vector: Array) -> Array:
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
    return me.given_(me.source_.perturb(me.matrix_(vector)))


def perturbed_minimiser(
    me: Record, weight: Any, curvature: Any, linear: Array, start: Array, tolerance: Any, influence: Any
) -> Array:
    """`minimised` with the noise b of this step's release in the linear term: linear - influence * b.

    That is objective perturbation (`hushnet.protocols.privacy.mechanisms.Release.perturb_objective`), charged with the
    step's message.

    Parameters
    ----------
    me : record
    weight, curvature, linear, start, tolerance
        As of `minimised`.
    influence : float
        > 0 where there is noise.

    Returns
    -------
    (p,) float64
    """
    weights, curvatures, tolerances = me.column_(weight), me.column_(curvature), me.column_(tolerance)
    starts = me.matrix_(start)
    return me.given_(
        me.source_.perturb_objective(
            weights,
            curvatures,
            me.matrix_(linear),
            me.column_(influence),
            lambda moved: minimisers_of(me, weights, curvatures, tolerances, moved, starts),
        )
    )


def draw_rows(me: Record, count: int) -> Any:
    """Ranks of rows of the agent's own, drawn without replacement: each with probability count / rows.

    Parameters
    ----------
    me : record
    count : int
        > 0; at most all rows are drawn.

    Returns
    -------
    (k,) int64
        In a batch, a `Sample`.
    """
    rows = np.reshape(me.rows, -1)
    return _sample(me, *me.source_.choose(SAMPLING, rows, np.minimum(rows, me.counts_(count))))


def draw_each(me: Record, share: Any) -> Any:
    """Ranks of rows of the agent's own, each drawn with this probability, independently.

    Parameters
    ----------
    me : record
    share : float
        In a batch, of all agents, or (B, 1).

    Returns
    -------
    (k,) int64
        Ascending; in a batch, a `Sample`.
    """
    return _sample(me, *me.source_.choose_each(me.column_(share)))


def _sample(me: Record, ranks: Ranks, starts: Ranks) -> Any:
    return Sample(ranks, starts, me) if me.is_batch_ else ranks


def sample_size(me: Record, rows: Any) -> Any:
    """Number of samples that were drawn; (B, 1) in a batch."""
    return np.diff(ranks_of(me, rows)[1])[:, None] if isinstance(rows, Sample) else len(rows)


def uniform(me: Record, size: int | None = None) -> Any:
    """Uniform numbers of [0, 1) that the agent draws for itself, anew at every call and at every step.

    They follow from the run's seed, the agent, its tick, and how much it has drawn at this step before.

    Parameters
    ----------
    me : record
    size : int, optional
        How many, >= 0; one number by default.

    Returns
    -------
    float, or (size,) float64
        In a batch, (B, 1) or (B, size).
    """
    return me.sized_(me.source_.uniforms(_size(size)), size)


def normal(me: Record, size: int | None = None) -> Any:
    """Normal numbers of mean 0 and deviation 1 that the agent draws for itself, as `uniform`.

    They are no noise that protects data: that is drawn by `perturbed`, and charged.

    Parameters
    ----------
    me : record
    size : int, optional
        How many, >= 0; one number by default.

    Returns
    -------
    float, or (size,) float64
        In a batch, (B, 1) or (B, size).
    """
    return me.sized_(me.source_.normals(_size(size)), size)


def choice(me: Record, population: Any, size: int | None = None) -> Any:
    """Integers of 0 to population - 1 that the agent draws for itself, all different and alike probable, as `uniform`.

    ``choice(me, me.degree)`` is the rank of a neighbour.

    Parameters
    ----------
    me : record
    population : int
        > 0. In a batch, of all agents, or (B, 1).
    size : int, optional
        How many, 0 to ``population``; one number by default.

    Returns
    -------
    int, or (size,) int64
        In a batch, (B, 1) or (B, size).

    Raises
    ------
    ValueError
        If there are not so many.
    """
    populations, count = me.counts_(population), _size(size)
    if (populations < count).any():
        raise ValueError(f"choice takes {count} different integers out of {populations.min()}")
    ranks, _ = me.source_.choose(OWN, populations, np.full(len(populations), count))
    return me.sized_(ranks.reshape(len(populations), count), size)


def _size(size: Any) -> int:
    """Number of draws for each agent; 1 if no size is given."""
    count = 1 if size is None else size
    if not isinstance(count, int | np.integer) or count < 0:
        raise ValueError(f"size is {size!r}; admissible: an integer from 0, the same for all agents")
    return int(count)


def affords(me: Record) -> bool:
    """Set budget aside for this step's release; false if the agent cannot afford it.

    Every step begins so, and an agent that cannot afford it falls silent, unless the protocol says that its steps ask
    for themselves (`Protocol.asks_for_budget`): such a step asks before it draws, and its other steps need no budget.
    """
    return me.source_.affords()


def post_processed(me: Record) -> None:
    """Say that what this step sends follows from what was released and heard before, so that it costs nothing.

    What a step draws is charged all the same. The replay of the contract shows whether it is so.
    """
    me.source_.follow()
