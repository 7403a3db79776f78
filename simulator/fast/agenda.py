"""The agenda of an event-driven compiled window: what transitions asked for, in SimPy's own order.

Events are ordered by time, priority and the order in which they were asked for. All timers of a run wait equally long,
so a ring has them in order; everything else is on a heap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...agents.agent import TIMER
from ...agents.compiled import compiled
from ..rules.forms import rule
from ..tables.effects import EFFECTS, PRIORITY, SERIAL, SUBJECT, WHAT

TICKS = 2.0**30
"""All times are whole numbers of these."""
ON_HEAP, FIRST_TIMER, TIMERS, NUMBER, PLACES = range(5)
"""Places in `Agenda.size`: events on the heap, first timer and number of timers in the ring, events so far."""
TIME, KEY, LOAD, COLUMNS = range(4)
"""Columns of heap and ring: time in ticks; priority and number; what happens, to whom, and which time."""


class Agenda(NamedTuple):
    """What is to happen.

    Attributes
    ----------
    heap : (H, COLUMNS) int64
    ring : (T, COLUMNS) int64
    size : (PLACES,) int64
    """

    heap: Any
    ring: Any
    size: Any


@rule
def push(agenda, time, key, load):
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
def pop(agenda):
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
def take_effects(tables, agenda):
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
def timer_first(agenda):
    """Whether the next event is a timer."""
    size = agenda.size
    if size[TIMERS] == 0 or size[ON_HEAP] == 0:
        return size[TIMERS] > 0
    timer, other = agenda.ring[size[FIRST_TIMER]], agenda.heap[0]
    return timer[TIME] < other[TIME] or (timer[TIME] == other[TIME] and timer[KEY] < other[KEY])


@rule
def drop_first(agenda, is_timer):
    """Take the next event off the agenda."""
    if is_timer:
        agenda.size[FIRST_TIMER] = (agenda.size[FIRST_TIMER] + 1) % len(agenda.ring)
        agenda.size[TIMERS] -= 1
    else:
        pop(agenda)


@compiled(_nrt=False)
def settle_effects(tables, agenda):  # pragma: no cover - compiled
    """`take_effects`, from Python."""
    take_effects(tables, agenda)


def first(agenda: Agenda) -> tuple[float, int] | None:
    """Time and priority of the next event; None if there is none."""
    size = agenda.size.tolist()
    entries = []
    if size[ON_HEAP]:
        entries.append(agenda.heap[0].tolist())
    if size[TIMERS]:
        entries.append(agenda.ring[size[FIRST_TIMER]].tolist())
    if not entries:
        return None
    time, key, _ = min(entries)
    return time / TICKS, key >> 40
