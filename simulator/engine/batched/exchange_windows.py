"""Whole windows of pairwise exchange in one compiled call: everything strictly before the next event of anybody else.

Events are arrivals, timers and wake-ups, in the order of `hushnet.simulator.tables.priorities`. Halves of exchanges are
planned.
"""

from __future__ import annotations

import math
from typing import Any

from ....agents.compilation import compiled, part
from ....protocols.steps.partners import rank_of
from ...network.randomness import Purpose, draw_one
from ...rules.clocks import count_step, used_up
from ...rules.delivery import take_row
from ...rules.lazy import is_up
from ...rules.notes import note_step
from ...rules.sessions import busy, carry_on, follow_up, free_edges, look_after, tail_of, take_copy
from ...tables.effects import PATIENCE
from ...tables.notes import TOLD
from ...tables.priorities import ARRIVAL, TIMER, WAKE
from ...tables.run import RunTables
from ...tables.sessions import (
    COMPLETING,
    EDGE,
    ENDED,
    ENOUGH,
    FREE_COPIES,
    HEADER,
    LATE,
    NOW,
    PHASE,
    REQUESTING,
    RESPONDING,
    ROW,
    SKIPPED,
    TICK,
    WORN,
    SessionTables,
)
from ...tables.tallies import FREE_ROWS, HEAP, NOTES, OBSERVED, UNFINISHED, WAKES
from .agenda import KEY, LOAD, ON_HEAP, TICKS, TIME, Agenda, pop, room_left, subject_of, take_effects
from .plan import StepPlan, add_half, fits, has_to_end
from .windows import COUNTED, ENDS, FULL, IDLE, LOOK, REACHED, clock_over, is_event, put_back

PARTNER = int(Purpose.PARTNER)
ROOM = 8
"""Most notes that one event brings about."""
CALL, CHECK = 100, 101
"""Why a window ended, beside the reasons of `windows`: an observer is to be told of a call; the world has something to
check."""


@part(_nrt=False)
def is_over(tables: SessionTables, load: int):  # pragma: no cover - compiled
    """True if an event is a timer of a session that has been closed since it was set."""
    return load & 7 == PATIENCE and tables.sessions[subject_of(load), TICK] != load >> 33


@part(_nrt=False)
def upcoming(run: RunTables, tables: SessionTables, agenda: Agenda):  # pragma: no cover - compiled
    """Time and class of the next event; infinite if there is none."""
    while agenda.size[ON_HEAP] > 0 and is_over(tables, agenda.heap[0, LOAD]):
        pop(agenda)
    wake = run.wakes.time[0] if run.counts[HEAP] > 0 else math.inf
    if agenda.size[ON_HEAP] == 0:
        return wake, WAKE
    time = agenda.heap[0, TIME] / TICKS
    return (time, agenda.heap[0, KEY] >> 40) if time <= wake else (wake, WAKE)


@part(_nrt=False)
def wake_up(run: RunTables, tables: SessionTables, law: Any):  # pragma: no cover - compiled
    """A tick of the clock on top of the heap: its agent calls somebody, if it can."""
    agent, now = run.wakes.agent[0], tables.times[NOW]
    run.agents.ticks[agent] += 1
    run.counts[UNFINISHED] = 1
    tables.times[LATE] = now
    if run.agents.silent[agent] or not is_up(run, agent, now, True) or not free_edges(run, tables, agent):
        return
    first, last = run.offsets[agent], run.offsets[agent + 1]
    uniform = draw_one(run.key[0], run.key[1], run.agents.numbers[agent], 0, run.agents.ticks[agent], PARTNER, 0)[0]
    tables.counts[EDGE] = first + rank_of(uniform, last - first, law[first:last] if len(law) else law)
    if busy(run, tables, tables.counts[EDGE]):
        tables.counts[SKIPPED] += 1
        return
    note_step(run, agent, now)
    tables.counts[PHASE] = REQUESTING


@part(_nrt=False)
def plan_half(run: RunTables, tables: SessionTables, plan: StepPlan, kinds: int):  # pragma: no cover - compiled
    """Plan half of an exchange, which reads what its agent knows of some first kinds."""
    phase, edge, heard, wrote = tables.counts[PHASE], tables.counts[EDGE], tables.counts[ROW], -1
    acting = run.reverse[edge] if phase == RESPONDING else edge
    agent = tail_of(run, acting)
    if phase == REQUESTING:
        heard = -1
    if phase != COMPLETING:
        width = tables.widths[0 if phase == REQUESTING else 1, agent]
        wrote = take_row(run, 0.0, 0, 0, 8 * width + tables.rules[HEADER])
        tables.counts[ROW] = wrote
    add_half(run, plan, phase, agent, acting, heard, wrote, tables.times[NOW], kinds)


@part(_nrt=False)
def settle_clocks(run: RunTables, tables: SessionTables):  # pragma: no cover - compiled
    """Put the agent that was woken back on its clock, and count one that will never step again; see `end_clock`."""
    if run.counts[UNFINISHED]:
        agent = run.wakes.agent[0]
        run.counts[UNFINISHED] = 0
        if not put_back(run):
            tables.over[agent] = True
            if tables.watches[agent] == 0:
                tables.counts[ENDED] = agent
    agent = tables.counts[ENDED]
    if agent < 0:
        return REACHED, agent
    tables.counts[ENDED] = -1
    return clock_over(run, agent), agent


@compiled(_nrt=False)
def run_exchanges(
    run: RunTables,
    tables: SessionTables,
    agenda: Agenda,
    limit: float,
    forced: bool,
    plan: StepPlan,
    kinds: int,
    law: Any,
):  # pragma: no cover - compiled
    """Run events strictly before ``limit``, and the first one anyway if ``forced``; why it stopped, and which agent."""
    counts, reads = tables.counts, kinds * (len(run.awaited) - 1)
    while True:
        if counts[PHASE]:
            edge = counts[EDGE]
            plan_half(run, tables, plan, kinds)
            if has_to_end(plan):
                return ENDS, -1
            stepped = carry_on(run, tables)
            take_effects(tables, agenda)
            if stepped and count_step(run, tail_of(run, edge)):
                return COUNTED, tail_of(run, edge)
        why, agent = settle_clocks(run, tables)
        if why != REACHED:
            return why, agent
        if counts[ENOUGH] or counts[WORN]:
            return CHECK, -1
        if not fits(plan, reads):
            return FULL, -1
        if run.counts[FREE_ROWS] == 0 or counts[FREE_COPIES] == 0 or room_left(agenda) < len(tables.due):
            return FULL, -1
        if run.counts[OBSERVED] and len(run.notes) - run.counts[NOTES] < ROOM:
            return FULL, -1
        now, what = upcoming(run, tables, agenda)
        if now == math.inf:
            return IDLE, -1
        if now >= limit and not forced:
            return REACHED, -1
        counted = what == TIMER or (what == WAKE and is_event(run, run.wakes.agent[0], now))
        if counted and used_up(run):
            tables.times[NOW] = now
            return LOOK, -1
        run.counts[WAKES] += counted
        forced = False
        tables.times[NOW] = now
        if what == WAKE:
            wake_up(run, tables, law)
        else:
            subject = subject_of(agenda.heap[0, LOAD])
            pop(agenda)
            if what == ARRIVAL:
                take_copy(run, tables, subject)
                follow_up(run, tables)
            else:
                tables.times[LATE] = now
                look_after(run, tables, subject)
            take_effects(tables, agenda)
        if counts[PHASE] == REQUESTING and run.counts[OBSERVED] == TOLD:
            return CALL, run.wakes.agent[0]
