"""Rules of clocks: the times of agents' steps, and the counting of steps."""

from __future__ import annotations

import math

import numpy as np

from ..network.clocks import POISSON, RECORDED, periodic_interval, poisson_interval
from ..network.randomness import QUANTUM, lasting
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
from ..tables.tallies import ACTIVATIONS, ACTIVE, SENT, SHORT, VECTORS, WAKES
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
