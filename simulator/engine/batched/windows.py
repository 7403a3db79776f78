"""Whole windows of wake-ups in one compiled call: everything strictly before the next event of anybody else.

The same function serves a protocol with a compiled step, which it calls, and one in plain Python: then it returns at
every wake-up with the agent's inbox up to date, and puts the agent back on its clock when it is called again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....agents.compilation.callbacks import compiled_callback
from ....agents.compilation.compiled import compiled
from ....protocols.kernel import ADDRESSED, KIND, PLAIN, SAID, SILENT, SIZE, UNBOUNDED, UNSAID, VECTORS, WIDTH
from ....protocols.steps.signatures import STEP
from ...rules.clocks import count_step, end_clock, is_news, next_time, used_up
from ...rules.delivery import count_message, hold_version, release_version, take_row
from ...rules.lazy import EVER, deliver_pending, fetch, fetch_agent, send_copies, slots_with_copies, up_since
from ...rules.notes import note_step
from ...tables.mail import (
    LINE,
    Mail,
)
from ...tables.tallies import (
    BARRIER,
    FREE_NODES,
    FREE_ROWS,
    HEAP,
    NOTES,
    OBSERVED,
    ORDER,
    UNFINISHED,
    WAKES,
)

NEAR = 2**18
"""Numbers that stay in a near cache: of slots and versions together; asking for their memory beforehand costs time."""
SLOT_NUMBERS = 8
"""Numbers that a slot is known by, about."""
REACHED, IDLE, FULL, AWAKE, COUNTED, OVER, FINISHED, DIVERGED, LOOK = range(9)
"""Why a window ended: its limit was reached; no clock ticks any more; more room is needed; an agent has to step; a
number of activations, vectors or updates was reached; the clock of an agent with a process of its own has ended; the
last clock has ended; a state is not finite; the run's limits are to be looked at before anything else happens."""


@compiled_callback(STEP)
def no_step(
    _agent: int,
    _tick: int,
    _now: float,
    _updates: int,
    _first: int,
    _last: int,
    _known: Any,
    _pool: Any,
    _rows: Any,
    _table: Any,
):
    """Stands for the compiled step of a protocol that has none."""
    return 0  # pragma: no cover - compiled


@compiled
def start_clocks(mail: Mail):  # pragma: no cover - compiled
    """Fill the heap, unordered, with first wake-ups; which (n,) agents have none."""
    agents, size = len(mail.ticks), 0
    ended = np.zeros(agents, dtype=np.bool_)
    for agent in range(agents):
        time = math.inf
        if not mail.silent[agent] and mail.gone_from[agent] > 0.0:
            time = next_time(mail, agent, 0, 0.0)
        if time < math.inf:
            mail.heap_time[size], mail.heap_agent[size] = time, agent
            size += 1
        else:
            ended[agent] = mail.silent[agent] = True
    mail.counts[HEAP] = size
    return ended


def init_clocks(mail: Mail) -> list[int]:
    """Set all clocks; the agents that have no wake-up at all."""
    ended = start_clocks(mail)
    size = mail.counts[HEAP]
    order = np.lexsort((mail.heap_agent[:size], mail.heap_time[:size]))
    mail.heap_time[:size], mail.heap_agent[:size] = mail.heap_time[order], mail.heap_agent[order]
    return np.flatnonzero(ended).tolist()


@compiled(forceinline=True, _nrt=False)
def sift_down(mail: Mail, time: float, agent: int):  # pragma: no cover - compiled
    """Put a wake-up into the heap in place of its top."""
    times, agents, size = mail.heap_time, mail.heap_agent, mail.counts[HEAP]
    here = 0
    while True:
        child = 2 * here + 1
        if child >= size:
            break
        if child + 1 < size:
            left, right = times[child], times[child + 1]
            # Without a branch, which a processor would guess wrong half of the time.
            child += (right < left) | ((right == left) & (agents[child + 1] < agents[child]))
        if times[child] > time or (times[child] == time and agents[child] > agent):
            break
        times[here], agents[here] = times[child], agents[child]
        here = child
    times[here], agents[here] = time, agent


@compiled(forceinline=True, _nrt=False)
def take_top(mail: Mail):  # pragma: no cover - compiled
    """Take the first wake-up from the heap."""
    mail.counts[HEAP] -= 1
    last = mail.counts[HEAP]
    if last > 0:
        sift_down(mail, mail.heap_time[last], mail.heap_agent[last])


@compiled(forceinline=True, _nrt=False)
def put_back(mail: Mail):  # pragma: no cover - compiled
    """Set the clock of the agent on top of the heap to its next tick; false if it has none."""
    agent, now = mail.heap_agent[0], mail.heap_time[0]
    time = math.inf
    if not mail.silent[agent] and now < mail.gone_from[agent]:
        time = next_time(mail, agent, mail.ticks[agent] + 1, now)
    if time < math.inf:
        sift_down(mail, time, agent)
        return True
    take_top(mail)
    mail.silent[agent] = True
    return False


@compiled(forceinline=True, _nrt=False)
def clock_over(mail: Mail, agent: int):  # pragma: no cover - compiled
    """Count an agent whose clock has ended; why the window has to end, or `REACHED`."""
    if mail.alone[agent]:
        return OVER
    return FINISHED if end_clock(mail, agent) else REACHED


@compiled(forceinline=True, _nrt=False)
def end_wake(mail: Mail):  # pragma: no cover - compiled
    """Put the agent that has woken last back on its clock; why the window has to end, or `REACHED`."""
    agent = mail.heap_agent[0]
    mail.counts[UNFINISHED] = 0
    return REACHED if put_back(mail) else clock_over(mail, agent)


@compiled(forceinline=True, _nrt=False)
def is_event(mail: Mail, agent: int, now: float):  # pragma: no cover - compiled
    """Whether a wake-up counts as an event: not once its agent has fallen silent, or is gone for good."""
    return not mail.silent[agent] and now < mail.gone_from[agent]


@compiled(forceinline=True, _nrt=False)
def has_note_room(mail: Mail, degree: int):  # pragma: no cover - compiled
    """Whether notes of a step, of what it sends, and of everything that is under way fit in."""
    under_way = len(mail.free_nodes) - mail.counts[FREE_NODES]
    return len(mail.notes) - mail.counts[NOTES] > degree + under_way


@compiled(forceinline=True, _nrt=False)
def rows_needed(mail: Mail, agent: int, ports: Any):  # pragma: no cover - compiled
    """How many versions a step of an agent writes."""
    needed, degree = 0, mail.offsets[agent + 1] - mail.offsets[agent]
    for port in range(len(ports)):
        needed += degree if ports[port, ADDRESSED] else 1
    return needed


@compiled(forceinline=True, _nrt=False)
def take_rows(mail: Mail, agent: int, now: float, ports: Any, rows: Any):  # pragma: no cover - compiled
    """Take a version for everything that a step may say."""
    place, degree = 0, mail.offsets[agent + 1] - mail.offsets[agent]
    for port in range(len(ports)):
        for _ in range(degree if ports[port, ADDRESSED] else 1):
            rows[place] = take_row(mail, now, 0, mail.ticks[agent], ports[port, SIZE])
            place += 1


@compiled(forceinline=True, _nrt=False)
def make_step(
    mail: Mail, agent: int, now: float, step: Any, table: Any, ports: Any, rows: Any
):  # pragma: no cover - compiled
    """Let an agent make its compiled step, which writes what it says into rows; what the step says of itself."""
    take_rows(mail, agent, now, ports, rows)
    note_step(mail, agent, now)
    said = step(
        agent,
        mail.ticks[agent],
        now,
        mail.updates[agent],
        mail.offsets[agent],
        mail.offsets[agent + 1],
        mail.known,
        mail.pool,
        rows,
        table,
    )
    mail.silent[agent] = (said & SILENT) != 0
    return said


@compiled(forceinline=True, _nrt=False)
def is_counted(said: int):  # pragma: no cover - compiled
    """Whether a compiled step counts: not one at which its agent has fallen silent without a word."""
    return said & (SILENT | UNSAID) != (SILENT | UNSAID)


@compiled(forceinline=True, _nrt=False)
def charge(mail: Mail, agent: int, row: int):  # pragma: no cover - compiled
    """Charge an agent for a version without noise, and keep it to compare later ones with."""
    mail.charged[agent] += 1
    hold_version(mail, mail.paid, agent, row)


@compiled(forceinline=True, _nrt=False)
def charge_plain(mail: Mail, agent: int, row: int, width: int, due: bool):  # pragma: no cover - compiled
    """Charge an agent for a version without noise, if it is due and any news; whether it still is due."""
    if not due or not is_news(mail, agent, row, width):
        return due
    charge(mail, agent, row)
    return False


@compiled(forceinline=True, _nrt=False)
def send_said(
    mail: Mail, tables: Any, agent: int, said: int, ports: Any, rows: Any, send: Any
):  # pragma: no cover - compiled
    """Send what a step has said, its copies by ``send(mail, tables, agent, edges, kind, row)``.

    All messages of a step are one release, which is charged at most once.
    """
    first, last = mail.offsets[agent], mail.offsets[agent + 1]
    due, place = said & PLAIN != 0, 0
    for port in range(len(ports)):
        kind, width, apart = ports[port, KIND], ports[port, WIDTH], ports[port, ADDRESSED] != 0
        last_said = kind * len(mail.ticks) + agent
        for rank in range(last - first if apart else 1):
            row = rows[place]
            place += 1
            if last > first and ports[port, SAID]:
                due = charge_plain(mail, agent, row, width, due)
                if not apart:
                    hold_version(mail, mail.latest, last_said, row)
                begin, end = (first + rank, first + rank + 1) if apart else (first, last)
                mail.order[LINE * row] = count_message(mail, (end - begin) * ports[port, VECTORS])
                send(mail, tables, agent, range(begin, end), kind, row)
            release_version(mail, row)


@compiled(forceinline=True, _nrt=False)
def send_lazily(mail: Mail, late: Any, agent: int, edges: Any, kind: int, row: int):  # pragma: no cover - compiled
    """Send copies that are delivered when their receivers look, with bounds of their delays if ``late``."""
    send_copies(mail, late, agent, edges, kind, row, kind)


@compiled(forceinline=True, _nrt=False)
def step_and_send(
    mail: Mail, late: Any, agent: int, now: float, step: Any, table: Any, ports: Any, rows: Any
):  # pragma: no cover - compiled
    """Let an agent make its compiled step and send what it says; what the step says of itself."""
    said = make_step(mail, agent, now, step, table, ports, rows)
    if said & UNBOUNDED == 0:
        send_said(mail, late, agent, said, ports, rows, send_lazily)
    return said


@compiled(forceinline=True, _nrt=False)
def run_wakes(
    mail: Mail, late: Any, limit: float, forced: bool, compiled_step: bool, step: Any, table: Any, ports: Any, rows: Any
):  # pragma: no cover - compiled
    """Run wake-ups strictly before ``limit``, and the first one anyway if ``forced``; why it stopped, agent, time.

    Whether delays are drawn ``late`` is a constant of whoever calls: most worlds then have no code for it.
    """
    counts = mail.counts
    while True:
        if counts[UNFINISHED]:
            agent, now = mail.heap_agent[0], mail.heap_time[0]
            why = end_wake(mail)
            if why != REACHED:
                return why, agent, now
        if counts[HEAP] == 0:
            return IDLE, -1, math.inf
        now, agent = mail.heap_time[0], mail.heap_agent[0]
        if now >= limit and not forced:
            return REACHED, agent, now
        counted = is_event(mail, agent, now)
        if counted and used_up(mail):
            return LOOK, agent, now
        first, last = mail.offsets[agent], mail.offsets[agent + 1]
        if compiled_step and (
            counts[FREE_ROWS] < rows_needed(mail, agent, ports) or counts[FREE_NODES] < (last - first) * len(ports)
        ):
            return FULL, agent, now
        if counts[OBSERVED] and not has_note_room(mail, (last - first) * len(ports)):
            return FULL, agent, now
        forced = False
        mail.ticks[agent] += 1
        counts[WAKES] += counted
        counts[BARRIER], counts[UNFINISHED] = counts[ORDER], 1
        since = up_since(mail, agent, now)
        if mail.silent[agent] or since == math.inf:
            continue
        if SLOT_NUMBERS * len(mail.known) + mail.pool.size > NEAR:
            fetch(mail, agent, len(ports))
            if counts[HEAP] > 2:
                fetch_agent(mail, mail.heap_agent[1 if mail.heap_time[1] < mail.heap_time[2] else 2])
        for k in range(slots_with_copies(mail, first, last)):
            deliver_pending(mail, late, mail.awaited[k], agent, now, since, EVER)
        if not compiled_step:
            return AWAKE, agent, now
        said = step_and_send(mail, late, agent, now, step, table, ports, rows)
        if said & UNBOUNDED:
            return DIVERGED, agent, now
        if is_counted(said) and count_step(mail, agent):
            return COUNTED, agent, now


@compiled(_nrt=False)
def run_window(
    mail: Mail, limit: float, forced: bool, compiled_step: bool, step: Any, table: Any, ports: Any, rows: Any
):  # pragma: no cover - compiled
    """Run wake-ups as `run_wakes` does; every delay is drawn when a copy is sent."""
    return run_wakes(mail, False, limit, forced, compiled_step, step, table, ports, rows)


@compiled(_nrt=False)
def run_late_window(
    mail: Mail, limit: float, forced: bool, compiled_step: bool, step: Any, table: Any, ports: Any, rows: Any
):  # pragma: no cover - compiled
    """Run wake-ups as `run_wakes` does; delays are drawn when they have to be known."""
    return run_wakes(mail, True, limit, forced, compiled_step, step, table, ports, rows)
