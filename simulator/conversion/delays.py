"""Delays of other programs: lists by link, matrices of round trips, and logs of ping."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from ...agents.input_files import parse_number
from .cells import Cells, cells_of, read_text
from .edges import SOURCES, TARGETS, is_matrix, names_of_matrix
from .units import Durations, unit_in

SENDERS, RECEIVERS = ("sender", *SOURCES, "a"), ("receiver", *TARGETS, "b")
DELAYS = ("delay", "latency", "owd", "one_way", "oneway")
ROUND_TRIPS = ("rtt", "round_trip", "roundtrip", "ping", "avg", "median", "mean", "time")
MISSING = {"", "nan", "na", "n/a", "null", "none", "-", "*", ".", "-1"}
"""Entries that say that nothing was measured; King (Gummadi et al. 2002) writes -1."""
SUB_SECOND = ("us", "ms")
"""Units by which a column is known to have delays."""
PING = re.compile(
    r"(?:\d+ bytes from .*time[=<]|: (?:\w+=\d+ )?\w+[=<]|\[\d+\], \d+ bytes, )(?P<time>[\d.,]+)\s*(?P<unit>us|ms|s)\b"
)
"""Reply to ping of Linux, BSD and macOS, then of Windows in any language, then to fping."""


FPING = re.compile(r"\S+\s+:((?:\s+(?:[\d.]+|-))+)\s*")
"""Line of ``fping -C``: a target, and its round trips in ms."""


@dataclass(frozen=True)
class Delays:
    """Delays in time units: of links, or as samples of one distribution."""

    of_links: Mapping[tuple[str, str], float]
    """mapping of (str, str) to float: By sender and receiver."""
    samples: list[float]
    missing: int = 0
    """Entries without a measurement, which are left out."""

    @property
    def median(self) -> float:
        """Middle of all delays."""
        return statistics.median(self.samples or list(self.of_links.values()))


def read_delays(path: Path, given: Durations, notes: list[str]) -> Delays:
    """Read delays of any form that is known; what the file was taken for is added to the notes.

    Raises `InputError` if it cannot be read, or a number is no delay.
    """
    text = read_text(path, notes)
    lines = text.splitlines()
    pings = [(found["time"], found["unit"]) for line in lines if (found := PING.search(line))]
    rows = [] if pings else [found[1].split() for line in lines if (found := FPING.fullmatch(line))]
    measured = [] if pings or rows else [str(number) for number in _round_trips(_in_json(text))]
    pings += [(number, "ms") for row in [*rows, measured] for number in row if number != "-"]
    if pings:
        name = "JSON of mtr or RIPE Atlas with {} round trips" if measured else "a log of ping with {} replies"
        notes.insert(0, name.format(len(pings)))
        _say(notes, "ms" if rows or measured else "as each line says", halved := given.round_trip is not False)
        samples = [given.time.of(parse_number(number.replace(",", ".")), unit) for number, unit in pings]
        return Delays({}, [sample / 2 if halved else sample for sample in samples])
    table = cells_of(path, text)
    notes += table.notes
    return _of_matrix(table, given, notes) if is_matrix(table) else _of_list(table, given, notes)


def _in_json(text: str) -> list[Any]:
    if text.lstrip()[:1] not in ("{", "["):
        return []
    for parts in ([text], text.splitlines()):
        try:
            return [json.loads(part) for part in parts if part.strip()]
        except (ValueError, RecursionError):
            continue
    return []


def _round_trips(result: Any) -> list[float]:
    """Round trips in ms: of the replies to a ping of RIPE Atlas, or the mean of each hop of mtr that has answered."""
    if isinstance(result, list):
        return [number for each in result for number in _round_trips(each)]
    if not isinstance(result, dict):
        return []
    report = result.get("report")
    replies, hubs = result.get("result"), report.get("hubs") if isinstance(report, dict) else None
    found = (
        [reply.get("rtt") for reply in replies or [] if isinstance(reply, dict)] if result.get("type") == "ping" else []
    )
    found += [hub.get("Avg") for hub in hubs or [] if isinstance(hub, dict) and hub.get("Loss%", 0.0) < 100]
    return [number for number in found if isinstance(number, int | float) and 0 <= number < math.inf]


def _say(notes: list[str], unit: str, halved: bool) -> None:
    notes.append(f"durations in {unit}" if unit in ("ms", "us", "s") else f"durations {unit}")
    notes.append("round trips, halved for one way" if halved else "one-way delays")


def _of_matrix(table: Cells, given: Durations, notes: list[str]) -> Delays:
    names = names_of_matrix(table)
    unit, halved = given.unit or "ms", given.round_trip is not False
    notes.insert(
        0, f"a matrix of {len(names)} nodes: a row for each sender; entries below or at 0, or empty, were not measured"
    )
    _say(notes, unit, halved)
    of_links, missing = {}, 0
    for i, sender in enumerate(names):
        for j, receiver in enumerate(names):
            if i == j:
                continue
            if table.cell(i, j).strip().lower() in MISSING:
                missing += 1
                continue
            value = given.time.of(table.number(i, j), unit)
            if value > 0:
                of_links[sender, receiver] = value / 2 if halved else value
            else:
                missing += 1
    if not of_links:
        raise InputError(f"{table.path}: no entry of the matrix is above 0")
    return Delays(of_links, [], missing)


def _of_list(table: Cells, given: Durations, notes: list[str]) -> Delays:
    first, second = table.column(SENDERS), table.column(RECEIVERS)
    one_way, there_and_back = table.column(DELAYS), table.column(ROUND_TRIPS)
    place = one_way if one_way is not None else there_and_back
    if place is None:  # a name that nobody knows, with a unit that everybody does
        place = next((k for k, name in enumerate(table.header or ()) if unit_in(name) in SUB_SECOND), None)
    if table.header is None:
        first, second = (0, 1) if len(table.rows[0]) > 2 else (None, None)
        place = 2 if first is not None else 0
    if place is None:
        raise InputError(
            f"{table.path}:1: no column of {', '.join(table.header or [])} is called {' or '.join(DELAYS[:2])} or "
            f"{ROUND_TRIPS[0]}; rename the one that has the delays"
        )
    words = all(parse_number(cell) != parse_number(cell) for row in table.rows for cell in row[:2])
    if first is None and second is None and place == 2 and words:  # ends by names that nobody knows
        first, second = 0, 1
    unit = given.unit_or(unit_in(table.header[place] if table.header else ""), table.path, what="durations")
    halved = given.round_trip if given.round_trip is not None else one_way is None and there_and_back is not None
    alone = first is None or second is None
    notes.insert(0, "samples of one distribution" if alone else "a list of links")
    _say(notes, unit, halved)
    of_links: dict[tuple[str, str], list[float]] = {}
    samples: list[float] = []
    lost = 0
    for k in range(len(table.rows)):
        if table.cell(k, place).lower() in MISSING:
            lost += 1
            continue
        value = given.time.of(table.number(k, place), unit) / (2 if halved else 1)
        if value < 0:
            raise InputError(f"{table.at(k)}: a delay of {table.cell(k, place)} must be at least 0")
        if first is None or second is None:
            samples.append(value)
        else:
            of_links.setdefault((table.cell(k, first), table.cell(k, second)), []).append(value)
    if not of_links and not samples:
        raise InputError(f"{table.path}: no row has a delay")
    if lost:
        notes.append(f"rows without a measurement, left out: {lost}")
    several = sum(len(found) > 1 for found in of_links.values())
    if several:
        notes.append(f"{several} links with several values, of which the median is taken")
    middle = {link: statistics.median(found) for link, found in of_links.items()}
    if middle and not any(link[::-1] in middle for link in middle):
        notes.append("each link in one direction alone, which is taken for both")
        middle |= {(receiver, sender): value for (sender, receiver), value in middle.items()}
    return Delays(middle, samples)
