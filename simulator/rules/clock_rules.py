"""Rules of clocks: times of steps and of changes of availability, the counting of steps, and the heap of wake-ups.

Wake-ups to come are a binary heap, ordered by time and agent, the first one at its top.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...agents.availability import BEYOND, DIURNAL, diurnal_time, on_off_length, on_off_rest
from ...agents.compilation import compiled, part
from ..network.clocks import POISSON, RECORDED, periodic_interval, poisson_interval
from ..network.randomness import QUANTUM, Purpose, draw_one, lasting
from ..tables.effects import AGENT, DOWN, INDEX, IS_UP, NUMBER, UP, AbsenceTable
from ..tables.run import (
    CLOCK_CODE,
    ENDS_BY_TIME,
    EVENTS_BEFORE_LOOK,
    JITTER,
    MOST_ACTIVATIONS,
    MOST_UPDATES,
    MOST_VECTORS,
    RANDOM_PHASE,
    RECORD_EVERY,
    RunTables,
)
from ..tables.tallies import ACTIVATIONS, ACTIVE, HEAP, SENT, SHORT, VECTORS, WAKES
from .forms import rule


@rule
def next_time(run: RunTables, agent: int, tick: int, now: float):
    """Compute when a clock ticks next, as `hushnet.simulator.network.clocks.Clock.next_time`."""
    code = int(run.constants[CLOCK_CODE])
    if code == RECORDED:
        place = run.recorded_offsets[agent] + tick
        return run.recorded[place] if place < run.recorded_offsets[agent + 1] else math.inf
    mean, number = run.agents.interval[agent], run.agents.numbers[agent]
    if code == POISSON:
        interval = poisson_interval(run.key[0], run.key[1], number, tick, mean)
    else:
        random_phase = run.constants[RANDOM_PHASE] != 0.0
        interval = periodic_interval(run.key[0], run.key[1], number, tick, mean, run.constants[JITTER], random_phase)
    return now + max(QUANTUM, lasting(interval))


@rule
def end_clock(run: RunTables, agent: int):
    """Count an agent that will never step again; whether the run has nothing left to wait for."""
    counts = run.counts
    counts[ACTIVE] -= 1
    counts[SHORT] -= run.agents.updates[agent] < run.constants[MOST_UPDATES]
    everybody_done = run.constants[MOST_UPDATES] >= 0.0 and counts[SHORT] == 0
    return everybody_done or (run.constants[ENDS_BY_TIME] == 0.0 and counts[ACTIVE] == 0)


@rule
def used_up(run: RunTables):
    """True if the run's limits have to be polled before its next wake-up or timer."""
    return run.counts[WAKES] + run.counts[SENT] >= run.constants[EVENTS_BEFORE_LOOK]


@rule
def count_step(run: RunTables, agent: int):
    """Count a completed step; whether a limit or a record is due."""
    counts = run.counts
    counts[ACTIVATIONS] += 1
    run.agents.updates[agent] += 1
    due = run.constants[RECORD_EVERY] > 0.0 and counts[ACTIVATIONS] % np.int64(run.constants[RECORD_EVERY]) == 0
    due |= counts[ACTIVATIONS] >= run.constants[MOST_ACTIVATIONS] or counts[VECTORS] >= run.constants[MOST_VECTORS]
    return due or run.agents.updates[agent] == run.constants[MOST_UPDATES]


@rule
def is_news(run: RunTables, agent: int, row: int, width: int):
    """True if a version differs from the last one that its sender was charged for: the same bytes again are free."""
    old = run.agents.paid[agent]
    if old < 0 or run.versions.bytes[row] != run.versions.bytes[old]:
        return True
    for k in range(width):
        new, before = run.pool[row, k], run.pool[old, k]
        if new != before or math.copysign(1.0, new) != math.copysign(1.0, before):
            return True
    return False


AVAILABILITY = int(Purpose.AVAILABILITY)


@rule
def following_change(law: Any, key: Any, number: int, index: int, up: bool, now: float):
    """Time of the next change, of this ``index``, of an agent that is up, or down, since ``now``."""
    u, v, _ = draw_one(key[0], key[1], number, 0, 0 if law.code == DIURNAL else index, AVAILABILITY, 0)
    if law.code == DIURNAL:
        return np.rint(diurnal_time(law.up, law.online, law.down, index, u) / QUANTUM) * QUANTUM
    mean = law.up if up else law.down
    if index > 1:
        length = on_off_length(mean, law.sigma, law.shift, u, v)
    else:
        share = draw_one(key[0], key[1], number, 0, 0, AVAILABILITY, 0)[1]
        length = on_off_rest(mean, law.sigma, law.shift, u, v, share)
    return now + np.rint(min(length, BEYOND) / QUANTUM) * QUANTUM


@rule
def first_change(law: Any, key: Any, number: int):
    """Return whether an agent is up at time 0, the time of its first change, and the number of that change."""
    if law.code == DIURNAL:
        index, time = 0, following_change(law, key, number, 0, False, 0.0)
        while time <= 0.0:
            index += 1
            time = following_change(law, key, number, index, False, 0.0)
        return index % 2 == 1, time, index
    up = draw_one(key[0], key[1], number, 0, 0, AVAILABILITY, 0)[0] < law.online
    return up, following_change(law, key, number, 1, up, 0.0), 1


@compiled(_nrt=False)
def begin_changes(law: Any, key: Any, numbers: Any, table: AbsenceTable, up: Any):  # pragma: no cover - compiled
    """Draw the state of all agents at time 0 and their first changes, by agent."""
    for agent in range(len(numbers)):
        up[agent], table.times[agent], index = first_change(law, key, numbers[agent])
        entry = table.heap[agent]
        entry[AGENT], entry[NUMBER], entry[INDEX], entry[IS_UP] = agent, agent, index, up[agent]


@compiled(_nrt=False)
def draw_changes(
    law: Any, key: Any, numbers: Any, table: AbsenceTable, until: float, times: Any, whats: Any, agents: Any
):  # pragma: no cover - compiled
    """Draw further changes up to a time, as many as there is room for, in order; how many.

    At equal times the order is that of the changes before them, or of the agents: so processes of one agent each would
    have asked for them.
    """
    queue, heap, count = table.times, table.heap, 0
    while queue[0] <= until and count < len(times):
        now, agent, index, up = queue[0], heap[0, AGENT], heap[0, INDEX] + 1, heap[0, IS_UP] == 0
        times[count], whats[count], agents[count] = now, UP if up else DOWN, agent
        count += 1
        time, number = following_change(law, key, numbers[agent], index, up, now), table.asked[0]
        table.asked[0] += 1
        here = 0
        while True:
            child = 2 * here + 1
            if child >= len(queue):
                break
            if child + 1 < len(queue):
                left, right = queue[child], queue[child + 1]
                if right < left or (right == left and heap[child + 1, NUMBER] < heap[child, NUMBER]):
                    child += 1
            if queue[child] > time:  # whatever is as early was asked for earlier
                break
            queue[here] = queue[child]
            entry, below = heap[here], heap[child]
            entry[AGENT], entry[NUMBER], entry[INDEX], entry[IS_UP] = (
                below[AGENT],
                below[NUMBER],
                below[INDEX],
                below[IS_UP],
            )
            here = child
        entry = heap[here]
        queue[here] = time
        entry[AGENT], entry[NUMBER], entry[INDEX], entry[IS_UP] = agent, number, index, up
    return count


def order_heap(run: RunTables) -> None:
    """Make a heap of wake-ups in any order."""
    wakes = run.wakes[: run.counts[HEAP]]
    wakes[:] = wakes[np.lexsort((wakes.agent, wakes.time))]


@part(_nrt=False)
def precedes(time: float, agent: int, other_time: float, other: int):  # pragma: no cover - compiled
    """True if a wake-up comes before another one: it is earlier, or its agent has the smaller index."""
    return time < other_time or (time == other_time and agent < other)


@part(_nrt=False)
def put(run: RunTables, place: int, time: float, agent: int):  # pragma: no cover - compiled
    """Write a wake-up down."""
    run.wakes.time[place], run.wakes.agent[place] = time, agent


@part(_nrt=False)
def add(run: RunTables, time: float, agent: int):  # pragma: no cover - compiled
    """Add a wake-up to those that were there from the beginning, in any order."""
    put(run, run.counts[HEAP], time, agent)
    run.counts[HEAP] += 1


@part(_nrt=False)
def push(run: RunTables, time: float, agent: int):  # pragma: no cover - compiled
    """Put a wake-up on the heap."""
    wakes, here = run.wakes, run.counts[HEAP]
    run.counts[HEAP] += 1
    while here > 0:
        parent = (here - 1) // 2
        if precedes(wakes.time[parent], wakes.agent[parent], time, agent):
            break
        put(run, here, wakes.time[parent], wakes.agent[parent])
        here = parent
    put(run, here, time, agent)


@part(_nrt=False)
def sift_down(run: RunTables, time: float, agent: int):  # pragma: no cover - compiled
    """Put a wake-up into the heap in place of its top."""
    wakes, here, size = run.wakes, 0, run.counts[HEAP]
    while 2 * here + 1 < size:
        child = 2 * here + 1
        if child + 1 < size and precedes(
            wakes.time[child + 1], wakes.agent[child + 1], wakes.time[child], wakes.agent[child]
        ):
            child += 1
        if precedes(time, agent, wakes.time[child], wakes.agent[child]):
            break
        put(run, here, wakes.time[child], wakes.agent[child])
        here = child
    put(run, here, time, agent)


@part(_nrt=False)
def take_top(run: RunTables):  # pragma: no cover - compiled
    """Take the first wake-up from the heap."""
    run.counts[HEAP] -= 1
    last = run.counts[HEAP]
    if last > 0:
        sift_down(run, run.wakes.time[last], run.wakes.agent[last])
