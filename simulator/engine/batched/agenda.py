"""The agenda of a compiled window of events: what rules asked for, and changes of availability, in SimPy's own order.

Events are ordered by time, priority and the order in which they were asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....agents.compilation import compiled
from ...rules.forms import rule
from ...tables.effects import EFFECTS, PRIORITY, SERIAL, SUBJECT, WHAT
from ...tables.priorities import AVAILABILITY
from ...tables.room import extended
from ...tables.rounds import RoundTables
from ...tables.sessions import SessionTables

TICKS = 2.0**30
"""All times are whole numbers of these."""
ON_HEAP, NUMBER, PLACES = range(3)
"""Places in `Agenda.size`: events on the heap, and events so far."""
TIME, KEY, LOAD, COLUMNS = range(4)
"""Columns of the heap: time in ticks; priority and number; what happens, to whom, and which time."""


class Agenda(NamedTuple):
    """Event queue of a window: a heap of events, ordered by time, priority and number.

    Attributes
    ----------
    heap : (H, COLUMNS) int64
    size : (PLACES,) int64
    """

    heap: Any
    size: Any


def empty_agenda() -> Agenda:
    """Nothing, and no room for anything."""
    return Agenda(np.zeros((0, COLUMNS), dtype=np.int64), np.zeros(PLACES, dtype=np.int64))


def with_room(agenda: Agenda, events: int) -> Agenda:
    """The agenda, with room for so many more events."""
    if room_left(agenda) >= events:
        return agenda
    return agenda._replace(heap=extended(agenda.heap, len(agenda.heap) + events))


@rule
def room_left(agenda: Agenda):
    """Number of events that still fit into the queue."""
    return len(agenda.heap) - agenda.size[ON_HEAP]


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
def add(agenda: Agenda, time: float, priority: int, what: int, subject: int, serial: int):
    """Add an event; there must be room for it."""
    agenda.size[NUMBER] += 1
    key = (priority << 40) | agenda.size[NUMBER]
    push(agenda, int(time * TICKS), key, (serial << 33) | (subject << 3) | what)


@rule
def take_effects(tables: RoundTables | SessionTables, agenda: Agenda):
    """Put what rules asked for on the agenda; there must be room for it."""
    for k in range(tables.counts[EFFECTS]):
        effect = tables.effects[k]
        add(agenda, tables.due[k], effect[PRIORITY], effect[WHAT], effect[SUBJECT], effect[SERIAL])
    tables.counts[EFFECTS] = 0


@compiled(_nrt=False)
def settle_effects(tables: RoundTables, agenda: Agenda):  # pragma: no cover - compiled
    """`take_effects`, from Python."""
    take_effects(tables, agenda)


@compiled(_nrt=False)
def add_changes(agenda: Agenda, times: Any, whats: Any, agents: Any):  # pragma: no cover - compiled
    """Add changes of availability, which are in order; there must be room for them."""
    for k in range(len(times)):
        add(agenda, times[k], AVAILABILITY, whats[k], agents[k], 0)


@rule
def subject_of(load: int):
    """Index of what an event is about: an agent, a directed edge, a copy or a record."""
    return (load >> 3) & ((1 << 30) - 1)


@compiled(_nrt=False)
def keep_events(agenda: Agenda, kept: Any):  # pragma: no cover - compiled
    """Drop events, by their (H,) places on the heap, that are not kept."""
    heap, size = agenda.heap, agenda.size[ON_HEAP]
    agenda.size[ON_HEAP] = 0
    for k in range(size):  # what is put back never goes beyond the next one to be read
        if kept[k]:
            push(agenda, heap[k, TIME], heap[k, KEY], heap[k, LOAD])


def first(agenda: Agenda) -> tuple[float, int] | None:
    """Time and priority of the next event; None if there is none."""
    if agenda.size[ON_HEAP] == 0:
        return None
    return int(agenda.heap[0, TIME]) / TICKS, int(agenda.heap[0, KEY]) >> 40
