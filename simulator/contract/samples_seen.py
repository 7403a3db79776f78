"""Test that records take part in releases over samples no more often than charged, and are drawn anew each time.

In a run on neighbouring data that is forced along the same noisy values, a changed record took part in a release if the
release's exact value changes. Where samples are what they are charged for, that happens with a probability s of at most
`Release.sampling`, whatever happened before. So whoever stakes money on it at the odds that this gives does not win on
average: with odds raised by a factor r, a stake is multiplied by r / (1 - s + s r) where the record takes part, and by
1 / (1 - s + s r) where it does not. Capital that has grown by a factor of 1 / p refutes it at level p, by Markov's
inequality, however dependent releases are otherwise (Shafer 2021, "Testing by betting"). The capital is split over the
ways to bet in `bets`, each at several odds, on all records, on the first, the last, ..., and on those of one agent.

Several records of an agent are seen in one release where several runs are forced along one. Drawn independently, or as
a fixed number without replacement, they are independent or negatively associated (Joag-Dev and Proschan 1983): then
bets on them one after the other gain no more on average than they would in releases of their own, and none is more
likely to take part where its neighbour does, which is bet on as well.

Only "more often" is tested: a record of slope 0 takes part unseen. Finding records that are taken in turn, or one in
the middle that is preferred a little, needs more releases than a short run has.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.tasks.task import Task
from .draws import SOLVED, Draw
from .forcing import Led
from .transcript import Recording

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

ODDS = (2.0, 5.0, 30.0, 1000.0)
"""Factors by which a bet raises the odds that a row takes part."""
APART = (1, 2, 3)
"""Releases between which samples are compared."""
BETS = (
    "always",
    "once it took part",
    *(f"as {apart} before" for apart in APART),
    "as another agent's row",
    "after an absence",
    "as the row before it",
)
SHARES = np.array([1.0, *[1 / (len(BETS) - 1)] * (len(BETS) - 1)])[:, None] / 2
SHARES = SHARES * np.array([1.0, *[1 / (len(ODDS) - 1)] * (len(ODDS) - 1)]) / 2
"""(bets, odds) of the capital: half on all releases, half at the lowest odds, where little evidence has to suffice."""


@dataclass(frozen=True)
class Participation:
    """Releases over samples of an agent, and in which of them a changed row took part."""

    agent: str
    """What sentences call it."""
    row: str
    """Which of its rows."""
    place: int
    """Rank of that row; -1 for whole data."""
    shares: Array
    """(k,) float64: `Release.sampling` of each."""
    moved: Flags
    """(k,) bool."""


@dataclass
class Witness:
    """A run that was noted, and what the runs that were led along it have shown of its samples."""

    recording: Recording
    samples: list[list[Participation]] = field(default_factory=list)
    """Of each run that was led."""

    def saw(self, reference: Task, other: Task, led: Led, changed: Iterable[int]) -> None:
        """Note which releases the changed rows took part in."""
        found = []
        for agent in sorted(changed):
            row, place = _changed_row(reference, other, agent)
            pairs = [
                (one, two)
                for one, two in zip(self.recording.draws[agent], led.draws[agent], strict=False)
                if one.release.sampling < 1 and (one.release.unit != "record" or row)
            ]
            if pairs:
                shares = np.array([one.release.sampling for one, _ in pairs])
                moved = np.array([_moved(one, two) for one, two in pairs])
                found.append(Participation(self.recording.agent(agent), row or "whole data", place, shares, moved))
        if found:
            self.samples.append(found)

    @property
    def moved(self) -> bool:
        """True if a changed record was seen to take part in a release over a sample."""
        return any(one.moved.any() for some in self.samples for one in some)

    @property
    def sampled(self) -> int:
        """Releases over samples."""
        return sum(draw.release.sampling < 1 for draws in self.recording.draws.values() for draw in draws)


def _changed_row(reference: Task, other: Task, agent: int) -> tuple[str, int]:
    """Name and index of the one record in which an agent's two data sets differ; empty and -1 if it is not just one."""
    if reference.columns is not None:
        return "", -1
    (start, stop), (begin, end) = (task.train.offsets[agent : agent + 2].tolist() for task in (reference, other))
    if stop - start != end - begin:
        return "last row", max(stop - start, end - begin) - 1
    features = np.any(reference.train.features[start:stop] != other.train.features[begin:end], axis=1)
    rows = np.flatnonzero(features | (reference.train.labels[start:stop] != other.train.labels[begin:end]))
    if len(rows) != 1:
        return "", -1
    place = int(rows[0])
    return "last row" if place == stop - start - 1 else "first row" if place == 0 else f"row {place + 1}", place


def _moved(one: Draw, two: Draw) -> bool:
    """True if two exact values differ by more than the accuracy of solvers and rounding explains."""
    least = SOLVED * one.release.scale
    same = np.abs(one.exact - two.exact).max(initial=0.0) <= least
    return not (same and abs((one.log_jacobian or 0.0) - (two.log_jacobian or 0.0)) <= SOLVED)


def sampling_doubt(witnesses: Sequence[Witness], level: float) -> str:
    """Describe how samples of different draws deviate from what is charged; empty if the test does not reject them.

    A protocol that draws its samples as charged is doubted with a probability of `level` at most.
    """
    p, said = sampling_test(witnesses)
    return said if p <= level else ""


def sampling_test(witnesses: Sequence[Witness]) -> tuple[float, str]:
    """A p-value of samples as they are charged for, and what speaks most against it, in words; 1 without samples."""
    from scipy.special import logsumexp

    ways: dict[str, Array] = defaultdict(lambda: np.zeros((len(BETS), len(ODDS))))
    for witness in witnesses:
        for name, gains in capital(witness).items():
            ways[name] += gains
    if not ways:
        return 1.0, ""
    agents = sum(name.startswith("of ") for name in ways)
    parts = {name: 4 * agents if name.startswith("of ") else 4 * (len(ways) - agents - 1) for name in ways}
    parts["any row"] = 2
    gains = {name: ways[name] + np.log(SHARES) - math.log(part) for name, part in parts.items()}
    grown: Any = logsumexp([logsumexp(one) for one in gains.values()])
    p = math.exp(min(0.0, -float(grown)))
    best = max(gains, key=lambda name: float(gains[name].max()))
    return p, _said(witnesses, best, int(np.argmax(gains[best].max(axis=1))))


Staked = tuple[Participation, Sequence[Flags]]
"""What a run shows of an agent, and the releases that each way bets on."""


def _staked(witness: Witness) -> Mapping[str, Sequence[Staked]]:
    """Return by agent the participations in the runs forced along one recorded run, with the bets on them."""
    found: dict[str, list[Staked]] = defaultdict(list)
    places = {(one.agent, one.place): one for taken in witness.samples for one in taken}
    for taken in witness.samples:
        before: dict[str, Participation] = {}
        for one in taken:
            # In pairs, so that no row is in two of them.
            beside = places.get((one.agent, one.place - 1)) if one.place % 2 == 1 and one.place > 0 else None
            found[one.agent].append((one, bets(one, before.get(one.row), beside)))
            before[one.row] = one
    return found


def capital(witness: Witness) -> Mapping[str, Array]:
    """(bets, odds) logarithm of what became of a capital of 1 that was staked on one noted run, by which rows.

    Where samples are what they are charged for, none grows on average.
    """
    found: dict[str, Array] = defaultdict(lambda: np.zeros((len(BETS), len(ODDS))))
    for agent, staked in _staked(witness).items():
        for name in ("any row", f"of {agent}", *{one.row for one, _ in staked}):
            found[name] += _gains([(one, where) for one, where in staked if name in _names(one)])
    return found


def _names(one: Participation) -> Sequence[str]:
    """Return the names of the bets that a participation counts in: any record, this record, this agent."""
    return "any row", one.row, f"of {one.agent}"


def bets(one: Participation, other: Participation | None, beside: Participation | None = None) -> Sequence[Flags]:
    """Choose the releases that each way bets on, which may depend on what came before.

    `other` is the same row of another agent, `beside` the row before it of the same one.
    """
    moved = one.moved
    counts = np.r_[0, np.cumsum(moved)]
    # Some changes of a row move no value, so that one which was never seen to take part may be one that is not seen.
    found = [np.ones(len(moved), dtype=bool), counts[:-1] > 0]
    found += [np.r_[np.zeros(min(apart, len(moved)), dtype=bool), moved[:-apart]] for apart in APART]
    # Where all rows are used up before one comes again, a row that is absent for long is due.
    absent = max(1, math.ceil(1 / float(one.shares.min())) - 1)
    due = np.zeros(len(moved), dtype=bool)
    due[absent:] = counts[absent:-1] == counts[: max(0, len(moved) - absent)]
    return [*found, _as(other, moved), due & (counts[:-1] > 0), _as(beside, moved)]


def _as(other: Participation | None, moved: Flags) -> Flags:
    """Releases in which another row takes part."""
    found = np.zeros(len(moved), dtype=bool)
    if other is not None:
        length = min(len(moved), len(other.moved))
        found[:length] = other.moved[:length]
    return found


def _gains(staked: Sequence[Staked]) -> Array:
    """(bets, odds) logarithm of what a capital of 1 becomes.

    Runs that show the same row have an equal part of it each, and so do all that bet on what is in the same release.
    """
    most = max(len(one.moved) for one, _ in staked)
    rows = sorted({one.place for one, _ in staked})
    sums = np.zeros((len(rows), len(BETS), len(ODDS), most))
    counts = np.zeros((len(rows), len(BETS), 1, most))
    odds = np.array(ODDS)[:, None]
    for one, where in staked:
        flags, row, length = np.array(where)[:, None, :], rows.index(one.place), len(one.moved)
        sums[row, ..., :length] += flags * np.where(one.moved, odds, 1.0) / (1 + one.shares * (odds - 1))
        counts[row, ..., :length] += flags
    gains = np.log(_mean(sums, counts)).sum(axis=(0, -1))
    gains[-1] = np.log(_mean(sums[:, -1].sum(axis=0), counts[:, -1].sum(axis=0))).sum(axis=-1)
    return gains


def _mean(sums: Array, counts: Array) -> Array:
    """Product of factors; 1 where there are none."""
    return np.where(counts, sums, 1.0) / np.where(counts, counts, 1.0)


def _said(witnesses: Sequence[Witness], name: str, bet: int) -> str:
    """Describe the bet that gained most, with the record and agent whose participation exceeds the charge most."""
    best, most, hits, trials, share = "", -1.0, 0, 0, 0.0
    for one, where in (pair for witness in witnesses for staked in _staked(witness).values() for pair in staked):
        flags = where[bet]
        if name not in _names(one) or not flags.any():
            continue
        count, of = int(one.moved[flags].sum()), int(flags.sum())
        hits, trials, excess = hits + count, trials + of, count - float(one.shares[flags].sum())
        if excess > most:
            best, most, share = f"the {one.row} of {one.agent} in {count} of {of}", excess, one.shares.max()
    when = {
        "always": "",
        "once it took part": " after its first one",
        "as another agent's row": " in which that of another agent does",
        "after an absence": " before which it was absent long enough to be due, as if rows were dealt out in turn",
        "as the row before it": " in which the row before it does, as if rows came in blocks",
    }.get(BETS[bet], f" that come {BETS[bet][3:-7]} after one in which it does, as if samples were not drawn anew")
    return (
        f"rows take part in releases over samples more often than charged: {best} releases{when}, each charged for "
        f"sampling {share:.3g} ({hits} of {trials} altogether)"
    )
