"""Noting single events where anybody observes (``counts[OBSERVED]``); what is not asked for is not written."""

from __future__ import annotations

import math
from typing import Any

from ..tables.notes import (
    ARRIVED,
    KIND,
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
from ..tables.run import FIRST_NOTED, LAST_NOTED_AT, LOST_DELAY, RunTables
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
        references[row] += 1


@rule
def note_step(run: RunTables, agent: int, now: float):
    """Note that a planned step begins."""
    if (
        run.counts[OBSERVED]
        and run.agents.watched[agent]
        and run.constants[FIRST_NOTED] <= now <= run.constants[LAST_NOTED_AT]
    ):
        k = write_note(run.counts, run.note_times, run.notes, now, 0.0, WOKE, agent, run.counts[ORDERS], True)
        run.notes[k][TICK] = run.agents.ticks[agent]


@rule
def note_sent(
    run: RunTables, sender: int, edge: int, tick: int, kind: int, row: int, size: Any, now: float, delay: float
):
    """Note that a copy of the last message is sent over a directed edge; its delay is infinite if it is lost."""
    if run.agents.watched[sender] and run.agents.watched[run.heads[edge]]:
        lost = delay == math.inf
        if now <= run.constants[LAST_NOTED_AT] and (now if lost else now + delay) >= run.constants[FIRST_NOTED]:
            write_sent(
                run.counts, run.versions.references, run.note_times, run.notes, now,
                run.constants[LOST_DELAY] if lost else delay, run.reverse[edge], tick, kind, row, size, lost,
            )  # fmt: skip


@rule
def note_arrived(run: RunTables, slot: int, order: int, now: float, up: bool, newest: bool):
    """Note that a copy arrives at a slot, unless it was sent after the last one that is noted."""
    edge = slot % len(run.heads)
    people = run.agents.watched[run.heads[edge]] and run.agents.watched[run.heads[run.reverse[edge]]]
    if people and now >= run.constants[FIRST_NOTED] and order <= run.counts[LAST_NOTED]:
        k = write_note(run.counts, run.note_times, run.notes, now, 0.0, ARRIVED, edge, order, up)
        run.notes[k][NEWEST] = newest
