"""Invariants, which hold whatever the network does: a protocol declares them, and the recorder checks every run.

An invariant is a quantity that is zero, up to rounding, wherever it is declared to hold: on edges that are quiet,
between agents of one round, or always, with what is in flight counted. It is no diagnostic: what is nonzero by design
where messages are late or lost belongs into `Protocol.conserved`. A protocol that has none gives the reason
(`NoInvariant`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..agents.blocks import State
from ..agents.graph import Graph

Array = NDArray[np.float64]
LastSent = Callable[[str], tuple[Array, NDArray[np.bool_]]]


class Where(Enum):
    """Edges or instants at which an invariant holds and is checked; the value is their name in results."""

    ALWAYS = "always"
    EQUAL_ROUNDS = "edges whose ends have completed equally many rounds"
    NEIGHBOURING_ROUNDS = "instants at which no two neighbours are more than one round apart"
    QUIET_EDGES = "edges without an open session"

    def mask(self, instant: Instant) -> NDArray[np.bool_]:
        """Return whether it holds at an instant: (E,) bool for edges, otherwise one bool for all agents."""
        if self is Where.EQUAL_ROUNDS:
            return instant.lead == 0
        if self is Where.QUIET_EDGES:
            return instant.quiet
        if self is Where.NEIGHBOURING_ROUNDS:
            return np.array(np.abs(instant.lead).max(initial=0) <= 1)
        return np.array(True)


@dataclass(frozen=True)
class Instant:
    """State of a run at an instant, as invariants may read it; its arrays are read-only."""

    state: State
    graph: Graph
    rounds: NDArray[np.int64]
    """(n,) int64: Steps that each agent has completed: its round, in rounds."""
    started: NDArray[np.bool_]
    """(n,) bool: Which agents have ever joined."""
    quiet: NDArray[np.bool_]
    """(E,) bool: Directed edges without an open session, in either direction; all of them where there are no sessions.
    """
    zero_start: bool
    """Whether a neighbour from which nothing was received counts as zeros; as the agent itself otherwise."""
    last_sent: LastSent
    """``last_sent(kind)`` gives the (n, width) last vector that each agent has sent to all its neighbours, even if it
    is in flight or lost, and the (n,) bool whether there is one."""

    @property
    def lead(self) -> NDArray[np.int64]:
        """(E,) by how many rounds the tail of each directed edge is ahead of its head."""
        return self.rounds[self.graph.tails] - self.rounds[self.graph.heads]

    def agent(self, block: str) -> Array:
        """(n, width) a block of agents."""
        return self.state.agent[block].rows

    def edge(self, block: str) -> Array:
        """(E, width) a block of directed edges."""
        return self.state.edge[block].rows


@dataclass(frozen=True)
class Invariant:
    """A quantity that stays zero up to rounding."""

    name: str
    """What it is called in results."""
    distance: Callable[[Instant], Any]
    """``distance(instant)`` gives how far it is from zero, >= 0: (n,) by agent, (E,) by directed edge, or one number.
    """
    scale: Callable[[Instant], float]
    """``scale(instant)`` gives the size of the numbers that cancel, >= 0; the largest of a run so far counts, because
    rounding of early steps stays."""
    where: Where = Where.ALWAYS
    tolerance: float = 1e-9
    """Largest distance, as a share of the scale, that passes for rounding."""
    source: str = ""
    """Where it comes from: paper and equation."""


@dataclass(frozen=True)
class NoInvariant:
    """Declaration that a protocol has no invariant, with the reason."""

    why: str = ""
    """The reason; empty if the protocol gives none."""


Declared = tuple[Invariant, ...] | NoInvariant
"""What a protocol says about its invariants."""

EXACTLY = 1e-12
"""Tolerance for numbers that are computed alike at two places."""


def largest(values: Array) -> float:
    """Largest coordinate in absolute value; 0 of none."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def by_row(values: Array) -> Array:
    """(k,) largest coordinate in absolute value of each row of a (k, width) array."""
    return np.abs(values).max(axis=1, initial=0.0)


def last_sent_is_kept(kind: str, block: str, source: str) -> Invariant:
    """The invariant that an agent goes on from what it has sent last to all its neighbours, and from nothing else."""

    def distance(instant: Instant) -> Array | float:
        vectors, known = instant.last_sent(kind)
        gaps = vectors - instant.agent(block)
        if not gaps.any():  # as a rule
            return 0.0
        return np.where(known & (instant.graph.degrees > 0), by_row(gaps), 0.0)

    scale = lambda instant: largest(instant.agent(block))  # noqa: E731
    return Invariant(f"{block} told", distance, scale, tolerance=EXACTLY, source=source)


def of_edges(name: str, block: str, sign: float, source: str) -> Invariant:
    """Return the invariant that a block of one end of an edge plus `sign` times the other's is 0 on quiet edges.

    The sign is 1 for blocks that cancel, -1 for blocks that are equal; the source is a paper and its equation.
    """

    def distance(instant: Instant) -> Array | float:
        values, reverse = instant.edge(block), instant.graph.reverse
        gaps = values[reverse]
        np.multiply(gaps, sign, out=gaps)
        gaps += values
        if not gaps.any():  # as a rule
            return 0.0
        return by_row(gaps)

    scale = lambda instant: largest(instant.edge(block))  # noqa: E731
    return Invariant(name, distance, scale, where=Where.QUIET_EDGES, tolerance=EXACTLY, source=source)


def ahead_by_one(instant: Instant) -> NDArray[np.int64]:
    """Directed edges whose tail has completed one round more than its head."""
    return np.flatnonzero(instant.lead == 1)


def mixed_by_one_end(instant: Instant, weights: Array, values: Array, before: Array) -> Array:
    """(width,) what agents that are a round ahead have mixed of their neighbours, and those not yet of them.

    A sum over agents that doubly stochastic mixing keeps is apart by it while neighbours are a round from each other.
    There are (E,) mixing weights, and (n, width) values that agents sent in their last round and in the one before.
    """
    edges = ahead_by_one(instant)
    tails, heads = instant.graph.tails[edges], instant.graph.heads[edges]
    return (weights[edges, None] * (values[heads] - before[tails])).sum(axis=0)
