"""Which tests are long: the fewest whose rest takes .25 of the time; ``python -m tests.durations LOG`` lists them anew.

LOG is what ``pytest -n 2 -m 'not slow' --durations=0 --durations-min=0`` said, on whatever machine: only shares count.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

LIST = Path(__file__).with_name("long.txt")
HEAD = "# Long tests, by function: the others take .25 of the time (`python -m tests.durations LOG`).\n"
LINE = re.compile(r"^\s*([\d.]+)s (?:call|setup|teardown)\s+(\S+?::[\w:]+)")


def seconds_of(log: Iterable[str]) -> dict[str, float]:
    """What every test function takes with all its cases and fixtures, from pytest's table of durations."""
    found: dict[str, float] = defaultdict(float)
    for line in log:
        match = LINE.match(line)
        if match:
            found[match[2]] += float(match[1])
    return found


def longest(seconds: Mapping[str, float], share: float = 0.25) -> list[str]:
    """The fewest functions without which the others take so small a share of the time.

    Examples
    --------
    >>> longest({"a": 5.0, "b": 3.0, "c": 1.0, "d": 1.0})
    ['a', 'b']
    """
    left, total, chosen = sum(seconds.values()), sum(seconds.values()), []
    for name, own in sorted(seconds.items(), key=lambda item: -item[1]):
        if left <= share * total:
            break
        chosen.append(name)
        left -= own
    return sorted(chosen)


def listed() -> frozenset[str]:
    """The list as it is kept."""
    return frozenset(line for line in LIST.read_text().splitlines() if line and not line.startswith("#"))


if __name__ == "__main__":
    seconds = seconds_of(Path(sys.argv[1]).read_text().splitlines())
    chosen = longest(seconds)
    LIST.write_text(HEAD + "".join(f"{name}\n" for name in chosen))
    taken = sum(seconds[name] for name in chosen)
    print(f"{len(chosen)} of {len(seconds)} functions take {taken:.0f} of {sum(seconds.values()):.0f} s")
