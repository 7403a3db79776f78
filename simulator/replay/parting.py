"""Where two runs part: the rows of what happened that one of them has and the other has not, or has otherwise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST_ROWS = 40
"""Rows that a page lists."""

Film = Mapping[str, Any]
"""A run as `hushnet.simulator.replay.film.film` gives it."""
Event = tuple[float, str]
"""When, and what in words that are the same in both runs."""
NONE = "–"
"""What a run without an event shows."""


@dataclass(frozen=True)
class PartingRow:
    """One event in which two runs differ.

    Parameters
    ----------
    at : float
        When, in time units.
    what : str
    first, second : str
        What became of it in either run.
    """

    at: float
    what: str
    first: str
    second: str


@dataclass(frozen=True)
class Parting:
    """How two runs differ in what happened.

    Parameters
    ----------
    rows : tuple of PartingRow
        The first ones, in order of time.
    differing, common : int
        Events that differ, and those that are the same.
    """

    rows: tuple[PartingRow, ...]
    differing: int
    common: int


def parting(first: Film, second: Film, fates: tuple[str, ...]) -> Parting:
    """The events in which two runs differ.

    Parameters
    ----------
    first, second : mapping
        Films of the same window.
    fates : tuple of str
        Names of what becomes of messages, in the order of their ranks.

    Notes
    -----
    A message is the same in both runs if it left one agent for another at the same time, as often; it differs if its
    end or its fate does. Steps and absences are the same if they are of the same agent and time.
    """
    sides = [_events(film, fates) for film in (first, second)]
    rows: list[PartingRow] = []
    common = 0
    for event in sorted({*sides[0], *sides[1]}):
        one, other = (Counter(side.get(event, ())) for side in sides)
        common += (one & other).total()
        left, right = (sorted((mine - theirs).elements()) for mine, theirs in ((one, other), (other, one)))
        for rank in range(max(len(left), len(right))):
            told = (side[rank] if rank < len(side) else NONE for side in (left, right))
            rows.append(PartingRow(*event, *told))
    return Parting(tuple(rows[:MOST_ROWS]), len(rows), common)


def _events(film: Film, fates: tuple[str, ...]) -> dict[Event, list[str]]:
    """What became of every event, by when and what it is."""
    found: dict[Event, list[str]] = defaultdict(list)
    for event, outcome in (*_steps(film), *_messages(film, fates), *_absences(film)):
        found[event].append(outcome)
    return found


def _steps(film: Film) -> Iterator[tuple[Event, str]]:
    names, steps = film["agents"], film["steps"]
    for agent, at in zip(steps["agent"], steps["at"], strict=True):
        yield (at, f"{names[agent]} makes a step"), "made"


def _messages(film: Film, fates: tuple[str, ...]) -> Iterator[tuple[Event, str]]:
    names, messages = film["agents"], film["messages"]
    columns = (messages[name] for name in ("from", "to", "start", "end", "fate"))
    for sender, receiver, start, end, fate in zip(*columns, strict=True):
        ended = "" if end is None else f" at {end:g}"
        yield (start, f"message {names[sender]} to {names[receiver]}"), f"{fates[fate]}{ended}"


def _absences(film: Film) -> Iterator[tuple[Event, str]]:
    for agent, start, end in film["absences"]:
        yield (start, f"{film['agents'][agent]} goes away"), "to the end" if end is None else f"until {end:g}"
