"""The next wake-ups as a binary heap, compiled: ordered by time and agent, the first one at its top."""

from __future__ import annotations

import numpy as np

from ....agents.compilation import part
from ...tables.run import RunTables
from ...tables.tallies import HEAP


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
