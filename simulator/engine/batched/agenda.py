"""The agenda of an event-driven compiled window: what transitions asked for, in SimPy's own order.

Events are ordered by time, priority and the order in which they were asked for. All timers of a run wait equally long,
so a ring has them in order; changes of availability, the only events of their priority, are known in order, too;
everything else is on a heap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....agents.compilation import compiled
from ...rules.forms import rule
from ...tables.broadcasts import BroadcastTables
from ...tables.effects import EFFECTS, PRIORITY, SERIAL, SUBJECT, WHAT
from ...tables.priorities import AVAILABILITY, TIMER
from ...tables.rounds import RoundTables

TICKS = 2.0**30
"""All times are whole numbers of these."""
ON_HEAP, FIRST_TIMER, TIMERS, NEXT_CHANGE, NUMBER, PLACES = range(6)
"""Places in `Agenda.size`: events on the heap, first timer and number of timers in the ring, first of the changes that
is yet to come, events so far."""
HEAP, RING, CHANGES, NOWHERE = range(4)
"""Where the next event is."""
TIME, KEY, LOAD, COLUMNS = range(4)
"""Columns of heap and ring: time in ticks; priority and number; what happens, to whom, and which time."""


class Agenda(NamedTuple):
    """What is to happen.

    Attributes
    ----------
    heap : (H, COLUMNS) int64
    ring : (T, COLUMNS) int64
    changes : (A, COLUMNS) int64
    size : (PLACES,) int64
    """

    heap: Any
    ring: Any
    changes: Any
    size: Any


@rule
def push(agenda: Agenda, time: int, key: int, load: int):
    """Put an event on the heap; there must be room for it."""
    heap, here = agenda.heap, agenda.size[ON_HEAP]
    agenda.size[ON_HEAP] += 1
    while here > 0:
        parent = (here - 1) // 2
        above = heap[parent]
        if above[TIME] < time or (above[TIME] == time and above[KEY] < key):
            break
        entry = heap[here]
        entry[TIME], entry[KEY], entry[LOAD] = above[TIME], above[KEY], above[LOAD]
        here = parent
    entry = heap[here]
    entry[TIME], entry[KEY], entry[LOAD] = time, key, load


@rule
def pop(agenda: Agenda):
    """Take the first event off the heap."""
    heap = agenda.heap
    agenda.size[ON_HEAP] -= 1
    size = agenda.size[ON_HEAP]
    time, key, load = heap[size, TIME], heap[size, KEY], heap[size, LOAD]
    here = 0
    while True:
        child = 2 * here + 1
        if child >= size:
            break
        if child + 1 < size and (
            heap[child + 1, TIME] < heap[child, TIME]
            or (heap[child + 1, TIME] == heap[child, TIME] and heap[child + 1, KEY] < heap[child, KEY])
        ):
            child += 1
        below = heap[child]
        if below[TIME] > time or (below[TIME] == time and below[KEY] > key):
            break
        entry = heap[here]
        entry[TIME], entry[KEY], entry[LOAD] = below[TIME], below[KEY], below[LOAD]
        here = child
    entry = heap[here]
    entry[TIME], entry[KEY], entry[LOAD] = time, key, load


@rule
def take_effects(tables: BroadcastTables | RoundTables, agenda: Agenda):
    """Put what transitions asked for on the agenda; there must be room for it."""
    for k in range(tables.counts[EFFECTS]):
        effect = tables.effects[k]
        agenda.size[NUMBER] += 1
        time = int(tables.due[k] * TICKS)
        key = (effect[PRIORITY] << 40) | agenda.size[NUMBER]
        load = (effect[SERIAL] << 33) | (effect[SUBJECT] << 3) | effect[WHAT]
        if effect[PRIORITY] == TIMER:
            entry = agenda.ring[(agenda.size[FIRST_TIMER] + agenda.size[TIMERS]) % len(agenda.ring)]
            agenda.size[TIMERS] += 1
            entry[TIME], entry[KEY], entry[LOAD] = time, key, load
        else:
            push(agenda, time, key, load)
    tables.counts[EFFECTS] = 0


@rule
def first_of(agenda: Agenda, source: int, column: int):
    """A column of the first event of a source that is not empty."""
    if source == HEAP:
        return agenda.heap[0, column]
    if source == RING:
        return agenda.ring[agenda.size[FIRST_TIMER], column]
    return agenda.changes[agenda.size[NEXT_CHANGE], column]


@rule
def sooner(agenda: Agenda, one: int, other: int):
    """Whether the first event of a source that is not empty comes before that of another, which may be `NOWHERE`."""
    if other == NOWHERE:
        return True
    here, there = first_of(agenda, one, TIME), first_of(agenda, other, TIME)
    return here < there or (here == there and first_of(agenda, one, KEY) < first_of(agenda, other, KEY))


@rule
def next_source(agenda: Agenda):
    """Where the next event is."""
    size = agenda.size
    source = HEAP if size[ON_HEAP] > 0 else NOWHERE
    if size[TIMERS] > 0 and sooner(agenda, RING, source):
        source = RING
    if size[NEXT_CHANGE] < len(agenda.changes) and sooner(agenda, CHANGES, source):
        source = CHANGES
    return source


@rule
def drop_first(agenda: Agenda, source: int):
    """Take the next event off the agenda."""
    if source == RING:
        agenda.size[FIRST_TIMER] = (agenda.size[FIRST_TIMER] + 1) % len(agenda.ring)
        agenda.size[TIMERS] -= 1
    elif source == CHANGES:
        agenda.size[NEXT_CHANGE] += 1
    else:
        pop(agenda)


@compiled(_nrt=False)
def settle_effects(tables: BroadcastTables | RoundTables, agenda: Agenda):  # pragma: no cover - compiled
    """`take_effects`, from Python."""
    take_effects(tables, agenda)


def first(agenda: Agenda) -> tuple[float, int] | None:
    """Time and priority of the next event; None if there is none."""
    source = next_source(agenda)
    if source == NOWHERE:
        return None
    time, key = (int(first_of(agenda, source, column)) for column in (TIME, KEY))
    return time / TICKS, key >> 40


def with_changes(
    agenda: Agenda, times: NDArray[np.float64], whats: NDArray[np.int64], agents: NDArray[np.int64]
) -> Agenda:
    """The agenda with further changes of availability, which are in order and after all that it knows of."""
    more = np.empty((len(times), COLUMNS), dtype=np.int64)
    more[:, TIME], more[:, KEY] = times * TICKS, AVAILABILITY << 40
    more[:, LOAD] = (agents << 3) | whats
    changes = np.concatenate([agenda.changes[agenda.size[NEXT_CHANGE] :], more])
    agenda.size[NEXT_CHANGE] = 0
    return agenda._replace(changes=changes)
