"""Whole windows of wake-ups in one compiled call: everything strictly before the next event of anybody else.

Steps are planned: who steps, what it has heard by then, and where what it says is going to be; the numbers follow later
(`hushnet.simulator.engine.batched.planned_steps`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....agents.compilation import compiled, part
from ...rules.clock_rules import count_step, end_clock, next_time, used_up
from ...rules.compute_rules import begin_computing, up_again
from ...rules.delivery import (
    count_message,
    count_open,
    draw_copies,
    hold_version,
    note_step,
    release_version,
    take_row,
)
from ...rules.heap import pop, push, replace_top
from ...rules.lazy import (
    EVER,
    deliver_pending,
    kinds_of,
    send_copies,
    slots_with_copies,
    take_turns,
    up_since,
)
from ...tables.run import CHANGING, RunTables
from ...tables.tallies import (
    ASKED_TICK,
    BARRIER,
    BEGUN,
    FREE_NODES,
    FREE_ROWS,
    HEAP,
    NOTES,
    OBSERVED,
    OPENED,
    ORDER,
    UNFINISHED,
    WAKES,
)
from .lossless_rounds import LosslessRounds, close_round, say_nothing, show_last_round
from .step_plan import (
    ADDRESSED,
    KIND,
    SAID,
    SILENT,
    SIZE,
    UNMADE,
    UNSAID,
    VECTORS,
    StepPlan,
    add_step,
    edges_of_row,
    fits,
    has_to_end,
    is_due,
)

REACHED, IDLE, FULL, COUNTED, OVER, FINISHED, LOOK, ENDS, SHOWN, OPENS, AWAY = range(11)
"""Why a window ended: its limit was reached; no clock ticks any more; more room is needed; a number of activations,
vectors or updates was reached; the clock of an agent with a process of its own has ended; the last clock has ended; the
run's limits are to be looked at before anything else happens; the last step that was planned ends the run; somebody is
to be shown a step that does not count; the open edges of an agent are to be set (`RunTables.opened`); it is not known
when an agent that is down comes up."""
END_OF_STEP, MADE_LATE = -(2**41), -(2**40)
"""Ranks of ends of steps that take time, among `RunTables.wakes`: in the order of their begins and, of those that are
made once their agents are up again, by agent. They come before wake-ups at their instant; their load is the agent."""


@compiled
def start_clocks(run: RunTables):  # pragma: no cover - compiled
    """Fill the heap with first wake-ups; which agents have none."""
    agents = len(run.agents)
    ended = np.zeros(agents, dtype=np.bool_)
    for agent in range(agents):
        time = math.inf
        if not run.agents.silent[agent] and run.agents.gone_from[agent] > 0.0:
            time = next_time(run, agent, 0, 0.0)
        if time < math.inf:
            push(run.wakes, run.counts, HEAP, time, agent, 0)  # its load is the tick
        else:
            ended[agent] = run.agents.silent[agent] = True
    return ended


def init_clocks(run: RunTables) -> list[int]:
    """Set all clocks; the agents that have no wake-up at all."""
    return np.flatnonzero(start_clocks(run)).tolist()


@part(_nrt=False)
def agent_on_top(run: RunTables):  # pragma: no cover - compiled
    """Agent whose wake-up, or end of a step, is on top of the heap."""
    return run.wakes.rank[0] if run.wakes.rank[0] >= 0 else run.wakes.load[0]


@part(_nrt=False)
def tick_after_step(run: RunTables, agent: int, now: float):  # pragma: no cover - compiled
    """Next tick of an agent's clock, and its time, after a step that took time and ends now.

    Ticks since its begin found the agent computing, and are only counted. The time is infinite if there is none.
    """
    tick, time = run.agents.ticks[agent] + 1, run.computing.since[agent]
    time = next_time(run, agent, tick, time)
    while time < now:
        if time >= min(run.agents.gone_from[agent], run.agents.leaves[agent]):
            return tick, math.inf
        run.counts[WAKES] += 1
        tick += 1
        time = next_time(run, agent, tick, time)
    return tick, time


@compiled(_nrt=False)
def count_last_ticks(run: RunTables, now: float):  # pragma: no cover - compiled
    """Count the ticks up to ``now`` of all agents who compute at the end of a run."""
    for k in range(run.counts[HEAP]):
        if run.wakes.rank[k] < 0:
            tick_after_step(run, run.wakes.load[k], math.nextafter(now, math.inf))


@part(_nrt=False)
def put_back(run: RunTables):  # pragma: no cover - compiled
    """Set the clock of the agent on top of the heap to its next tick; false if it has none."""
    agent, now = agent_on_top(run), run.wakes.time[0]
    tick, time = run.agents.ticks[agent] + 1, math.inf
    if run.wakes.rank[0] < 0:
        tick, time = tick_after_step(run, agent, now)
    elif not run.agents.silent[agent] and now < run.agents.gone_from[agent]:
        time = next_time(run, agent, tick, now)
    if time < math.inf:
        replace_top(run.wakes, run.counts[HEAP], time, agent, tick)
        return True
    pop(run.wakes, run.counts, HEAP)
    return False


@part(_nrt=False)
def hold_heard(run: RunTables, agent: int, holds: Any):  # pragma: no cover - compiled
    """Hold what an agent knows for the end of a step that it begins, or let go of it."""
    for edge in range(run.offsets[agent], run.offsets[agent + 1]):
        for slot in range(edge, len(run.slots), len(run.heads)):
            row = run.slots.known[slot] if holds else -1
            if row >= 0:
                hold_version(run, run.held, slot, row)
            elif run.held[slot] >= 0:
                release_version(run, run.held[slot])
                run.held[slot] = -1


@part(_nrt=False)
def compute(run: RunTables, agent: int, now: float):  # pragma: no cover - compiled
    """Begin a step on top of the heap; true if it takes time, and its end is there in its place."""
    if len(run.computing) == 0:
        return False
    hold_heard(run, agent, True)
    duration = begin_computing(run, agent, now)
    if duration == 0.0:
        return False
    run.counts[BEGUN] += 1
    replace_top(run.wakes, run.counts[HEAP], now + duration, END_OF_STEP + run.counts[BEGUN], agent)
    return True


@part(_nrt=False)
def made_at(run: RunTables, agent: int, now: float):  # pragma: no cover - compiled
    """Time at which an agent makes the step that it has computed by now: when it is up; see `up_again`."""
    if run.agents.silent[agent]:
        return -1.0
    return now if up_since(run, agent, now) < math.inf else up_again(run, agent, now)


@part(_nrt=False)
def clock_over(run: RunTables, agent: int):  # pragma: no cover - compiled
    """Count an agent whose clock has ended; why the window has to end, or `REACHED`."""
    if run.agents.alone[agent]:
        return OVER
    return FINISHED if end_clock(run, agent) else REACHED


@part(_nrt=False)
def end_wake(run: RunTables, rounds: LosslessRounds | None):  # pragma: no cover - compiled
    """Put the agent that woke last back on its clock, or end its round; why the window has to end, or `REACHED`."""
    agent, now = agent_on_top(run), run.wakes.time[0]
    run.counts[UNFINISHED] = run.counts[OPENED] = 0
    if rounds is None:
        return REACHED if put_back(run) else clock_over(run, agent)
    pop(run.wakes, run.counts, HEAP)
    close_round(run, rounds, agent, now)
    return clock_over(run, agent) if run.agents.silent[agent] else REACHED


@part(_nrt=False)
def is_event(run: RunTables, agent: int, now: float):  # pragma: no cover - compiled
    """True if a wake-up counts as an event: its agent has neither fallen silent nor gone for good."""
    return not run.agents.silent[agent] and now < run.agents.gone_from[agent]


@part(_nrt=False)
def has_note_capacity(run: RunTables, degree: int):  # pragma: no cover - compiled
    """True if there is room for the notes of a step, of what it sends, and of all copies in flight."""
    under_way = len(run.nodes) - run.counts[FREE_NODES]
    return len(run.notes) - run.counts[NOTES] > degree + under_way


@part(_nrt=False)
def rows_needed(run: RunTables, agent: int, ports: Any):  # pragma: no cover - compiled
    """Number of versions that a step of an agent writes."""
    needed, degree = 0, run.offsets[agent + 1] - run.offsets[agent]
    for port in range(len(ports)):
        needed += degree if ports[port, ADDRESSED] else 1
    return needed


@part(_nrt=False)
def take_rows(run: RunTables, agent: int, now: float, ports: Any, rows: Any):  # pragma: no cover - compiled
    """Take a version for everything that a step may say."""
    place, degree = 0, run.offsets[agent + 1] - run.offsets[agent]
    for port in range(len(ports)):
        for _ in range(degree if ports[port, ADDRESSED] else 1):
            rows[place] = take_row(run, now, 0, run.agents.ticks[agent], ports[port, SIZE])
            place += 1


@part(_nrt=False)
def plan_step(
    run: RunTables, plan: StepPlan, agent: int, now: float, ports: Any, rows: Any
):  # pragma: no cover - compiled
    """Plan an agent's step, which writes what it says into rows; what is known of it already.

    That is whether it is the agent's last, and whether it says anything.
    """
    updates, said, degree = run.agents.updates[agent], UNSAID, run.offsets[agent + 1] - run.offsets[agent]
    note_step(run, agent, now, run.agents.ticks[agent])
    if updates >= plan.affordable[agent]:
        run.agents.silent[agent] = True
        return SILENT | UNSAID | UNMADE
    for port in range(len(ports)):
        ports[port, SAID] = is_due(plan, port, agent, updates)
        if ports[port, SAID] and (degree > 0 or ports[port, ADDRESSED] == 0):
            said = 0
    take_rows(run, agent, now, ports, rows)
    add_step(run, plan, agent, now, rows[: rows_needed(run, agent, ports)], ports)
    if updates + 1 >= plan.most[agent]:
        said |= SILENT
    run.agents.silent[agent] = (said & SILENT) != 0
    return said


@part(_nrt=False)
def is_counted(said: int):  # pragma: no cover - compiled
    """True if a planned step counts: one at which its agent falls silent without sending anything does not."""
    return said & (SILENT | UNSAID) != (SILENT | UNSAID)


@part(_nrt=False)
def send_said(
    run: RunTables, tables: Any, agent: int, ports: Any, rows: Any, draw: Any, send: Any
):  # pragma: no cover - compiled
    """Send what a step says, whose vectors its plan will write.

    Over all edges, ``draw(run, agent, edges, tick, kind)`` comes before ``send(run, tables, agent, edges, kind, row,
    drawn)`` over all or each of them, which is told the place of its first edge among all.
    """
    first, last = run.offsets[agent], run.offsets[agent + 1]
    place = 0
    for port in range(len(ports)):
        kind, apart = ports[port, KIND], ports[port, ADDRESSED] != 0
        last_said = kind * len(run.agents) + agent
        if ports[port, SAID]:
            draw(run, agent, range(first, last), run.agents.ticks[agent], kind)
        for rank in range(last - first if apart else 1):
            row = rows[place]
            place += 1
            begin, end = edges_of_row(run, agent, apart, rank)
            reached = count_open(run, begin, end)
            if ports[port, SAID] and not apart:
                run.withheld[last_said] = reached == 0
            if reached > 0 and ports[port, SAID]:
                if not apart:
                    hold_version(run, run.latest, last_said, row)
                run.versions.order[row] = count_message(run, reached * ports[port, VECTORS])
                send(run, tables, agent, range(begin, end), kind, row, rank)
            release_version(run, row)


@part(_nrt=False)
def draw_nothing(_run: RunTables, _agent: int, _edges: Any, _tick: int, _kind: int):  # pragma: no cover - compiled
    """Stands for draws where every copy makes its own."""


@compiled(_nrt=False)
def run_window(
    run: RunTables,
    rounds: LosslessRounds | None,
    limit: float,
    forced: bool,
    header: int,
    plan: StepPlan,
    ports: Any,
    rows: Any,
):  # pragma: no cover - compiled
    """Run wake-ups strictly before ``limit``, the first one anyway if ``forced``; why it stopped, agent, time.

    They are asynchronous steps or, of agents in rounds, the ends of these. A message without numbers has the size of a
    ``header``.
    """
    counts = run.counts
    while True:
        if counts[UNFINISHED]:
            agent, now = agent_on_top(run), run.wakes.time[0]
            if len(run.held):
                hold_heard(run, agent, False)
            why = end_wake(run, rounds)
            if why != REACHED:
                return why, agent, now
        if counts[HEAP] == 0:
            return IDLE, -1, math.inf
        now, agent, wakes, made = run.wakes.time[0], agent_on_top(run), run.wakes.rank[0] >= 0, 0.0
        if now >= limit and not forced:
            return REACHED, agent, now
        counted = wakes and is_event(run, agent, now)
        if counted and used_up(run):
            return LOOK, agent, now
        first, last = run.offsets[agent], run.offsets[agent + 1]
        if not has_capacity(run, plan, agent, ports) or counts[FREE_NODES] < (last - first) * len(ports):
            return FULL, agent, now
        if counts[OBSERVED] and not has_note_capacity(run, (last - first) * len(ports)):
            return FULL, agent, now
        tick = run.wakes.load[0] if wakes else run.agents.ticks[agent]
        if run.constants[CHANGING] != 0.0 and counts[OPENED] != agent + 1:
            counts[ASKED_TICK] = tick
            return OPENS, agent, now
        if not wakes:
            made = made_at(run, agent, now)
            if made == math.inf:
                return AWAY, agent, now
            if made > now:
                replace_top(run.wakes, counts[HEAP], made, MADE_LATE + agent, agent)
                forced = False
                continue
        forced = False
        run.agents.ticks[agent] = tick
        counts[WAKES] += counted
        counts[BARRIER], counts[UNFINISHED] = counts[ORDER], 1
        if rounds is not None:
            show_last_round(run, agent, header)
        elif wakes:
            since = up_since(run, agent, now)
            if run.agents.silent[agent] or since == math.inf:
                continue
            take_turns(run, agent, now, EVER)
            for k in range(slots_with_copies(run, first, last)):
                deliver_pending(run, run.awaited[k], agent, now, since, EVER)
            if compute(run, agent, now):
                counts[UNFINISHED] = counts[OPENED] = 0
                continue
        elif made < now:
            continue
        said = plan_step(run, plan, agent, now, ports, rows)
        if said & UNMADE == 0 and has_to_end(plan):
            return ENDS, agent, now
        if said & UNMADE == 0:
            send_said(run, run, agent, ports, rows, draw_copies, send_copies)
        if rounds is not None and said & UNSAID:
            say_nothing(run, agent, now, header)
        if is_counted(said):
            if count_step(run, agent):
                return COUNTED, agent, now
        elif counts[OBSERVED]:
            return SHOWN, agent, now


@part(_nrt=False)
def has_capacity(run: RunTables, plan: StepPlan, agent: int, ports: Any):  # pragma: no cover - compiled
    """True if a step of an agent fits into the plan, and its versions into the pool."""
    needed, degree = rows_needed(run, agent, ports), run.offsets[agent + 1] - run.offsets[agent]
    return run.counts[FREE_ROWS] > needed and fits(plan, degree * kinds_of(run) + needed)
