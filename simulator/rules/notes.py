"""Noting single events where anybody observes (``counts[OBSERVED]``); what is not asked for is not written."""

from __future__ import annotations

import math
from typing import Any

from ..tables.mail import LINE, Mail
from ..tables.notes import (
    ARRIVED,
    FIRST,
    KIND,
    LAST,
    LOST_DELAY,
    NEWEST,
    NOTE,
    ORDER,
    PLACE,
    ROW,
    SENT,
    SIZE,
    TAKEN,
    TICK,
    TOLD,
    WOKE,
)
from ..tables.tallies import LAST_NOTED, NOTES, OBSERVED
from ..tables.tallies import ORDER as ORDERS
from .forms import rule


@rule(inlined=False)
def write_note(
    counts: Any, times: Any, notes: Any, time: float, delay: float, what: int, place: int, order: int, taken: int
):
    """Write what all notes have; where it is."""
    k = counts[NOTES]
    counts[NOTES] = k + 1
    written = times[k]
    written[0], written[1] = time, delay
    noted = notes[k]
    noted[NOTE], noted[PLACE], noted[ORDER], noted[TAKEN] = what, place, order, taken
    return k


@rule(inlined=False)
def write_sent(
    counts: Any,
    references: Any,
    times: Any,
    notes: Any,
    now: float,
    delay: float,
    slot: int,
    tick: int,
    kind: int,
    row: int,
    size: Any,
    lost: bool,
):
    """Note that a copy is sent; with a reference to its version for those who are told."""
    k = write_note(counts, times, notes, now, delay, SENT, slot, counts[ORDERS], not lost)
    noted = notes[k]
    noted[TICK], noted[KIND], noted[ROW], noted[SIZE] = tick, kind, row, size
    counts[LAST_NOTED] = counts[ORDERS]
    if row >= 0 and counts[OBSERVED] == TOLD:
        references[LINE * row] += 1


@rule
def note_step(mail: Mail, agent: int, now: float):
    """Note that a compiled step begins."""
    if mail.counts[OBSERVED] and mail.watched[agent] and mail.noting[FIRST] <= now <= mail.noting[LAST]:
        k = write_note(mail.counts, mail.note_times, mail.notes, now, 0.0, WOKE, agent, 0, True)
        mail.notes[k][TICK] = mail.ticks[agent]


@rule
def note_sent(mail: Mail, sender: int, edge: int, tick: int, kind: int, row: int, size: Any, now: float, delay: float):
    """Note that a copy of the last message is sent over a directed edge; its delay is infinite if it is lost."""
    if mail.watched[sender] and mail.watched[mail.heads[edge]]:
        lost = delay == math.inf
        if now <= mail.noting[LAST] and (now if lost else now + delay) >= mail.noting[FIRST]:
            write_sent(
                mail.counts, mail.references, mail.note_times, mail.notes, now,
                mail.noting[LOST_DELAY] if lost else delay, mail.reverse[edge], tick, kind, row, size, lost,
            )  # fmt: skip


@rule
def note_arrived(mail: Mail, slot: int, order: int, now: float, up: bool, newest: bool):
    """Note that a copy arrives at a slot, unless it was sent after the last one that is noted."""
    edge = slot % len(mail.heads)
    people = mail.watched[mail.heads[edge]] and mail.watched[mail.heads[mail.reverse[edge]]]
    if people and now >= mail.noting[FIRST] and order <= mail.counts[LAST_NOTED]:
        k = write_note(mail.counts, mail.note_times, mail.notes, now, 0.0, ARRIVED, edge, order, up)
        mail.notes[k][NEWEST] = newest
