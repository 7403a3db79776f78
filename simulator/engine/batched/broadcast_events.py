"""Windows of broadcasts whose arrivals are events, compiled: arrivals and wake-ups in order, which call the rules.

Steps and reactions are made in Python: a window ends where one has to be made. Where agents only read the newest of
what they have heard, `hushnet.simulator.engine.batched.windows` needs no event for any arrival.
"""

from __future__ import annotations

import math
from typing import Any

from ....agents.compilation import compiled
from ...rules.broadcasts import on_arrival, send
from ...rules.clocks import used_up
from ...rules.lazy import is_up
from ...tables.broadcasts import LATE, NOW, BroadcastTables
from ...tables.run import RunTables
from ...tables.tallies import BARRIER, HEAP, NOTES, OBSERVED, ORDER, UNFINISHED, WAKES
from .agenda import LOAD, ON_HEAP, TICKS, TIME, Agenda, pop, take_effects
from .windows import AWAKE, FULL, IDLE, LOOK, REACHED, end_wake, is_event

REACTION = 100
"""Why a window ended, beside the reasons of `windows`: an agent has to react to an arrival."""


@compiled(_nrt=False)
def send_all(
    run: RunTables,
    tables: BroadcastTables,
    agenda: Agenda,
    sender: int,
    edges: Any,
    kind: int,
    row: int,
    transmission: int,
    vectors: int,
):  # pragma: no cover - compiled
    """`send`, from Python; there must be room on the agenda."""
    send(run, tables, sender, edges, kind, row, transmission, vectors)
    take_effects(tables, agenda)


@compiled(_nrt=False)
def run_broadcast_events(
    run: RunTables, tables: BroadcastTables, agenda: Agenda, limit: float, forced: bool
):  # pragma: no cover - compiled
    """Run events strictly before ``limit``, the first one anyway if ``forced``; why it stopped, who or what, time.

    Arrivals come before wake-ups at their instant.
    """
    counts = run.counts
    while True:
        if counts[UNFINISHED]:
            agent, now = run.wakes.agent[0], run.wakes.time[0]
            why = end_wake(run)
            if why != REACHED:
                return why, agent, now
        wake = run.wakes.time[0] if counts[HEAP] > 0 else math.inf
        arrival = agenda.heap[0, TIME] / TICKS if agenda.size[ON_HEAP] > 0 else math.inf
        now = min(arrival, wake)
        if now == math.inf:
            return IDLE, -1, now
        if now >= limit and not forced:
            return REACHED, -1, now
        if counts[OBSERVED] and counts[NOTES] == len(run.notes):
            return FULL, -1, now
        if arrival <= wake:
            forced = False
            place = agenda.heap[0, LOAD] >> 3
            pop(agenda)
            tables.now[NOW] = now
            if on_arrival(run, tables, place):
                return REACTION, place, now
            continue
        agent = run.wakes.agent[0]
        counted = is_event(run, agent, now)
        if counted and used_up(run):
            return LOOK, agent, now
        forced = False
        run.agents.ticks[agent] += 1
        counts[WAKES] += counted
        counts[BARRIER], counts[UNFINISHED] = counts[ORDER], 1
        tables.now[NOW] = tables.now[LATE] = now
        if not run.agents.silent[agent] and is_up(run, agent, now, True):
            return AWAKE, agent, now
