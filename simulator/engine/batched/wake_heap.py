"""The next wake-ups as a heap, compiled: ordered by time and agent, the first one at its top.

A parent has four children, which lie together in one line of memory: in large worlds a heap is slow by the lines that
it has to wait for, one after the other. Beyond the last wake-up there are infinite times, so that nobody has to ask how
many children there are. All arrays travel as one named tuple (`hushnet.simulator.tables.run.RunTables`), so these
functions must not allocate.
"""

from __future__ import annotations

import math

import numpy as np

from ....agents.compilation import part
from ...tables.run import CHILDREN, WAKE_UP, RunTables
from ...tables.tallies import HEAP


def order_heap(run: RunTables) -> None:
    """Make a heap of wake-ups in any order."""
    size = run.counts[HEAP]
    times, agents = run.heap_time[: WAKE_UP * size : WAKE_UP], run.heap_agent[: WAKE_UP * size : WAKE_UP]
    order = np.lexsort((agents, times))
    times[:], agents[:] = times[order], agents[order]


@part(_nrt=False)
def precedes(time: float, agent: int, other_time: float, other: int):  # pragma: no cover - compiled
    """Whether a wake-up comes before another one; without a branch, which a processor would guess wrong."""
    return (time < other_time) | ((time == other_time) & (agent < other))


@part(_nrt=False)
def is_sooner(run: RunTables, one: int, other: int):  # pragma: no cover - compiled
    """Whether a wake-up comes before another one, by their places."""
    one, other = WAKE_UP * one, WAKE_UP * other
    return precedes(run.heap_time[one], run.heap_agent[one], run.heap_time[other], run.heap_agent[other])


@part(_nrt=False)
def first_child(run: RunTables, parent: int):  # pragma: no cover - compiled
    """The place of a parent's first child; of a parent that has one, for then there is room for all four."""
    first = CHILDREN * parent + 1
    left = first + is_sooner(run, first + 1, first)
    right = first + 2 + is_sooner(run, first + 3, first + 2)
    return left + (right - left) * is_sooner(run, right, left)


@part(_nrt=False)
def put(run: RunTables, place: int, time: float, agent: int):  # pragma: no cover - compiled
    """Write a wake-up down."""
    run.heap_time[WAKE_UP * place], run.heap_agent[WAKE_UP * place] = time, agent


@part(_nrt=False)
def add(run: RunTables, time: float, agent: int):  # pragma: no cover - compiled
    """Add a wake-up to those that were there from the beginning, in any order."""
    put(run, run.counts[HEAP], time, agent)
    run.counts[HEAP] += 1


@part(_nrt=False)
def push(run: RunTables, time: float, agent: int):  # pragma: no cover - compiled
    """Put a wake-up on the heap."""
    here = run.counts[HEAP]
    run.counts[HEAP] += 1
    while here > 0:
        parent = (here - 1) // CHILDREN
        above, whose = run.heap_time[WAKE_UP * parent], run.heap_agent[WAKE_UP * parent]
        if precedes(above, whose, time, agent):
            break
        put(run, here, above, whose)
        here = parent
    put(run, here, time, agent)


@part(_nrt=False)
def sift_down(run: RunTables, time: float, agent: int):  # pragma: no cover - compiled
    """Put a wake-up into the heap in place of its top."""
    here, size = 0, run.counts[HEAP]
    while CHILDREN * here + 1 < size:
        child = first_child(run, here)
        below, whose = run.heap_time[WAKE_UP * child], run.heap_agent[WAKE_UP * child]
        if precedes(time, agent, below, whose):
            break
        put(run, here, below, whose)
        here = child
    put(run, here, time, agent)


@part(_nrt=False)
def take_top(run: RunTables):  # pragma: no cover - compiled
    """Take the first wake-up from the heap."""
    run.counts[HEAP] -= 1
    last = run.counts[HEAP]
    if last > 0:
        time, agent = run.heap_time[WAKE_UP * last], run.heap_agent[WAKE_UP * last]
        put(run, last, math.inf, agent)
        sift_down(run, time, agent)
