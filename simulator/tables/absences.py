"""The next change of every agent's availability, as a heap."""

from __future__ import annotations

from typing import Any, NamedTuple

AGENT, NUMBER, INDEX, IS_UP, COLUMNS = range(5)
"""Columns of `AbsenceTable.heap`: whose change it is, how many were asked for before it, its number among the agent's
own, and whether the agent is up until then."""


class AbsenceTable(NamedTuple):
    """Next changes, the earliest first: a binary heap ordered by time and `NUMBER`.

    Attributes
    ----------
    times : (n,) float64
    heap : (n, COLUMNS) int64
    asked : (1,) int64
        How many changes were asked for.
    """

    times: Any
    heap: Any
    asked: Any
