"""Which tests are long, and which of their cases CI makes; ``python -m tests.durations LOG`` lists them anew.

Long are the fewest functions whose rest takes .25 of the time. Of each CI makes the case that took least, or none where
that alone takes .004 of the time. LOG is what ``pytest -n 2 -m 'not slow or long' --durations=0 --durations-min=0``
said, on whatever machine: only shares count.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

LIST = Path(__file__).with_name("long.txt")
HEAD = "# Long tests, and the case of each that CI makes, - for none (`python -m tests.durations LOG`).\n"
LINE = re.compile(r"^\s*([\d.]+)s (?:call|setup|teardown)\s+(\S+?::\w[\w:]*)(\[.*\])?\s*$")
NONE = "-"

Seconds = Mapping[str, Mapping[str, float]]
"""By test function, then by case; a function without parameters has one, which is empty."""


def seconds_of(log: Iterable[str]) -> Seconds:
    """What every case of every test function takes with its fixtures, from pytest's table of durations."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in log:
        match = LINE.match(line)
        if match:
            found[match[2]][match[3] or ""] += float(match[1])
    return found


def longest(seconds: Seconds, share: float = 0.25) -> list[str]:
    """The fewest functions without which the others take so small a share of the time.

    Examples
    --------
    >>> longest({"a": {"": 5.0}, "b": {"[1]": 2.0, "[2]": 1.0}, "c": {"": 1.0}, "d": {"": 1.0}})
    ['a', 'b']
    """
    sums = {name: sum(cases.values()) for name, cases in seconds.items()}
    left = total = sum(sums.values())
    chosen = []
    for name in sorted(sums, key=lambda name: -sums[name]):
        if left <= share * total:
            break
        chosen.append(name)
        left -= sums[name]
    return sorted(chosen)


def quickest(cases: Mapping[str, float], most: float) -> str:
    """The case that took least, if that is at most so many seconds; `NONE` otherwise."""
    case = min(cases, key=lambda case: cases[case])
    return case if cases[case] <= most else NONE


def listed() -> dict[str, str]:
    """The list as it is kept: of each function, the case that CI makes, or `NONE`."""
    lines = (line for line in LIST.read_text().splitlines() if line and not line.startswith("#"))
    return {name: case for name, _, case in (line.partition("\t") for line in lines)}


if __name__ == "__main__":
    seconds = seconds_of(Path(sys.argv[1]).read_text().splitlines())
    total = sum(sum(cases.values()) for cases in seconds.values())
    chosen = {name: quickest(seconds[name], 0.004 * total) for name in longest(seconds)}
    LIST.write_text(HEAD + "".join(f"{name}\t{case}\n" for name, case in chosen.items()))
    made = sum(seconds[name][case] for name, case in chosen.items() if case != NONE)
    other = total - sum(sum(seconds[name].values()) for name in chosen)
    print(f"{len(chosen)} of {len(seconds)} functions are long; CI takes {made + other:.0f} of {total:.0f} s")
