"""Durations of other programs in time units of a scenario."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...agents.durations import SECONDS
from ...agents.errors import InputError
from ...agents.input_files import parse_number, shown

WORDS = {
    "sec": "s",
    "secs": "s",
    "seconds": "s",
    "msec": "ms",
    "usec": "us",
    "minutes": "min",
    "hours": "h",
    "days": "d",
}


def unit_named(text: str, option: str) -> str:
    """Return the name of a unit, or refuse it."""
    name = WORDS.get(text.strip().lower(), text.strip().lower())
    if name not in SECONDS:
        raise InputError(f"{option} is {shown(text)}; admissible: {', '.join(SECONDS)}")
    return name


@dataclass(frozen=True)
class TimeUnit:
    """A scenario's time unit: so many seconds."""

    words: str
    """As it was given."""
    seconds: float
    """> 0."""

    @classmethod
    def read(cls, text: str) -> TimeUnit:
        """Read ``80 ms``, ``1 s`` or ``h``; raises `InputError` if it is nothing of that kind."""
        found = re.fullmatch(r"\s*([\d.eE+-]*)\s*([a-z]+)\s*", text)
        count = parse_number(found[1]) if found and found[1] else 1.0
        if found is None or not 0 < count < float("inf"):
            raise InputError(
                f"--time-unit is {shown(text)}; admissible: a number and {', '.join(SECONDS)}, as in 80 ms"
            )
        return cls(text.strip(), count * float(SECONDS[unit_named(found[2], "--time-unit")]))

    def of(self, value: float, unit: str) -> float:
        """Return a duration of some unit in time units."""
        return value * float(SECONDS[unit]) / self.seconds


@dataclass(frozen=True)
class Durations:
    """Meaning of the durations in a file."""

    unit: str | None
    """Their unit; by default what the column's name or the log says."""
    round_trip: bool | None
    """Whether they are there and back, and are halved; by default what the column is called says."""
    time: TimeUnit
    """The scenario's."""

    def unit_or(self, own: str | None, path: Path, *, what: str = "times", such: str = "ms") -> str:
        """The unit, or else the file's own; refuse a file of which nothing says it."""
        if self.unit is None and own is None:
            raise InputError(f"{path}: nothing says the unit of its {what}; add --unit {such}, or what they are")
        return self.unit or own or ""


def unit_in(name: str) -> str | None:
    """Return the unit that a column's name ends with, such as ``rtt_ms`` or ``delay (s)``; None without one."""
    found = re.search(r"[_\s(\[]\(?([a-z]+)[)\]]?$", name.strip().lower())
    ending = WORDS.get(found[1], found[1]) if found else ""
    return ending if ending in SECONDS else None
