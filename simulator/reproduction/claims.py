"""What a reproduction is made of: papers, their figures, claims about runs, printed statements, and what was found.

A claim is decided by numbers, each with what is asked of it. A number *holds* if its whole 95 % interval lies within
what is asked, *holds in part* if only its mean does, and *does not hold* otherwise. How numbers decide is the claim's
kind:

*for all*               one violated number refutes it, as a counterexample does a theorem
*all of these parts*    it says several things, and a missing one fails it
*ordering*              every pair of neighbours stands in the claimed order
*exists a setting*      all numbers of one setting hold: the paper says that there are suitable ones

A claim without a kind says nothing of how its numbers make it up: where they disagree, it is counted, *k of n*.

A claim of privacy is *proved* where everything that is verified lies within what is claimed, *refuted* where a lower
bound lies above (`hushnet.simulator.audit.verdicts`), and *not proved* in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from ..analysis.aggregate import mean_interval
from ..audit.verdicts import verdict
from .runs import Runs

Verdict = Literal["holds", "holds in part", "does not hold", "k of n", "proved", "not proved", "refuted"]
Kind = Literal["", "for all", "all of these parts", "ordering", "exists a setting"]


@dataclass(frozen=True)
class PaperFigure:
    """A figure or table of a paper, and the shipped scenario that stands for it.

    Parameters
    ----------
    name : str
        What ``hushnet reproduce`` calls it, such as ``bellet2018-fig2a``.
    title : str
        How the paper calls it, such as ``Figure 2a``.
    shows : str
        One sentence about it.
    scenario : str
        Name of the scenario.
    seeds : int
        Seeds of a full run; 0 keeps the scenario's.
    quick : tuple of str
        ``path=value`` each: what makes a quick run of it small.
    quick_seeds : int
        Seeds of a quick run; 0 keeps the scenario's.
    data : str, optional
        Data set that it needs, a name of `hushnet.agents.tasks.datasets.DATASETS`.
    pictures : tuple of str, optional
        Names of the scenario's figures that the page shows; by default the first two.
    large : bool
        Whether it takes so long that it is only run by its name, or with ``--full``.
    table : callable, optional
        From its runs to the rows of a table below its claims, the header first.
    """

    name: str
    title: str
    shows: str
    scenario: str
    seeds: int = 0
    quick: tuple[str, ...] = ()
    quick_seeds: int = 2
    data: str | None = None
    pictures: tuple[str, ...] | None = None
    large: bool = False
    table: Callable[[Runs], list[list[str]]] | None = None


@dataclass(frozen=True)
class Number:
    """One number that decides about a claim, and what is asked of it: to lie strictly between ``low`` and ``high``.

    Parameters
    ----------
    name : str
        What was measured.
    value : float
        Its mean; infinite values are admissible.
    half_width : float
        Of its 95 % interval; 0 for what is exact, NaN where one run gives no interval.
    low, high : float
    setting : str
        Which of several settings it is about, where a claim is that there is one.
    """

    name: str
    value: float
    half_width: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    setting: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the number is where it is asked to be."""
        if not self.low < self.value < self.high:
            return "does not hold"
        inside = self.low < self.value - self.half_width and self.value + self.half_width < self.high
        return "holds" if inside else "holds in part"


@dataclass(frozen=True)
class Promise(Number):
    """An epsilon that is claimed, ``high``: ``value`` is the one that is verified.

    Parameters
    ----------
    at_least : float
        The largest lower bound that is known; 0 without one, infinite by a counterexample.
    """

    at_least: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """Whether the claim is proved, refuted or neither."""
        word = verdict(self.high, self.value, lower=self.at_least)
        assert word != "no claim", "only finite claims are decided"
        return word


def measured(
    name: str,
    values: ArrayLike,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    near: tuple[float, float] | None = None,
    setting: str = "",
) -> Number:
    """The mean of values over runs with its 95 % t interval, and what is asked of it.

    Parameters
    ----------
    name : str
    values : (n,) array_like
        One value per run.
    above, below : float
        Strict bounds.
    near : (float, float), optional
        Target and margin, instead of the bounds.
    setting : str
        Of `Number`.
    """
    mean, half, _ = mean_interval(values)
    low, high = (above, below) if near is None else (near[0] - near[1], near[0] + near[1])
    return Number(name, float(mean), float(half), low, high, setting)


@dataclass(frozen=True)
class Finding:
    """What came out about a claim.

    Parameters
    ----------
    numbers : tuple of Number
        At least one.
    why : str
        Explanation; every number in it is computed.
    kind : str
        How the numbers decide, one of `Kind`; of promises every one has to be proved, whatever is said here.
    """

    numbers: tuple[Number, ...]
    why: str = ""
    kind: Kind = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict on all numbers together."""
        if any(isinstance(number, Promise) for number in self.numbers):
            return _of_promises({number.verdict for number in self.numbers})
        if self.kind == "exists a setting":
            settings = {number.setting: _of_all(self._in(number.setting)) for number in self.numbers}
            return next(word for word in ("holds", "holds in part", "does not hold") if word in settings.values())
        if self.kind:
            return _of_all([number.verdict for number in self.numbers])
        verdicts: set[Verdict] = {number.verdict for number in self.numbers}
        return verdicts.pop() if len(verdicts) == 1 else "k of n"

    @property
    def words(self) -> str:
        """The verdict as the page prints it: with how many of the numbers hold, where they disagree."""
        verdicts = [number.verdict for number in self.numbers]
        held = sum(word in ("holds", "proved") for word in verdicts)
        counted = f"{held} of {len(verdicts)}"
        if self.verdict == "k of n":
            return f"holds in {counted}"
        word = "proved" if any(isinstance(number, Promise) for number in self.numbers) else "hold"
        return f"{self.verdict} ({counted} {word})" if len(set(verdicts)) > 1 else self.verdict

    def _in(self, setting: str) -> list[Verdict]:
        return [number.verdict for number in self.numbers if number.setting == setting]


def _of_all(verdicts: list[Verdict]) -> Verdict:
    """The verdict on what has to hold altogether."""
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if set(verdicts) == {"holds"} else "holds in part"


def _of_promises(verdicts: set[Verdict]) -> Verdict:
    """The verdict on promises: refuted by one, proved by all."""
    if "refuted" in verdicts:
        return "refuted"
    return "proved" if verdicts == {"proved"} else "not proved"


@dataclass(frozen=True)
class Claim:
    """Something that a paper says about a figure, decided by the figure's runs.

    Parameters
    ----------
    figure : str
        Name of the figure.
    text : str
        What the paper says.
    check : callable
        From the figure's runs to what was found; an `InputError` says what is missing.
    kind : str
        How its numbers decide, one of `Kind`.
    """

    figure: str
    text: str
    check: Callable[[Runs], Finding]
    kind: Kind = ""


@dataclass(frozen=True)
class Statement:
    """A printed theorem, lemma or claim of privacy that is decided without a scenario.

    Parameters
    ----------
    place : str
        Where it is printed.
    text : str
        What is printed.
    check : callable
    kind : str
        How its numbers decide, one of `Kind`; a theorem is refuted by one counterexample.
    """

    place: str
    text: str
    check: Callable[[], Finding]
    kind: Kind = "for all"


@dataclass(frozen=True)
class Paper:
    """A paper with all that is looked at.

    Parameters
    ----------
    name : str
        What ``hushnet reproduce`` calls it, such as ``bellet2018``.
    authors : str
    year : int
    title, venue : str
    remarks : tuple of str
        How the paper was read where it leaves something open.
    figures, claims, statements : tuple
    """

    name: str
    authors: str
    year: int
    title: str
    venue: str
    remarks: tuple[str, ...]
    figures: tuple[PaperFigure, ...]
    claims: tuple[Claim, ...]
    statements: tuple[Statement, ...] = ()

    def claims_about(self, figure: PaperFigure) -> list[Claim]:
        """The claims about one of the figures."""
        return [claim for claim in self.claims if claim.figure == figure.name]
