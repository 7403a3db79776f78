"""Copies of sessions under way, and what callers wait for: a heap, and a queue of timers that wait equally long.

An engine that has events of its own for them puts others in the place of `push_copy` and `set_timer`.
"""

from __future__ import annotations

import math
from typing import Any

from ..tables.run import RunTables
from ..tables.sessions import COPIES, FIRST_TIMER, FREE_COPIES, NOW, PATIENCE, TICK, TIMERS, SessionTables
from ..tables.tallies import ORDER
from .forms import rule


@rule
def push_copy(run: RunTables, tables: SessionTables, kind: int, edge: int, tick: int, size: Any, arrival: float):
    """Put a copy under way; there must be room for it."""
    counts, times, orders, places = tables.counts, tables.copy_time, tables.copy_order, tables.copy_place
    counts[FREE_COPIES] -= 1
    place = tables.free_copies[counts[FREE_COPIES]]
    copy = tables.copies[place]
    copy[0], copy[1], copy[2], copy[3] = kind, edge, tick, size
    tables.copy_sent_at[place] = tables.times[NOW]
    order = run.counts[ORDER]
    here = counts[COPIES]
    counts[COPIES] += 1
    while here > 0:
        parent = (here - 1) // 2
        # Orders only grow: of two copies that arrive together, the one that is here already comes first.
        if times[parent] <= arrival:
            break
        times[here], orders[here], places[here] = times[parent], orders[parent], places[parent]
        here = parent
    times[here], orders[here], places[here] = arrival, order, place


@rule
def pop_copy(tables: SessionTables):
    """Take the next copy off the heap; its place, free from now on."""
    counts, times, orders, places = tables.counts, tables.copy_time, tables.copy_order, tables.copy_place
    top = places[0]
    tables.free_copies[counts[FREE_COPIES]] = top
    counts[FREE_COPIES] += 1
    counts[COPIES] -= 1
    size = counts[COPIES]
    time, order, place = times[size], orders[size], places[size]
    here = 0
    while True:
        child = 2 * here + 1
        if child >= size:
            break
        right = min(child + 1, size - 1)
        if times[right] < times[child] or (times[right] == times[child] and orders[right] < orders[child]):
            child = right
        if times[child] > time or (times[child] == time and orders[child] > order):
            break
        times[here], orders[here], places[here] = times[child], orders[child], places[child]
        here = child
    times[here], orders[here], places[here] = time, order, place
    return top


@rule
def set_timer(tables: SessionTables, edge: int):
    """Let a caller look after its session again when its patience is over; there must be room for the timer."""
    counts = tables.counts
    place = (counts[FIRST_TIMER] + counts[TIMERS]) % len(tables.timer_due)
    counts[TIMERS] += 1
    tables.timer_due[place] = tables.times[NOW] + tables.times[PATIENCE]
    tables.timer_edge[place], tables.timer_tick[place] = edge, tables.sessions[edge][TICK]


@rule
def drop_timer(tables: SessionTables):
    """Take the first timer off the queue; its session's edge."""
    counts = tables.counts
    edge = tables.timer_edge[counts[FIRST_TIMER]]
    counts[FIRST_TIMER] = (counts[FIRST_TIMER] + 1) % len(tables.timer_due)
    counts[TIMERS] -= 1
    return edge


@rule
def next_timer(tables: SessionTables):
    """When the first timer is due whose session is still open; infinite if there is none."""
    counts = tables.counts
    while counts[TIMERS] > 0:
        first = counts[FIRST_TIMER]
        if tables.sessions[tables.timer_edge[first]][TICK] == tables.timer_tick[first]:
            return tables.timer_due[first]
        drop_timer(tables)
    return math.inf
