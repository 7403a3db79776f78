"""Asking the driver for events."""

from __future__ import annotations

from ..tables.effects import EFFECTS, PRIORITY, SERIAL, SUBJECT, WHAT
from ..tables.rounds import RoundTables
from ..tables.sessions import SessionTables
from .forms import rule


@rule
def schedule(
    tables: RoundTables | SessionTables,
    time: float,
    priority: int,
    what: int,
    subject: int,
    serial: int,
):
    """Ask the driver for an event."""
    k = tables.counts[EFFECTS]
    tables.counts[EFFECTS] = k + 1
    tables.due[k] = time
    effect = tables.effects[k]
    effect[PRIORITY], effect[WHAT], effect[SUBJECT], effect[SERIAL] = priority, what, subject, serial
