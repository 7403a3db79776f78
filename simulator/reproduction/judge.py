"""The judge of claims: numbers with their 95 % intervals and what is asked of them make a verdict, or leave it open.

A number *holds* if its whole interval lies within the margin, *does not hold* if the whole interval lies outside, and
is *undecided* in between, or below `FEWEST` seeds. Where one side of a comparison was tuned in more trials than the
other, or on another criterion, it is *untuned* and judges nothing. How numbers decide is the claim's kind:

*for all*               one violated number refutes it, as a counterexample does a theorem
*all of these parts*    it says several things, of which some may hold: it holds *in part*
*ordering*              every pair of neighbours stands in the claimed order
*exists a setting*      all numbers of one setting hold: the paper says that there are suitable ones

A verdict is given once it is the same however the undecided numbers come out. Where the paper may be read in several
ways, each reading has numbers, and where they decide differently the claim *depends on the reading*.

A claim of privacy is *proved* where everything that is verified lies within what is claimed, *refuted* where a lower
bound lies above (`hushnet.simulator.audit.verdicts`), and *not proved* in between; one of a mean over runs goes by the
interval of what is verified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..analysis.aggregate import mean_interval
from ..audit.verdicts import verdict as promised

Kind = Literal["for all", "all of these parts", "ordering", "exists a setting"]
Verdict = Literal[
    "holds",
    "in part",
    "does not hold",
    "depends on the reading",
    "undecided",
    "untuned",
    "proved",
    "not proved",
    "refuted",
]

FEWEST = 5
"""Seeds below which a number is undecided."""

MOST = 1000
"""Seeds beyond which more of them are not called a way to decide."""

EXACT = 1e-12
"""Half-widths that are smaller, relative to their number, are rounding."""


@dataclass(frozen=True)
class Number:
    """One number that decides about a claim, and what is asked of it: to lie strictly between ``low`` and ``high``."""

    name: str
    """What was measured."""
    value: float
    """Its mean; infinite values are admissible."""
    half_width: float = 0.0
    """Of its 95 % interval; 0 for what is exact, NaN where one run gives no interval."""
    seeds: int = 0
    """Runs that the interval is of; 0 for what nothing random enters."""
    low: float = -math.inf
    high: float = math.inf
    setting: str = ""
    """Which of several settings it is about, where a claim is that there is one."""
    reading: str = ""
    """Which of the paper's readings it is about, where there are several."""
    unfair: str = ""
    """Why the comparison is not one between equals; empty if it is."""
    claimed: bool = False
    """Whether ``high`` is an epsilon that is claimed, and ``value`` the one that is verified."""
    at_least: float = 0.0
    """The largest lower bound on such an epsilon; 0 without one, infinite by a counterexample."""

    @property
    def verdict(self) -> Verdict:
        """Whether the number is where it is asked to be."""
        if self.claimed and self.seeds == 0:
            word = promised(self.high, self.value, lower=self.at_least)
            assert word != "no claim", "only finite claims are decided"
            return word
        if self.unfair:
            return "untuned"
        if self.seeds == 0:
            return "holds" if self.low < self.value < self.high else "does not hold"
        least, most = self.value - self.half_width, self.value + self.half_width
        if self.seeds < FEWEST or math.isnan(least):
            return "undecided"
        if self.low < least and most < self.high:
            return "proved" if self.claimed else "holds"
        outside = "not proved" if self.claimed else "does not hold"
        return outside if most <= self.low or least >= self.high else "undecided"

    @property
    def needed(self) -> int | None:
        """Seeds with which the interval would leave the margin's ends, by the spread so far; None if above `MOST`."""
        if self.seeds < 2 or not math.isfinite(self.value):
            return FEWEST
        ends = [abs(self.value - end) for end in (self.low, self.high) if math.isfinite(end)]
        deviation = self.half_width * math.sqrt(self.seeds) / special.stdtrit(self.seeds - 1, 0.975)
        tried = np.arange(max(FEWEST, self.seeds), MOST + 1)
        enough = tried[special.stdtrit(tried - 1, 0.975) * deviation < min(ends) * np.sqrt(tried)]
        return int(enough[0]) if len(enough) else None


def measured(name: str, values: ArrayLike, **asked: object) -> Number:
    """Return the mean of (n,) values, one per run, with its 95 % t interval, and further fields of `Number`."""
    mean, half, seeds = mean_interval(values)
    width = 0.0 if half <= EXACT * abs(mean) else float(half)
    return Number(name, float(mean), width, max(int(seeds), 1), **asked)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Finding:
    """What came out about a claim: at least one number, and how numbers decide."""

    numbers: tuple[Number, ...]
    kind: Kind = "for all"
    """Of promises every one has to be proved, whatever is said here."""
    how: str = ""
    why: str = ""
    """`how` and `why`: How it was measured, and what the numbers say beyond themselves."""
    words: dict[str, str] = field(default_factory=dict)
    """What each reading says, by its name."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on all numbers together."""
        decided = set(self.by_reading.values()) - {"untuned"}
        if len(decided - {"undecided"}) > 1:
            return "depends on the reading"
        return "undecided" if "undecided" in decided else _first(ORDER, decided)

    @property
    def by_reading(self) -> dict[str, Verdict]:
        """The verdict under each reading."""
        readings = dict.fromkeys(number.reading for number in self.numbers)
        return {reading: self._of([n for n in self.numbers if n.reading == reading]) for reading in readings}

    @property
    def said(self) -> str:
        """The verdict as a page prints it: with how many of the numbers hold, where they disagree."""
        if self.verdict == "depends on the reading":
            each = (f"{word} if {self.words.get(name, name)}" for name, word in self.by_reading.items())
            return f"{self.verdict}: {'; '.join(each)}"
        words = [number.verdict for number in self.numbers]
        if len(set(words)) == 1:
            return self.verdict
        held, not_held = sum(word in ("holds", "proved") for word in words), words.count("does not hold")
        what = "proved" if "refuted" in words or "proved" in words else "hold"
        others = f", {not_held} do not" if self.verdict == "undecided" and not_held else ""
        return f"{self.verdict} ({held} of {len(words)} {what}{others})"

    @property
    def reasons(self) -> list[str]:
        """Sentences on what is untuned, and on how many seeds would decide what is undecided."""
        unfair = dict.fromkeys(number.unfair for number in self.numbers if number.verdict == "untuned")
        sentences = [f"Untuned: {reason}." for reason in unfair]
        if self.verdict == "undecided":
            fewest = min(number.seeds for number in self.numbers if number.verdict == "undecided")
            count = f"more than {MOST:,} seeds" if self.needed is None else f"about {self.needed:,} seeds"
            sentences.append(f"Undecided by {fewest}: {count} would decide.")
        return sentences

    @property
    def needed(self) -> int | None:
        """Seeds that would decide all that is undecided; None if too many."""
        needed = [number.needed for number in self.numbers if number.verdict == "undecided"]
        known = [count for count in needed if count is not None]
        return max(known, default=0) if len(known) == len(needed) else None

    def _of(self, numbers: list[Number]) -> Verdict:
        words: list[Verdict] = [number.verdict for number in numbers]
        if self.kind == "exists a setting" and not numbers[0].claimed:
            untuned = {number.setting for number in numbers if number.unfair}
            settings = {number.setting for number in numbers} - untuned
            each: set[Verdict] = {
                _first(ORDER, (n.verdict for n in numbers if n.setting == setting)) for setting in settings
            }
            return _first(reversed(ORDER), each)
        if self.kind == "all of these parts" and "does not hold" in words:
            return "in part" if "holds" in words else "undecided" if "undecided" in words else "does not hold"
        return _first(ORDER, words)


ORDER: list[Verdict] = ["refuted", "not proved", "does not hold", "undecided", "in part", "holds", "proved", "untuned"]
"""Of several verdicts the first one in this order is that on what has to hold altogether."""


def _first(order: Iterable[Verdict], verdicts: Iterable[Verdict]) -> Verdict:
    known = set(verdicts)
    found: list[Verdict] = [word for word in order if word in known]
    return found[0] if found else "untuned"
