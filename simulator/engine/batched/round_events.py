"""Windows of rounds, compiled: every arrival, timer and absence is an event that calls a rule.

`hushnet.simulator.rules.rounds` has the rules. This loop takes the next event off the agenda and calls the rule of its
kind; where nothing can be lost and nobody is ever absent, `hushnet.simulator.engine.batched.round_windows` needs no
events.
"""

from __future__ import annotations

import math
from typing import Any

from ....agents.compilation import compiled, part
from ...rules.clocks import count_step, used_up
from ...rules.round_messages import finish_saying, say
from ...rules.rounds import (
    after_step,
    counts_as_event,
    on_arrival,
    on_available,
    on_patience,
    on_repeat,
    on_round_end,
    start_rounds,
)
from ...tables.effects import ARRIVE, GONE, PATIENCE, REPEAT, ROUND_END, UP
from ...tables.rounds import DONE, ENOUGH, FREE_COPIES, FREE_RECORDS, STALLED, STEPPING, WORN, RoundTables
from ...tables.run import RunTables
from ...tables.tallies import FREE_ROWS, NOTES, OBSERVED, UNFINISHED, WAKES
from .agenda import LOAD, ON_HEAP, TICKS, TIME, Agenda, pop, room_left, subject_of, take_effects
from .plan import UNMADE, StepPlan, fits, has_to_end
from .windows import (
    COUNTED,
    ENDS,
    FINISHED,
    FULL,
    IDLE,
    LOOK,
    REACHED,
    draw_nothing,
    is_counted,
    plan_step,
    send_said,
)

STALL, SENT_ENOUGH, WORN_OUT = range(100, 103)
"""Further reasons for the end of a window: nobody can ever go on; the vectors asked for were sent; a message was
repeated more often than there are draws for it."""


@part(_nrt=False)
def has_room(
    run: RunTables, tables: RoundTables, agenda: Agenda, plan: StepPlan, room: Any, most: int
):  # pragma: no cover - compiled
    """True if there is room for everything that the next event brings about."""
    return (
        run.counts[FREE_ROWS] > most
        and fits(plan, room + most)
        and tables.counts[FREE_RECORDS] >= room
        and tables.counts[FREE_COPIES] >= room
        and room_left(agenda) >= room
        and (run.counts[OBSERVED] == 0 or len(run.notes) - run.counts[NOTES] >= room)
    )


@part(_nrt=False)
def say_to_all(
    run: RunTables, tables: RoundTables, agent: int, edges: Any, kind: int, row: int, _drawn: int
):  # pragma: no cover - compiled
    """Send a message of a round over some of an agent's edges, each copy of which makes its own draws."""
    for edge in edges:
        say(run, tables, agent, edge, kind, row)


@part(_nrt=False)
def plan_and_say(
    run: RunTables, tables: RoundTables, agent: int, plan: StepPlan, ports: Any, rows: Any
):  # pragma: no cover - compiled
    """Plan an agent's step and say its round; what is known of it."""
    said = plan_step(run, plan, agent, tables.now[0], ports, rows)
    if said & UNMADE == 0 and has_to_end(plan):
        return said
    if said & UNMADE == 0:
        send_said(run, tables, agent, ports, rows, draw_nothing, say_to_all)
    if run.offsets[agent + 1] > run.offsets[agent]:
        finish_saying(run, tables, agent)
    return said


@compiled(_nrt=False)
def run_round_events(
    run: RunTables,
    tables: RoundTables,
    agenda: Agenda,
    limit: float,
    forced: bool,
    room: Any,
    plan: StepPlan,
    ports: Any,
    rows: Any,
):  # pragma: no cover - compiled
    """Run events strictly before ``limit``, the first one anyway if ``forced``; why it stopped, agent, time."""
    counts = tables.counts
    due = False
    while True:
        if run.counts[UNFINISHED]:
            run.counts[UNFINISHED] = 0
            after_step(run, tables, counts[STEPPING])
        take_effects(tables, agenda)
        agent, now = counts[STEPPING], tables.now[0]
        if due:
            return COUNTED, agent, now
        if counts[STALLED]:
            return STALL, agent, now
        if counts[WORN]:
            return WORN_OUT, agent, now
        if counts[DONE]:
            counts[DONE] = 0
            return FINISHED, agent, now
        if counts[ENOUGH]:
            return SENT_ENOUGH, agent, now
        if not has_room(run, tables, agenda, plan, room, len(rows)):
            return FULL, agent, now
        if agenda.size[ON_HEAP] == 0:
            return IDLE, agent, math.inf
        now = agenda.heap[0, TIME] / TICKS
        if now >= limit and not forced:
            return REACHED, agent, now
        load = agenda.heap[0, LOAD]
        what, subject, serial = load & 7, subject_of(load), load >> 33
        counted = counts_as_event(run, tables, what, subject, serial)
        if counted and used_up(run):
            return LOOK, agent, now
        run.counts[WAKES] += counted
        forced = False
        pop(agenda)
        tables.now[0] = now
        if what == ARRIVE:
            on_arrival(run, tables, subject)
        elif what == REPEAT:
            on_repeat(run, tables, subject)
        elif what == PATIENCE:
            on_patience(run, tables, subject, serial)
        elif what != ROUND_END:
            on_available(run, tables, subject, what == UP, what == GONE)
        elif on_round_end(run, tables, subject):
            counts[STEPPING], run.counts[UNFINISHED] = subject, 1
            said = plan_and_say(run, tables, subject, plan, ports, rows)
            if said & UNMADE == 0 and has_to_end(plan):
                return ENDS, subject, now
            due = is_counted(said) and count_step(run, subject)


@compiled(_nrt=False)
def start_all(run: RunTables, tables: RoundTables):  # pragma: no cover - compiled
    """Begin everybody's round 1."""
    for agent in range(len(tables.agents)):
        start_rounds(run, tables, agent)
