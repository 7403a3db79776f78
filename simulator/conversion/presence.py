"""Availability of other programs: lists of intervals, of changes of state, and FedScale's traces."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from ...agents.input_files import parse_number, shown
from .cells import Cells, cells_of, read_text
from .units import Durations, unit_in

AGENTS = ("agent", "node", "client", "device", "host", "id", "peer")
STARTS = ("up_from", "start", "begin", "from", "joined", "on", "online", "login")
ENDS = ("up_to", "end", "stop", "to", "left", "off", "offline", "logout")
TIMES, STATES = ("time", "timestamp", "at", "date"), ("state", "status", "event")
UP = {"up", "on", "online", "available", "active", "1", "true", "join", "joined", "yes"}
DOWN = {"down", "off", "offline", "unavailable", "inactive", "0", "false", "leave", "left", "no"}
FAILURE_TRACE = re.compile(
    r"^#\s*event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\tevent_start_time\tevent_stop_time", re.M
)
FTA_NAMES = "number\tcomponent\tnode\tplatform\tname\tstate\tstart\tend"
"""First columns of a file event_trace.tab of the Failure Trace Archive (Kondo et al. 2010), and what they are here."""
Intervals = dict[str, list[tuple[float, float]]]


def read_presence(path: Path, given: Durations, notes: list[str]) -> Intervals:
    """Read when agents are up, in time units from the first instant of the file, without overlaps.

    Times are in what a column's name says by default, and seconds for dates and FedScale's traces; what the file was
    taken for is added to `notes`. Raises `InputError` if it cannot be read.
    """
    text = read_text(path, notes)
    if text.lstrip().startswith("{"):
        found, own, start = _of_fedscale(path, text, notes), "s", 0.0
    else:
        archive = FAILURE_TRACE.search(text)
        if archive:
            notes.append("an event trace of the Failure Trace Archive, of which type 1 says up")
            text = text[: archive.start()] + FTA_NAMES + text[archive.end() :]
        table = cells_of(path, text)
        notes += table.notes
        found, own, start = _of_table(table, notes)
        own = "s" if archive else own
    unit = given.unit_or(own, path, such="s")
    notes.append(f"times in {unit} from {start:.15g} on" if start else f"times in {unit}")
    return {
        name: _joined(
            [(given.time.of(begin - start, unit), given.time.of(end - start, unit)) for begin, end in intervals]
        )
        for name, intervals in found.items()
    }


def _joined(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    kept: list[tuple[float, float]] = []
    for begin, end in sorted(intervals):
        if kept and begin <= kept[-1][1]:
            kept[-1] = kept[-1][0], max(kept[-1][1], end)
        elif end > begin:
            kept.append((begin, end))
    return kept


def _of_fedscale(path: Path, text: str, notes: list[str]) -> Intervals:
    """Read a trace by client with its lists ``active`` and ``inactive`` (Lai et al. 2022), from JSON."""
    try:
        every: Any = json.loads(text)
        found = {
            str(name): list(zip(map(float, one["active"]), map(float, one["inactive"]), strict=False))
            for name, one in every.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f'{path}: is no trace by client such as {{"1": {{"active": [0, 9], "inactive": [5, 12]}}}} '
            f"({type(error).__name__}: {error}); write such lists, or a CSV with the columns agent, start, end"
        ) from None
    notes.append(f"FedScale's trace of {len(found)} clients, which are up from active to inactive")
    return found


def _of_table(table: Cells, notes: list[str]) -> tuple[Intervals, str | None, float]:
    """Read a table: the intervals by agent in its own times, their unit if it is named, and the first instant."""
    agent, state, at = table.column(AGENTS), table.column(STATES), table.column(TIMES)
    begin, end, lasting = table.column(STARTS), table.column(ENDS), table.column(("duration", "length"))
    if end is None and state is None:  # a column of 0 and 1 that is called online
        state = table.column(tuple(UP))
    end = lasting if end is None else end
    if table.header is None:
        agent, begin, end, state = 0, 1, 2, (3 if len(table.rows[0]) > 3 else None)
    if agent is None or ((begin is None or end is None) and (at is None or state is None)):
        raise InputError(
            f"{table.path}:1: of {', '.join(table.header or [])} no columns are called {AGENTS[0]}, start and end, or "
            f"{AGENTS[0]}, time and state; rename them"
        )
    if begin is not None and end is not None:
        notes.insert(0, "a list of intervals" + (", of which those are kept that say up" if state is not None else ""))
        times = [(_instant(table, k, begin), _instant(table, k, end)) for k in range(len(table.rows))]
        if end == lasting:
            notes.append(f"ends as begins and {(table.header or [])[end]}")
            times = [(first, first + length) for first, length in times]
        found: Intervals = {table.cell(k, agent): [] for k in range(len(table.rows))}
        for k, (first, last) in enumerate(times):
            if last < first:
                raise InputError(f"{table.at(k)}: ends at {table.rows[k][end]}, before it begins")
            if state is None or _is_up(table, k, state):
                found[table.rows[k][agent]].append((first, last))
        place, start = begin, min(first for first, _ in times)
    else:
        assert at is not None
        assert state is not None
        notes.insert(0, "a list of changes of state; who is up at the end stays up until the last change of all")
        found, start = _of_changes(table, agent, at, state)
        place = at
    dated = parse_number(table.rows[0][place]) != parse_number(table.rows[0][place])
    unit = "s" if dated else unit_in(table.header[place]) if table.header else None
    return found, unit, start if dated or start > 1e8 else 0.0


def _of_changes(table: Cells, agent: int, at: int, state: int) -> tuple[Intervals, float]:
    changes = sorted((_instant(table, k, at), k) for k in range(len(table.rows)))
    found: Intervals = {table.cell(k, agent): [] for k in range(len(table.rows))}
    since: dict[str, float] = {}
    for now, k in changes:
        name = table.rows[k][agent]
        if _is_up(table, k, state):
            since.setdefault(name, now)
        elif name in since:
            found[name].append((since.pop(name), now))
    for name, begin in since.items():
        found[name].append((begin, changes[-1][0]))
    return found, changes[0][0]


def _is_up(table: Cells, row: int, place: int) -> bool:
    word = table.cell(row, place).strip().lower()
    if word in UP or word in DOWN:
        return word in UP
    raise InputError(
        f"{table.at(row)}: the state {shown(word)} is unknown; admissible: up, down, online, offline, 1, 0"
    )


def _instant(table: Cells, row: int, place: int) -> float:
    """Return a time as a number, of a date its seconds since 1970."""
    text = table.cell(row, place)
    value = parse_number(text)
    if value == value:
        return table.number(row, place)
    date = _date(text.strip())
    if date is None:
        raise InputError(
            f"{table.at(row)}: {shown(text)} is no number and no date such as 2026-11-28T12:00 or 28.11.2026 12:00"
        )
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _date(text: str) -> datetime | None:
    for form in ("", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y"):
        with suppress(ValueError):
            return datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    return None


def counted(found: Mapping[str, list[tuple[float, float]]]) -> int:
    """Return how many intervals there are."""
    return sum(map(len, found.values()))
