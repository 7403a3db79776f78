"""The state of broadcasts whose arrivals are events: copies under way, and what agents keep until they step."""

from __future__ import annotations

from typing import Any, NamedTuple

from .effects import EFFECTS

FREE_COPIES, KEEPS, REACTS, COUNTS = range(EFFECTS + 1, EFFECTS + 5)
"""Places in `BroadcastTables.counts` after those of all tables with effects: free copies; whether agents keep whatever
they hear until they step, and whether they react to it."""

NOW, LATE, TIMES = range(3)
"""Places in `BroadcastTables.now`: time of this event, and of the last wake-up."""

VERSION, TO_SLOT, RECEIVER, USES, NEXT, COPY_COLUMNS = range(6)
"""Columns of `BroadcastTables.copies`: the version, the slot of its kind that it goes to and the agent that has it, how
many still have to look at it after its arrival, and what its receiver has kept after it (-1: nothing)."""

FIRST_KEPT, LAST_KEPT, IS_SILENT, AGENT_COLUMNS = range(4)
"""Columns of `BroadcastTables.agents`: the copies that it keeps, in the order of arrival (-1: none), and whether it has
fallen silent, so that it reacts to nothing."""


class BroadcastTables(NamedTuple):
    """All arrays of such broadcasts; rules take them beside the `hushnet.simulator.tables.run.RunTables`.

    Attributes
    ----------
    now : (TIMES,) float64
    counts : (COUNTS,) int64
    copies : (C, COPY_COLUMNS) int64
    free_copies : (C,) int64
    agents : (n, AGENT_COLUMNS) int64
    due : (F,) float64
    effects : (F, EFFECT_COLUMNS) int64
    """

    now: Any
    counts: Any
    copies: Any
    free_copies: Any
    agents: Any
    due: Any
    effects: Any
