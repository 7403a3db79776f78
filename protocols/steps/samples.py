"""Rows that were drawn for the agents of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .batch_record import BatchPart
from .record import Record, segments
from .row_kernels import table_starts

Ranks = NDArray[np.int64]


class Sample:
    """Rows that were drawn for each agent of a batch.

    Attributes
    ----------
    ranks : (K,) int64
        Ranks among each agent's own rows, one agent after the other.
    starts : (B + 1,) int64
        Where each agent's begin.
    me : record
        For which they were drawn.
    """

    def __init__(self, ranks: Ranks, starts: Ranks, me: Record) -> None:
        self.ranks, self.starts, self.me = ranks, starts, me

    def of(self, me: Record) -> tuple[Ranks, Ranks]:
        """Ranks and where each agent's begin, for these agents or some of them."""
        if me is self.me:
            return self.ranks, self.starts
        (whole, drawn), (other, rows) = _places_of(self.me), _places_of(me)
        if other is not whole or not np.isin(rows, drawn).all():
            raise ValueError("these rows were drawn by another step, or not for all of these agents")
        places = np.searchsorted(drawn, rows)
        counts = np.diff(self.starts)[places]
        return self.ranks[segments(self.starts[:-1][places], counts)], table_starts(counts)


def _places_of(me: Record) -> tuple[Record, Ranks]:
    """The batch that some agents belong to, and their places in it."""
    return (me.whole_, me.rows_) if isinstance(me, BatchPart) else (me, np.arange(len(me.agents_)))


def ranks_of(me: Record, rows: Any) -> tuple[Ranks, Ranks]:
    """Ranks of rows from the first, and where each agent's begin.

    Raises
    ------
    IndexError
        If an agent has no such row.
    """
    if isinstance(rows, Sample):
        return rows.of(me)
    given, count = np.asarray(rows), me.rows
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise IndexError(f"rows are named by a vector of integers, and not by {given.dtype} of shape {given.shape}")
    if given.size and not (-count <= given.min() and given.max() < count):
        raise IndexError(f"the agent has {count} rows, and there is none of rank {given[~_within(given, count)][0]}")
    return np.ascontiguousarray(np.where(given < 0, given + count, given), dtype=np.int64), np.array([0, len(given)])


def _within(ranks: Any, count: int) -> Any:
    return (ranks >= -count) & (ranks < count)
