"""Operators of what was heard, and of draws, for one agent and for a batch.

Means, sums and orders of the neighbours' vectors; noise of releases, rows, and numbers of one's own. Shapes are those
of one agent; in a batch, vectors of an agent are (B, p), its numbers (B, 1), and values over its edges (R, ...), all
edges of the batch's agents in order. An agent's row has the same bits alone and in any batch.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...agents.graph import Graph
from . import kernels as heard
from .batch_record import Sample, ranks_of
from .loss_operators import minimisers_of
from .record import Record
from .step_tables import OWN, SAMPLING

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


def received(me: Record, kind: str | None = None) -> Array:
    """(degree, width) the neighbours' newest vectors of a kind, by default the first.

    Who sends none of a kind that others send is there with zeros.
    """
    return me.received_(kind or me.tables_.first_kind)


def average(me: Record) -> Array:
    """Weighted mean of the neighbours' newest vectors, sum_j W_ij v_j / sum_j W_ij.

    Returns
    -------
    (width,) float64
        Who was never heard counts as the agent's own block (`MessageKind.mirrors`), or as zeros; so does everybody
        where an agent has no neighbours.
    """
    tables = me.tables_
    pool, index, begins, own = me.heard_(tables.first_kind)
    (offsets, weights), out = tables.edges, np.empty(own.shape)
    me.source_.forms[heard.averages](pool, index, begins, me.agents_, offsets, weights, own, out)
    return me.given_(out)


def heard_of(me: Record, rank: int) -> Array:
    """(width,) the newest vector of one neighbour, by its rank; the own block or zeros if it was never heard.

    Only of one agent.

    Raises
    ------
    TypeError
        In a batch.
    """
    if me.is_batch_:
        raise ValueError("heard_of is for steps of single agents; in a batch, received has all neighbours of all")
    pool, index, begins, own = me.heard_(me.tables_.first_kind)
    row = index[int(begins[0]) : int(begins[0]) + me.degree][rank]
    return np.array(pool[row][: own.shape[1]] if row >= 0 else own[0], dtype=np.float64)


def heard_sum(me: Record) -> Array:
    """(width,) sum of the neighbours' newest vectors, with the own block or zeros for those that were never heard."""
    return weighted_sum(me, 1.0)


def weighted_sum(me: Record, weights: Any) -> Array:
    """Sum of the neighbours' newest vectors with weights of its own, as `heard_sum`.

    Parameters
    ----------
    me : record
    weights : (degree,) float64
        In a batch, (R, 1).

    Returns
    -------
    (width,) float64
    """
    pool, index, begins, own = me.heard_(me.tables_.first_kind)
    given, edges = np.asarray(weights, dtype=np.float64), int(me.degrees_.sum())
    if given.ndim and given.size != edges:
        raise ValueError(f"there are {given.size} weights, and {edges} edges")
    out = np.empty(own.shape)
    weight = np.array(np.broadcast_to(given.reshape(-1), edges))
    me.source_.forms[heard.weighted_sums](pool, index, begins, me.degrees_, weight, own, out)
    return me.given_(out)


def median(me: Record) -> Array:
    """Median of the neighbours' newest vectors, coordinate by coordinate; the mean of the middle two of an even number.

    Returns
    -------
    (width,) float64
        Who was never heard, and everybody of an agent without neighbours, counts as by `average`.
    """
    return _middle(me, np.maximum(me.degrees_ - 1, 0) // 2)


def trimmed_mean(me: Record, cut: Any) -> Array:
    """Mean of the neighbours' newest vectors without the smallest and the largest, coordinate by coordinate.

    It is sum_{cut < k <= d - cut} v_(k) / (d - 2 cut), v_(k) the k-th smallest of d neighbours (Yin et al. 2018).

    Parameters
    ----------
    me : record
    cut : int
        How many of either end are left out, from 0, so that one is left; no matter without neighbours. In a batch, of
        all agents, or (B, 1).

    Returns
    -------
    (width,) float64
        Who was never heard, and everybody of an agent without neighbours, counts as by `average`.

    Raises
    ------
    ValueError
        If none is left.
    """
    cuts, degrees = me.counts_(cut), me.degrees_
    wrong = (cuts < 0) | ((2 * cuts >= degrees) & (degrees > 0))
    if wrong.any():
        b = int(np.argmax(wrong))
        raise ValueError(
            f"trimmed_mean leaves out {cuts[b]} of either end of {degrees[b]} neighbours; admissible: 0 to "
            f"{max(degrees[b] - 1, 0) // 2}"
        )
    return _middle(me, cuts)


def _middle(me: Record, cuts: Ranks) -> Array:
    pool, index, begins, own = me.heard_(me.tables_.first_kind)
    out = np.empty(own.shape)
    heard.trimmed_means(pool, index, begins, me.degrees_, cuts, own, out)
    return me.given_(out)


def mixed(me: Record, own: Array, weights: Any) -> Array:
    """An agent's own vector mixed with the neighbours' newest: (1 - sum_j w_ij) x_i + sum_j w_ij v_j.

    Parameters
    ----------
    me : record
    own : (width,) float64
        x_i.
    weights : (degree,) float64
        w_ij, for instance of `mixing_weights`. In a batch, (R, 1).

    Returns
    -------
    (width,) float64
    """
    given = np.reshape(np.asarray(weights, dtype=np.float64), (-1, 1))
    return (1 - segment_sum(me, given)) * own + weighted_sum(me, given)


def mixing_weights(graph: Graph, rule: str) -> Array:
    """(E,) weights w_ij of directed edges by the name of a rule; what is missing of 1 is the agent's own.

    ===================  ==========================================  ============================================
    rule                 w_ij                                        matrix
    ===================  ==========================================  ============================================
    ``metropolis``       1 / (1 + max(degree i, degree j))           doubly stochastic, symmetric
    ``lazy``             half of ``metropolis``                      so, and with eigenvalues that are not negative
    ``uniform``          1 / (1 + degree i): all alike               row-stochastic
    ``column_uniform``   1 / (1 + degree j): j gives all alike       column-stochastic, for push-sum
    ===================  ==========================================  ============================================

    In a directed graph i hears from j, so degree i is the number of agents that it hears, in the last rule degree j
    of those that j sends to; edges over which nothing is heard weigh 0.

    Parameters
    ----------
    graph : Graph
    rule : {"metropolis", "lazy", "uniform", "column_uniform"}

    Raises
    ------
    ValueError
        For another name, or for weights of a directed graph that would have to be the same both ways.
    """
    own, other = graph.in_degrees[graph.tails], graph.out_degrees[graph.heads]
    counted = {"metropolis": np.maximum(own, other), "uniform": own, "column_uniform": other}
    counted["lazy"] = counted["metropolis"]
    if rule not in counted:
        raise ValueError(f"mixing weights are named {rule!r}; admissible: {', '.join(sorted(counted))}")
    if graph.directed and rule in ("metropolis", "lazy"):
        raise ValueError(f"{rule} weights are the same both ways, and the graph is directed; use column_uniform")
    weights = 1.0 / (1.0 + counted[rule])
    return np.where(graph.opened[graph.reverse], weights / 2 if rule == "lazy" else weights, 0.0)


def segment_sum(me: Record, values: Any) -> Array:
    """(width,) sum over an agent's edges of (degree, width) values; zeros without neighbours."""
    rows = np.ascontiguousarray(values, dtype=np.float64)
    counts = me.degrees_
    if rows.ndim != 2 or len(rows) != counts.sum():
        raise ValueError(f"the shape {np.shape(values)} is not ({counts.sum()}, k)")
    if not rows.flags.writeable:
        rows = rows.copy()
    out = np.empty((len(me.agents_), rows.shape[1]))
    me.source_.forms[heard.segment_sums](rows, counts, out)
    return me.given_(out)


def per_edge(me: Record, values: Any) -> Array:
    """(degree, width) an agent's vector once for each of its edges; its number, likewise (degree, 1)."""
    if not me.is_batch_:
        return np.broadcast_to(values, (me.degree, np.size(values)))
    rows = np.asarray(values)
    return np.repeat(np.broadcast_to(rows, (len(me.agents_), rows.shape[-1])), me.degrees_, axis=0)


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
    values, shared = me.matrix_(vector), me.tables_.shared_noise
    if shared is not None:
        values = values + shared.at(me.agents_, np.reshape(cast(Any, me).updates, -1))
    return me.given_(me.source_.perturb(values))


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
    rows = me.counts_(me.rows)
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
