"""Event queue of a compiled window: arrivals, timers, absences and ends of steps, in SimPy's own order.

It has what rules asked for, ordered by time, priority and the order in which it was asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....agents.compilation import compiled, part
from ...rules.forms import rule
from ...rules.heap import push
from ...tables.allocation import extended, zeros
from ...tables.effects import AVAILABILITY, COMPUTED, EFFECTS, PRIORITY, SERIAL, SUBJECT, TIMER, WHAT
from ...tables.round_table import RoundTables
from ...tables.run import DUE
from ...tables.session_table import SessionTables

ON_HEAP, NUMBER, PLACES = range(3)
"""Places in `EventQueue.size`: events on the heap, and events so far."""


class EventQueue(NamedTuple):
    """Event queue of a window: a heap of events, ordered by time, priority and number.

    The ranks of the (H,) DUE ``heap`` are priority and number; loads say what happens, to whom, and which time. The
    ``size`` is (PLACES,) int64.
    """

    heap: Any
    size: Any


def empty_queue() -> EventQueue:
    """Nothing, and no room for anything."""
    return EventQueue(zeros(0, DUE), np.zeros(PLACES, dtype=np.int64))


def with_capacity(queue: EventQueue, events: int) -> EventQueue:
    """The queue, with room for so many more events."""
    if capacity_left(queue) >= events:
        return queue
    return queue._replace(heap=extended(queue.heap, len(queue.heap) + events))


@rule
def capacity_left(queue: EventQueue):
    """Number of events that still fit into the queue."""
    return len(queue.heap) - queue.size[ON_HEAP]


@rule
def add(queue: EventQueue, time: float, priority: int, what: int, subject: int, serial: int):
    """Add an event; there must be room for it."""
    queue.size[NUMBER] += 1
    key = (priority << 40) | queue.size[NUMBER]
    push(queue.heap, queue.size, ON_HEAP, time, key, (serial << 33) | (subject << 4) | what)


@part(_nrt=False)
def make_late(queue: EventQueue, time: float, agent: int):  # pragma: no cover - compiled
    """Add the end of a step that its agent makes once it is up; after other timers of that instant, by agent."""
    push(queue.heap, queue.size, ON_HEAP, time, (TIMER << 40) | ((1 << 39) + agent), (agent << 4) | COMPUTED)


@rule
def take_effects(tables: RoundTables | SessionTables, queue: EventQueue):
    """Put what rules asked for in the queue; there must be room for it."""
    for k in range(tables.counts[EFFECTS]):
        effect = tables.effects[k]
        add(queue, tables.due[k], effect[PRIORITY], effect[WHAT], effect[SUBJECT], effect[SERIAL])
    tables.counts[EFFECTS] = 0


@compiled(_nrt=False)
def add_changes(queue: EventQueue, times: Any, whats: Any, agents: Any):  # pragma: no cover - compiled
    """Add changes of availability, which are in order; there must be room for them."""
    for k in range(len(times)):
        add(queue, times[k], AVAILABILITY, whats[k], agents[k], 0)


@rule
def what_of(load: int):
    """What an event is, by its number in `hushnet.simulator.tables.effects`."""
    return load & 15


@rule
def subject_of(load: int):
    """Index of what an event is about: an agent, a directed edge, a copy or a record."""
    return (load >> 4) & ((1 << 29) - 1)


@compiled(_nrt=False)
def keep_events(queue: EventQueue, kept: Any):  # pragma: no cover - compiled
    """Drop events, by their (H,) places on the heap, that are not kept."""
    heap, size = queue.heap, queue.size[ON_HEAP]
    queue.size[ON_HEAP] = 0
    for k in range(size):  # what is put back never goes beyond the next one to be read
        if kept[k]:
            push(heap, queue.size, ON_HEAP, heap.time[k], heap.rank[k], heap.load[k])


def first(queue: EventQueue) -> tuple[float, int] | None:
    """Time and priority of the next event; None if there is none."""
    if queue.size[ON_HEAP] == 0:
        return None
    return float(queue.heap.time[0]), int(queue.heap.rank[0]) >> 40
