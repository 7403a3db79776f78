"""Asking the driver for events, and telling observers."""

from __future__ import annotations

from ..tables.effects import (
    AGENT,
    EFFECTS,
    KIND,
    NEWEST,
    NOTE,
    NOTES,
    OBSERVED,
    ORDER,
    PRIORITY,
    ROW,
    SERIAL,
    SIZE,
    SLOT,
    SUBJECT,
    TAKEN,
    TICK,
    WHAT,
)
from .forms import rule


@rule
def schedule(tables, time, priority, what, subject, serial):
    """Ask the driver for an event."""
    k = tables.counts[EFFECTS]
    tables.counts[EFFECTS] = k + 1
    tables.due[k] = time
    effect = tables.effects[k]
    effect[PRIORITY], effect[WHAT], effect[SUBJECT], effect[SERIAL] = priority, what, subject, serial


@rule
def note(tables, delay, what, agent, tick, kind, order, slot, row, size, taken, newest):
    """Tell observers, if there are any."""
    if tables.counts[OBSERVED] == 0:
        return
    k = tables.counts[NOTES]
    tables.counts[NOTES] = k + 1
    tables.note_times[k, 0], tables.note_times[k, 1] = tables.now[0], delay
    noted = tables.notes[k]
    noted[NOTE], noted[AGENT], noted[TICK], noted[KIND], noted[ORDER] = what, agent, tick, kind, order
    noted[SLOT], noted[ROW], noted[SIZE], noted[TAKEN], noted[NEWEST] = slot, row, size, taken, newest
