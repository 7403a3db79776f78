"""Rules of clocks: times of steps and of changes of availability, and the counting of steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...agents.availability import BEYOND, DIURNAL, diurnal_time, on_off_length, on_off_rest
from ...agents.compilation import compiled
from ..network.clocks import POISSON, RECORDED, periodic_interval, poisson_interval
from ..network.randomness import QUANTUM, Purpose, draw_one, lasting
from ..tables.effects import DOWN, UP
from ..tables.run import (
    CLOCK_CODE,
    EVENTS_BEFORE_POLL,
    JITTER,
    MOST_ACTIVATIONS,
    MOST_UPDATES,
    MOST_VECTORS,
    RANDOM_PHASE,
    RECORD_EVERY,
    RunTables,
)
from ..tables.tallies import ACTIVATIONS, ACTIVE, SENT, SHORT, VECTORS, WAKES
from .forms import rule
from .heap import push, replace_top


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
    return counts[ACTIVE] == 0 or (run.constants[MOST_UPDATES] >= 0.0 and counts[SHORT] == 0)


@rule
def used_up(run: RunTables):
    """True if the run's limits have to be polled before its next wake-up or timer."""
    return run.counts[WAKES] + run.counts[SENT] >= run.constants[EVENTS_BEFORE_POLL]


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
def is_news(run: RunTables, pool: Any, agent: int, row: int, width: int):
    """True if a version differs from the last one that its sender was charged for: the same bytes again are free."""
    old = run.agents.paid[agent]
    if old < 0 or run.versions.bytes[row] != run.versions.bytes[old]:
        return True
    for k in range(width):
        new, before = pool[row, k], pool[old, k]
        if new != before or math.copysign(1.0, new) != math.copysign(1.0, before):
            return True
    return False


AVAILABILITY = int(Purpose.AVAILABILITY)


@rule
def following_change(absences: Any, key: Any, number: int, index: int, up: bool, now: float):
    """Time of the next change, of this ``index``, of an agent that is up, or down, since ``now``."""
    u, v, _ = draw_one(key[0], key[1], number, 0, 0 if absences.code == DIURNAL else index, AVAILABILITY, 0)
    if absences.code == DIURNAL:
        return np.rint(diurnal_time(absences.up, absences.online, absences.down, index, u) / QUANTUM) * QUANTUM
    mean = absences.up if up else absences.down
    if index > 1:
        length = on_off_length(mean, absences.sigma, absences.shift, u, v)
    else:
        share = draw_one(key[0], key[1], number, 0, 0, AVAILABILITY, 0)[1]
        length = on_off_rest(mean, absences.sigma, absences.shift, u, v, share)
    return now + np.rint(min(length, BEYOND) / QUANTUM) * QUANTUM


@rule
def first_change(absences: Any, key: Any, number: int):
    """Return whether an agent is up at time 0, the time of its first change, and the number of that change."""
    if absences.code == DIURNAL:
        index, time = 0, following_change(absences, key, number, 0, False, 0.0)
        while time <= 0.0:
            index += 1
            time = following_change(absences, key, number, index, False, 0.0)
        return index % 2 == 1, time, index
    up = draw_one(key[0], key[1], number, 0, 0, AVAILABILITY, 0)[0] < absences.online
    return up, following_change(absences, key, number, 1, up, 0.0), 1


@compiled(_nrt=False)
def begin_changes(
    absences: Any, key: Any, numbers: Any, heap: Any, counts: Any, up: Any
):  # pragma: no cover - compiled
    """Draw the state of all agents at time 0 and their first changes."""
    for agent in range(len(numbers)):
        up[agent], time, index = first_change(absences, key, numbers[agent])
        push(heap, counts, 0, time, agent, (index << 1) | up[agent])


@compiled(_nrt=False)
def draw_changes(
    absences: Any, key: Any, numbers: Any, heap: Any, counts: Any, until: float, times: Any, whats: Any, agents: Any
):  # pragma: no cover - compiled
    """Draw further changes up to a time, as many as there is room for, in order of times and agents; how many."""
    count = 0
    while heap.time[0] <= until and count < len(times):
        now, agent, load = heap.time[0], heap.rank[0], heap.load[0]
        index, up = (load >> 1) + 1, load & 1 == 0
        times[count], whats[count], agents[count] = now, UP if up else DOWN, agent
        count += 1
        following = following_change(absences, key, numbers[agent], index, up, now)
        replace_top(heap, counts[0], following, agent, (index << 1) | up)
    return count
