"""Copies of messages among notes, compiled: what they are, the step that sent them, and the one that reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...agents.compilation import compiled, part
from ..tables.effects import DEPARTED


@part
def grouped(groups: Any, count: int) -> tuple[Any, Any]:
    """Return where each of so many groups begins among (k,) members of them, and the members group by group."""
    starts = np.zeros(count + 1, np.int64)
    for group in groups:
        starts[group + 1] += 1
    for group in range(count):
        starts[group + 1] += starts[group]
    ends, members = starts.copy(), np.empty(len(groups), np.int64)
    for k in range(len(groups)):
        members[ends[groups[k]]] = k
        ends[groups[k]] += 1
    return starts, members


@compiled
def copies_among(told: Any, notes: Any, content: Any) -> tuple[Any, Any]:
    """Return copies with content as columns, first those that were told reliably, then those of other notes.

    Of (kinds,) bool kinds with content these are (5, C) int64 ranks, edge, kind, tick, order and fate of each, and (2,
    C) float64 times when each was sent, and when it arrived.
    """
    most, count = len(told) + len(notes), 0
    ranks, times = np.empty((5, most), np.int64), np.empty((2, most))
    for some in (told, notes):
        for k in range(len(some)):
            note = some[k]
            if note.what == DEPARTED and 0 <= note.kind < len(content) and content[note.kind]:
                ranks[0, count], ranks[1, count], ranks[2, count] = note.place, note.kind, note.tick
                ranks[3, count], ranks[4, count] = note.order, note.fate
                times[0, count], times[1, count] = note.time, note.arrived
                count += 1
    return ranks[:, :count], times[:, :count]


@compiled
def find(groups: Any, numbers: Any, count: int, wanted_groups: Any, wanted_numbers: Any) -> Any:
    """Return the place of each wanted pair among (k,) pairs of a group and a number; -1 where it is not there.

    There are ``count`` groups, and the numbers of each increase.
    """
    starts, members = grouped(groups, count)
    found = np.full(len(wanted_groups), -1)
    for k in range(len(wanted_groups)):
        first, end = starts[wanted_groups[k]], starts[wanted_groups[k] + 1]
        last = end
        while first < last:
            middle = (first + last) // 2
            if numbers[members[middle]] < wanted_numbers[k]:
                first = middle + 1
            else:
                last = middle
        if first < end and numbers[members[first]] == wanted_numbers[k]:
            found[k] = members[first]
    return found


@compiled
def distinct(groups: Any, numbers: Any, count: int) -> tuple[Any, Any]:
    """Return where each group begins among its different numbers, of (k,) pairs of a group and a number, and these.

    Groups and numbers are below ``count``; numbers of a group are sorted.
    """
    _, by_number = grouped(numbers, count)
    starts, members = grouped(groups[by_number], count)
    begins, found, size = np.zeros(count + 1, np.int64), np.empty(len(groups), np.int64), 0
    for group in range(count):
        for k in range(starts[group], starts[group + 1]):
            number = numbers[by_number[members[k]]]
            if size == begins[group] or found[size - 1] != number:
                found[size] = number
                size += 1
        begins[group + 1] = size
    return begins, found[:size]


@compiled
def first_reads(
    channel: Any,
    receiver: Any,
    order: Any,
    arrived: Any,
    useful: Any,
    channels: int,
    agent: Any,
    begun: Any,
    read_order: Any,
    agents: int,
) -> Any:
    """Return the step that reads each useful copy first; -1 where there is none.

    Of copies on a channel that the same step would read, it reads the last one.

    Parameters
    ----------
    channel, receiver, order : (C,) int64
        Of copies in order of sending; the order is -1 for what is known reliably.
    arrived : (C,) float64
    useful : (C,) bool
    channels : int
        How many there are; none if a step reads all copies on a channel.
    agent : (W,) int64
        Whose each step is, in order of time.
    begun : (W,) float64
        When it reads.
    read_order : (W,) int64
        The order of the last message that was sent before that.
    agents : int
    """
    starts, steps = grouped(agent, agents)
    begun, read_order = begun[steps], read_order[steps]
    read, latest = np.full(len(channel), -1), np.full(channels, -1)
    for copy in range(len(channel)):
        if not useful[copy]:
            continue
        first, end = starts[receiver[copy]], starts[receiver[copy] + 1]
        last = end
        while first < last:
            middle = (first + last) // 2
            late = begun[middle] == arrived[copy] and read_order[middle] < order[copy]
            if begun[middle] < arrived[copy] or late:
                first = middle + 1
            else:
                last = middle
        if first == end:
            continue
        read[copy] = steps[first]
        if channels:
            before = latest[channel[copy]]
            if before >= 0 and read[before] == read[copy]:
                read[before] = -1
            latest[channel[copy]] = copy
    return read
