"""When agents step, and what a step counts as."""

from __future__ import annotations

import math

import numpy as np

from ..network.clocks import POISSON, RECORDED, periodic_interval, poisson_interval
from ..network.randomness import QUANTUM, lasting
from ..tables.mail import (
    CLOCK_CODE,
    ENDS_BY_TIME,
    EVENTS_BEFORE_LOOK,
    JITTER,
    LINE,
    MOST_ACTIVATIONS,
    MOST_UPDATES,
    MOST_VECTORS,
    RANDOM_PHASE,
    RECORD_EVERY,
    Mail,
)
from ..tables.tallies import ACTIVATIONS, ACTIVE, SENT, SHORT, VECTORS, WAKES
from .forms import rule


@rule
def next_time(mail: Mail, agent: int, tick: int, now: float):
    """Compute when a clock ticks next, as `hushnet.simulator.network.clocks.Clock.next_time`."""
    code = int(mail.clock[CLOCK_CODE])
    if code == RECORDED:
        place = mail.recorded_offsets[agent] + tick
        return mail.recorded[place] if place < mail.recorded_offsets[agent + 1] else math.inf
    mean, number = mail.means[agent], mail.numbers[agent]
    if code == POISSON:
        interval = poisson_interval(mail.key[0], mail.key[1], number, tick, mean)
    else:
        random_phase = mail.clock[RANDOM_PHASE] != 0.0
        interval = periodic_interval(mail.key[0], mail.key[1], number, tick, mean, mail.clock[JITTER], random_phase)
    return now + max(QUANTUM, lasting(interval))


@rule
def end_clock(mail: Mail, agent: int):
    """Count an agent that will never step again; whether the run has nothing left to wait for."""
    counts = mail.counts
    counts[ACTIVE] -= 1
    counts[SHORT] -= mail.updates[agent] < mail.constants[MOST_UPDATES]
    everybody_done = mail.constants[MOST_UPDATES] >= 0.0 and counts[SHORT] == 0
    return everybody_done or (mail.clock[ENDS_BY_TIME] == 0.0 and counts[ACTIVE] == 0)


@rule
def used_up(mail: Mail):
    """Whether somebody has to look at the run's limits before its next wake-up or timer."""
    return mail.counts[WAKES] + mail.counts[SENT] >= mail.constants[EVENTS_BEFORE_LOOK]


@rule
def count_step(mail: Mail, agent: int):
    """Count a completed step; whether a limit or a record is due."""
    counts = mail.counts
    counts[ACTIVATIONS] += 1
    mail.updates[agent] += 1
    due = mail.clock[RECORD_EVERY] > 0.0 and counts[ACTIVATIONS] % np.int64(mail.clock[RECORD_EVERY]) == 0
    due |= counts[ACTIVATIONS] >= mail.constants[MOST_ACTIVATIONS] or counts[VECTORS] >= mail.constants[MOST_VECTORS]
    return due or mail.updates[agent] == mail.constants[MOST_UPDATES]


@rule
def is_news(mail: Mail, agent: int, row: int, width: int):
    """Whether a version differs from the last one that its sender was charged for: the same bytes again are free."""
    old = mail.paid[agent]
    if old < 0 or mail.size[LINE * row] != mail.size[LINE * old]:
        return True
    for k in range(width):
        new, before = mail.pool[row, k], mail.pool[old, k]
        if new != before or math.copysign(1.0, new) != math.copysign(1.0, before):
            return True
    return False
