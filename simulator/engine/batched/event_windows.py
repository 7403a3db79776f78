"""Compiled windows of events: arrivals, timers, absences and wake-ups, in SimPy's own order.

A window takes the next event off its queue and calls the rule of its kind: for rounds
(`hushnet.simulator.rules.rounds`) and for pairwise exchange (`hushnet.simulator.rules.sessions`), whose halves are
planned.
"""

from __future__ import annotations

import math
from typing import Any

from ....agents.compilation import compiled, part
from ....protocols.steps.kernels import rank_of
from ...network.randomness import Purpose, draw_one
from ...rules.clock_rules import count_step, used_up
from ...rules.compute_rules import begin_computing
from ...rules.delivery import is_open, note_step, take_row
from ...rules.heap import pop, push
from ...rules.lazy import is_up
from ...rules.round_messages import finish_saying, reach, say
from ...rules.rounds import (
    after_step,
    counts_as_event,
    on_arrival,
    on_available,
    on_computed,
    on_patience,
    on_repeat,
    on_round_end,
    start_rounds,
)
from ...rules.sessions import busy, carry_on, follow_up, free_edges, look_after, reach_callee, tail_of, take_copy
from ...tables.effects import (
    ARRIVAL,
    ARRIVE,
    COMPUTED,
    ENOUGH,
    FREE_COPIES,
    GONE,
    PATIENCE,
    REACH,
    REPEAT,
    ROUND_END,
    TIMER,
    TOLD,
    UP,
    WAKE,
    WORN,
)
from ...tables.round_table import (
    DONE,
    FREE_RECORDS,
    STALLED,
    STEPPING,
    RoundTables,
)
from ...tables.run import CHANGING, RunTables
from ...tables.session_table import (
    COMPLETING,
    EDGE,
    ENDED,
    LATE,
    NOW,
    PHASE,
    REQUESTING,
    RESPONDING,
    ROW,
    SKIPPED,
    TICK,
    SessionTables,
)
from ...tables.tallies import ASKED_TICK, FREE_ROWS, HEAP, NOTES, OBSERVED, OPENED, UNFINISHED, WAKES
from .event_queue import (
    ON_HEAP,
    EventQueue,
    add,
    capacity_left,
    make_late,
    subject_of,
    take_effects,
    what_of,
)
from .step_plan import UNMADE, StepPlan, add_half, fits, has_to_end
from .windows import (
    AWAY,
    COUNTED,
    END_OF_STEP,
    ENDS,
    FINISHED,
    FULL,
    IDLE,
    LOOK,
    OPENS,
    REACHED,
    agent_on_top,
    clock_over,
    draw_nothing,
    is_counted,
    is_event,
    made_at,
    plan_step,
    put_back,
    send_said,
)

STALL, SENT_ENOUGH, WORN_OUT = range(100, 103)
"""Further reasons for the end of a window: nobody can ever go on; the vectors asked for were sent; a message was
repeated more often than there are draws for it."""


@part(_nrt=False)
def has_capacity(
    run: RunTables, tables: RoundTables, queue: EventQueue, plan: StepPlan, capacity: Any, most: int
):  # pragma: no cover - compiled
    """True if there is room for everything that the next event brings about."""
    return (
        run.counts[FREE_ROWS] > most
        and fits(plan, capacity + most)
        and tables.counts[FREE_RECORDS] >= capacity
        and tables.counts[FREE_COPIES] >= capacity
        and capacity_left(queue) >= capacity
        and (run.counts[OBSERVED] == 0 or len(run.notes) - run.counts[NOTES] >= capacity)
    )


@part(_nrt=False)
def say_to_all(
    run: RunTables, tables: RoundTables, agent: int, edges: Any, kind: int, row: int, _drawn: int
):  # pragma: no cover - compiled
    """Send a message of a round over some of an agent's edges, each copy of which makes its own draws."""
    for edge in edges:
        if is_open(run, edge):
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
    queue: EventQueue,
    limit: float,
    forced: bool,
    capacity: Any,
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
        take_effects(tables, queue)
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
        if not has_capacity(run, tables, queue, plan, capacity, len(rows)):
            return FULL, agent, now
        if queue.size[ON_HEAP] == 0:
            return IDLE, agent, math.inf
        now = queue.heap.time[0]
        if now >= limit and not forced:
            return REACHED, agent, now
        load = queue.heap.load[0]
        what, subject, serial = what_of(load), subject_of(load), load >> 33
        counted = counts_as_event(run, tables, what, subject, serial)
        if counted and used_up(run):
            return LOOK, agent, now
        steps = what in (ROUND_END, COMPUTED)
        if steps and run.constants[CHANGING] != 0.0 and run.counts[OPENED] != subject + 1:
            run.counts[ASKED_TICK] = run.agents.ticks[subject] + (what == ROUND_END)
            return OPENS, subject, now
        run.counts[WAKES] += counted
        forced = False
        pop(queue.heap, queue.size, ON_HEAP)
        tables.now[0] = now
        if what == ARRIVE:
            on_arrival(run, tables, subject)
        elif what == REACH:
            reach(run, tables, subject)
        elif what == REPEAT:
            on_repeat(run, tables, subject)
        elif what == PATIENCE:
            on_patience(run, tables, subject, serial)
        elif not steps:
            on_available(run, tables, subject, what == UP, what == GONE)
        elif on_round_end(run, tables, subject) if what == ROUND_END else on_computed(run, tables, subject):
            counts[STEPPING], run.counts[UNFINISHED] = subject, 1
            said = plan_and_say(run, tables, subject, plan, ports, rows)
            if said & UNMADE == 0 and has_to_end(plan):
                return ENDS, subject, now
            due = is_counted(said) and count_step(run, subject)
        run.counts[OPENED] = 0


@compiled(_nrt=False)
def start_all(run: RunTables, tables: RoundTables, queue: EventQueue):  # pragma: no cover - compiled
    """Begin everybody's round 1; there must be room for its end."""
    for agent in range(len(tables.agents)):
        start_rounds(run, tables, agent)
    take_effects(tables, queue)


PARTNER = int(Purpose.PARTNER)
CAPACITY = 8
"""Most notes that one event brings about."""
CALL, CHECK = 100, 101
"""Why a window ended, beside the reasons of `windows`: an observer is to be told of a call; the world has something to
check."""


@part(_nrt=False)
def is_over(tables: SessionTables, load: int):  # pragma: no cover - compiled
    """True if an event is a timer of a session that has been closed since it was set."""
    return what_of(load) == PATIENCE and tables.sessions[subject_of(load), TICK] != load >> 33


@part(_nrt=False)
def upcoming(run: RunTables, tables: SessionTables, queue: EventQueue):  # pragma: no cover - compiled
    """Time and class of the next event; infinite if there is none."""
    while queue.size[ON_HEAP] > 0 and is_over(tables, queue.heap.load[0]):
        pop(queue.heap, queue.size, ON_HEAP)
    wake = run.wakes.time[0] if run.counts[HEAP] > 0 else math.inf
    if queue.size[ON_HEAP] == 0:
        return wake, WAKE
    time = queue.heap.time[0]
    return (time, queue.heap.rank[0] >> 40) if time <= wake else (wake, WAKE)


@part(_nrt=False)
def wake_up(run: RunTables, tables: SessionTables, queue: EventQueue):  # pragma: no cover - compiled
    """A tick of the clock on top of the heap: whether its agent calls somebody now, and has not to compute before."""
    agent, now = run.wakes.rank[0], tables.times[NOW]
    run.agents.ticks[agent] = run.wakes.load[0]
    run.counts[UNFINISHED] = 1
    if run.agents.silent[agent] or not is_up(run, agent, now, True):
        return False
    duration = begin_computing(run, agent, now)
    if duration > 0.0:
        add(queue, now + duration, TIMER, COMPUTED, agent, 0)
        pop(run.wakes, run.counts, HEAP)
        run.counts[UNFINISHED] = 0
    return duration == 0.0


@part(_nrt=False)
def end_computing(run: RunTables, agent: int, now: float):  # pragma: no cover - compiled
    """Put an agent that has computed on top of the heap, from where it is put back on its clock."""
    push(run.wakes, run.counts, HEAP, now, END_OF_STEP, agent)
    run.counts[UNFINISHED] = 1


@part(_nrt=False)
def call(run: RunTables, tables: SessionTables, agent: int, weights: Any):  # pragma: no cover - compiled
    """Let an agent call a neighbour, if it can."""
    now = tables.times[NOW]
    if not free_edges(run, tables, agent):
        return
    first, last = run.offsets[agent], run.offsets[agent + 1]
    uniform = draw_one(run.key[0], run.key[1], run.agents.numbers[agent], 0, run.agents.ticks[agent], PARTNER, 0)[0]
    tables.counts[EDGE] = first + rank_of(uniform, last - first, weights[first:last] if len(weights) else weights)
    if busy(run, tables, tables.counts[EDGE]):
        tables.counts[SKIPPED] += 1
        return
    note_step(run, agent, now, run.agents.ticks[agent])
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
        wrote = take_row(run, 0.0, 0, 0, tables.sizes[0 if phase == REQUESTING else 1, agent])
        tables.counts[ROW] = wrote
    add_half(run, plan, phase, agent, acting, heard, wrote, tables.times[NOW], kinds)


@part(_nrt=False)
def settle_clocks(run: RunTables, tables: SessionTables):  # pragma: no cover - compiled
    """Put the agent that was woken back on its clock, and count one that will never step again; see `end_clock`."""
    if run.counts[UNFINISHED]:
        agent = agent_on_top(run)
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
    queue: EventQueue,
    limit: float,
    forced: bool,
    plan: StepPlan,
    kinds: int,
    weights: Any,
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
            take_effects(tables, queue)
            if stepped and count_step(run, tail_of(run, edge)):
                return COUNTED, tail_of(run, edge)
        why, agent = settle_clocks(run, tables)
        if why != REACHED:
            return why, agent
        if counts[ENOUGH] or counts[WORN]:
            return CHECK, -1
        if not fits(plan, reads):
            return FULL, -1
        if run.counts[FREE_ROWS] == 0 or counts[FREE_COPIES] == 0 or capacity_left(queue) < len(tables.due):
            return FULL, -1
        if run.counts[OBSERVED] and len(run.notes) - run.counts[NOTES] < CAPACITY:
            return FULL, -1
        now, what = upcoming(run, tables, queue)
        if now == math.inf:
            return IDLE, -1
        if now >= limit and not forced:
            return REACHED, -1
        load = queue.heap.load[0] if what != WAKE else 0
        computed = what == TIMER and what_of(load) == COMPUTED
        made = made_at(run, subject_of(load), now) if computed else 0.0
        if made == math.inf:
            tables.times[NOW] = now
            return AWAY, -1
        counted = (what == TIMER and not computed) or (what == WAKE and is_event(run, run.wakes.rank[0], now))
        if counted and used_up(run):
            tables.times[NOW] = now
            return LOOK, -1
        run.counts[WAKES] += counted
        forced = False
        tables.times[NOW] = now
        if what == WAKE:
            tables.times[LATE] = now
            if wake_up(run, tables, queue):
                call(run, tables, run.wakes.rank[0], weights)
        else:
            subject = subject_of(load)
            pop(queue.heap, queue.size, ON_HEAP)
            if computed:
                tables.times[LATE] = now
                if made > now:
                    make_late(queue, made, subject)
                else:
                    end_computing(run, subject, now)
                    if made == now:
                        call(run, tables, subject, weights)
            elif what_of(load) == REACH:
                reach_callee(run, tables, subject)
            elif what == ARRIVAL:
                take_copy(run, tables, subject)
                follow_up(run, tables)
            else:
                tables.times[LATE] = now
                look_after(run, tables, subject)
            take_effects(tables, queue)
        if counts[PHASE] == REQUESTING and run.counts[OBSERVED] == TOLD:
            return CALL, agent_on_top(run)
