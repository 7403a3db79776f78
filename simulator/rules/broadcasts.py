"""Broadcasts whose arrivals are events, for agents that react to single messages or keep every one until they step.

Where agents only read the newest of what they have heard, no arrival needs an event (`hushnet.simulator.rules.lazy`).
"""

from __future__ import annotations

import math
from typing import Any

from ..tables.broadcasts import (
    FIRST_KEPT,
    FREE_COPIES,
    IS_SILENT,
    KEEPS,
    LAST_KEPT,
    LATE,
    NEXT,
    NOW,
    REACTS,
    RECEIVER,
    TO_SLOT,
    USES,
    VERSION,
    BroadcastTables,
)
from ..tables.effects import ARRIVE
from ..tables.priorities import ARRIVAL
from ..tables.run import RunTables
from .delivery import count_message, deliver, depart, release_version
from .effects import schedule
from .forms import rule
from .lazy import is_up


@rule
def send(
    run: RunTables,
    tables: BroadcastTables,
    sender: int,
    edges: Any,
    kind: int,
    row: int,
    transmission: int,
    vectors: int,
):
    """Send a version over some of a sender's edges, and let go of it; there must be room for its copies."""
    now, size, tick = tables.now[NOW], run.versions.bytes[row], run.versions.tick[row]
    run.versions.order[row] = count_message(run, vectors * len(edges))
    counts, heads, first_slot = tables.counts, run.heads, kind * len(run.heads)
    for edge in edges:
        delay = depart(run, sender, edge, tick, transmission, kind, row, size, now)
        if delay < math.inf:
            counts[FREE_COPIES] -= 1
            place = tables.free_copies[counts[FREE_COPIES]]
            copy = tables.copies[place]
            copy[VERSION], copy[TO_SLOT], copy[RECEIVER] = row, first_slot + run.reverse[edge], heads[edge]
            run.versions.references[row] += 1
            schedule(tables, now + delay, ARRIVAL, ARRIVE, place, 0)
    release_version(run, row)


@rule
def keep(tables: BroadcastTables, agent: int, place: int):
    """Keep a copy until its receiver steps."""
    keeper = tables.agents[agent]
    tables.copies[place][NEXT] = -1
    if keeper[FIRST_KEPT] < 0:
        keeper[FIRST_KEPT] = place
    else:
        tables.copies[keeper[LAST_KEPT]][NEXT] = place
    keeper[LAST_KEPT] = place


@rule
def forget(tables: BroadcastTables, place: int):
    """Forget a copy that has arrived."""
    tables.free_copies[tables.counts[FREE_COPIES]] = place
    tables.counts[FREE_COPIES] += 1


@rule
def done_with(run: RunTables, tables: BroadcastTables, place: int):
    """One has looked at a copy that has arrived; it is forgotten after the last one."""
    copy = tables.copies[place]
    copy[USES] -= 1
    if copy[USES] == 0:
        release_version(run, copy[VERSION])
        forget(tables, place)


@rule
def on_arrival(run: RunTables, tables: BroadcastTables, place: int):
    """A copy arrives; whether its receiver reacts to it."""
    copy, counts, now = tables.copies[place], tables.counts, tables.now[NOW]
    row, slot, agent = copy[VERSION], copy[TO_SLOT], copy[RECEIVER]
    up = is_up(run, agent, now, now == tables.now[LATE])
    keeps, reacts = up and counts[KEEPS] != 0, False
    if up and counts[REACTS]:
        reacts = tables.agents[agent][IS_SILENT] == 0
    if keeps or reacts:
        run.versions.references[row] += 1
        copy[USES] = keeps + reacts
    else:
        forget(tables, place)
    if keeps:
        keep(tables, agent, place)
    deliver(run, slot, row, run.versions.order[row], now, up)
    return reacts
