"""Which tests are long, and which of their cases CI makes; ``python -m tests.durations LOG`` adds to the list.

Long are functions whose cases take `CASE` of the time of all tests, or more, on average. Of each CI makes the case that
took least, or none where that takes `LEAST`, and, of a function without cases, `ALONE`. Only calls count, for fixtures
serve other tests as well. LOG is what ``pytest -n 2 -m 'not slow' --durations=0 --durations-min=0`` said, on whatever
machine: only shares count. What is listed already stays.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

LIST = Path(__file__).with_name("long.txt")
HEAD = "# Long tests, and the case of each that CI makes, - for none (`python -m tests.durations LOG`).\n"
LINE = re.compile(r"^\s*([\d.]+)s call\s+(\S+?::\w[\w:]*)(\[.*\])?\s*$")
NONE = "-"

CASE, LEAST, ALONE = 0.0006, 0.006, 0.004
"""Shares of the time of all tests."""

Seconds = Mapping[str, Mapping[str, float]]
"""By test function, then by case; a function without parameters has one, which is empty."""


def seconds_of(log: Iterable[str]) -> Seconds:
    """What every case of every test function takes, from pytest's table of durations."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in log:
        match = LINE.match(line)
        if match:
            found[match[2]][match[3] or ""] += float(match[1])
    return found


def longest(seconds: Seconds) -> dict[str, str]:
    """The functions that are long, with the case of each that CI makes, or `NONE`.

    Examples
    --------
    >>> longest({"a": {"": 5.0}, "b": {"[1]": 2.0, "[2]": 0.01}, "c": {"": 0.01}})
    {'a': '-', 'b': '[2]'}
    """
    total = sum(sum(cases.values()) for cases in seconds.values())
    found = {}
    for name, cases in seconds.items():
        case = min(cases, key=lambda case: cases[case])
        most = LEAST if len(cases) > 1 else ALONE
        if sum(cases.values()) > CASE * total * len(cases) and (len(cases) > 1 or cases[case] > most * total):
            found[name] = case if cases[case] <= most * total else NONE
    return found


def listed() -> dict[str, str]:
    """The list as it is kept: of each function, the case that CI makes, or `NONE`."""
    lines = (line for line in LIST.read_text().splitlines() if line and not line.startswith("#"))
    return {name: case for name, _, case in (line.partition("\t") for line in lines)}


if __name__ == "__main__":
    seconds = seconds_of(Path(sys.argv[1]).read_text().splitlines())
    chosen = dict(sorted((longest(seconds) | listed()).items()))
    LIST.write_text(HEAD + "".join(f"{name}\t{case}\n" for name, case in chosen.items()))
    total = sum(sum(cases.values()) for cases in seconds.values())
    left = sum(
        seconds[name].get(chosen[name], 0.0) if name in chosen else sum(seconds[name].values()) for name in seconds
    )
    print(f"{len(chosen)} of {len(seconds)} functions are long; CI takes {left:.0f} of {total:.0f} s")
