"""Whether rows take part in releases over samples no more often than these are charged for, and drawn anew each time.

In a run on neighbouring data that is led along the same noisy values, a changed row took part in a release if its exact
value moves. Where samples are what they are charged for, that happens with a probability of at most `Release.sampling`,
whatever happened before. So whoever stakes money on it at the odds that this gives does not win on average: with odds
raised by a factor r, a stake is multiplied by r / (1 - s + s r) where the row takes part, and by 1 / (1 - s + s r)
where it does not. Capital that has grown by a factor of 1 / p refutes it at level p, by Markov's inequality, however
dependent releases and rows are otherwise (Shafer 2021, "Testing by betting"). The capital is split over the ways to
bet in `bets`, each at several odds, on all rows, on the first, the last, ..., and on those of one agent.

Only "more often" is looked for: a row of slope 0 takes part unseen. Rows that are dealt out in turn, or one in the
middle that is preferred a little, need more releases than a short run has.
"""

# SciPy comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ...agents.tasks.base import Task
from .draws import SOLVED, Draw
from .forcing import Forcing
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
)


@dataclass(frozen=True)
class Participation:
    """Releases over samples of an agent, and in which of them a changed row took part.

    Parameters
    ----------
    agent : str
        What sentences call it.
    row : str
        Which of its rows.
    shares : (k,) float64
        `Release.sampling` of each.
    moved : (k,) bool
    """

    agent: str
    row: str
    shares: Array
    moved: Flags


@dataclass
class Witness:
    """A run that was noted, and what the runs that were led along it have shown of its samples.

    Parameters
    ----------
    recording : Recording
    samples : list of list of Participation
        Of each run that was led.
    """

    recording: Recording
    samples: list[list[Participation]] = field(default_factory=list)

    def saw(self, usual: Task, other: Task, forcing: Forcing, changed: Iterable[int]) -> None:
        """Note which releases the changed rows took part in."""
        found = []
        for agent in sorted(changed):
            row = _changed_row(usual, other, agent)
            pairs = [
                (one, two)
                for one, two in zip(self.recording.draws[agent], forcing.draws[agent], strict=False)
                if one.release.sampling < 1 and (one.release.unit != "record" or row)
            ]
            if pairs:
                shares = np.array([one.release.sampling for one, _ in pairs])
                moved = np.array([_moved(one, two) for one, two in pairs])
                found.append(Participation(self.recording.agent(agent), row or "whole data", shares, moved))
        if found:
            self.samples.append(found)

    @property
    def moved(self) -> bool:
        """Whether a changed row was seen to take part in a release over a sample."""
        return any(one.moved.any() for some in self.samples for one in some)

    @property
    def sampled(self) -> int:
        """Releases over samples."""
        return sum(draw.release.sampling < 1 for draws in self.recording.draws.values() for draw in draws)


def _changed_row(usual: Task, other: Task, agent: int) -> str:
    """Which single row of an agent is another one, or lacks; empty if that is no single one."""
    if usual.columns is not None:
        return ""
    (start, stop), (begin, end) = (task.train.offsets[agent : agent + 2].tolist() for task in (usual, other))
    if stop - start != end - begin:
        return "last row"
    features = np.any(usual.train.features[start:stop] != other.train.features[begin:end], axis=1)
    rows = np.flatnonzero(features | (usual.train.labels[start:stop] != other.train.labels[begin:end]))
    if len(rows) != 1:
        return ""
    return "first row" if rows[0] == 0 else "last row" if rows[0] == stop - start - 1 else f"row {rows[0] + 1}"


def _moved(one: Draw, two: Draw) -> bool:
    """Whether an exact value is another one, by more than rounding leaves of it or any noise could fail to hide."""
    least = SOLVED * one.release.scale
    same = np.abs(one.exact - two.exact).max(initial=0.0) <= least
    return not (same and abs((one.log_jacobian or 0.0) - (two.log_jacobian or 0.0)) <= SOLVED)


def sampling_doubt(witnesses: Sequence[Witness], level: float) -> str:
    """How samples are other than charged, in words; empty if nothing speaks for it.

    Parameters
    ----------
    witnesses : sequence of Witness
        Of runs with different random draws.
    level : float
        The probability, at most, with which a protocol that draws its samples as charged is doubted.
    """
    ways: dict[str, Array] = defaultdict(lambda: np.zeros((len(BETS), len(ODDS))))
    for witness in witnesses:
        for name, gains in _capital(witness).items():
            ways[name] += gains
    if not ways:
        return ""
    rows = [name for name in ways if not name.startswith("of ")]
    agents = [name for name in ways if name.startswith("of ")]
    each = {name: -math.log(2 * len(names) * len(BETS) * len(ODDS)) for names in (rows, agents) for name in names}
    gains = {name: ways[name] + each[name] for name in ways}
    if logsumexp([logsumexp(one) for one in gains.values()]) < -math.log(level):
        return ""
    best = max(gains, key=lambda name: float(gains[name].max()))
    return _said(witnesses, best, BETS[int(np.argmax(gains[best].max(axis=1)))])


def _capital(witness: Witness) -> Mapping[str, Array]:
    """Logarithm of what became of a capital of 1 in every way of betting on one noted run.

    The runs that were led along it share its samples, so each of them gets an equal part of the capital.
    """
    found: dict[str, list[Array]] = defaultdict(list)
    for taken in witness.samples:
        ways: dict[str, Array] = defaultdict(lambda: np.zeros((len(BETS), len(ODDS))))
        before: dict[str, Participation] = {}
        for one in taken:
            gains = _gains(one, bets(one, before.get(one.row)))
            before[one.row] = one
            for name in ("any row", one.row, f"of {one.agent}"):
                ways[name] += gains
        for name, gains in ways.items():
            found[name].append(gains)
    runs = len(witness.samples)
    none = np.zeros((len(BETS), len(ODDS)))
    return {
        name: np.asarray(logsumexp([*some, *[none] * (runs - len(some))], axis=0)) - math.log(runs)
        for name, some in found.items()
    }


def bets(one: Participation, other: Participation | None) -> Sequence[Flags]:
    """Choose the releases that each way bets on, which may depend on what came before.

    Parameters
    ----------
    one : Participation
    other : Participation, optional
        The same row of another agent.
    """
    moved = one.moved
    counts = np.r_[0, np.cumsum(moved)]
    # Some changes of a row move no value, so that one which was never seen to take part may be one that is not seen.
    found = [np.ones(len(moved), dtype=bool), counts[:-1] > 0]
    found += [np.r_[np.zeros(min(apart, len(moved)), dtype=bool), moved[:-apart]] for apart in APART]
    theirs = np.zeros(len(moved), dtype=bool)
    if other is not None:
        length = min(len(moved), len(other.moved))
        theirs[:length] = other.moved[:length]
    # Where all rows are used up before one comes again, a row that is absent for long is due.
    absent = max(1, math.ceil(1 / float(one.shares.min())) - 1)
    due = np.zeros(len(moved), dtype=bool)
    due[absent:] = counts[absent:-1] == counts[: max(0, len(moved) - absent)]
    return [*found, theirs, due & (counts[:-1] > 0)]


def _gains(one: Participation, where: Sequence[Flags]) -> Array:
    """(bets, odds) logarithm of what a capital of 1 becomes."""
    odds = np.log(ODDS)[:, None]
    each = np.where(one.moved, odds, 0.0) - np.log1p(one.shares * np.expm1(odds))
    return np.array([each[:, flags].sum(axis=1) for flags in where])


def _said(witnesses: Sequence[Witness], name: str, bet: str) -> str:
    """What was found in the best way of betting, and the agent in whom it shows most."""
    best, most, hits, trials, share = "", -1.0, 0, 0, 0.0
    for witness in witnesses:
        for taken in witness.samples:
            before: dict[str, Participation] = {}
            for one in taken:
                flags = bets(one, before.get(one.row))[BETS.index(bet)]
                before[one.row] = one
                if name not in ("any row", one.row, f"of {one.agent}") or not flags.any():
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
    }.get(bet, f" that come {bet[3:-7]} after one in which it does, as if samples were not drawn anew")
    return (
        f"rows take part in releases over samples more often than charged: {best} releases{when}, each charged for "
        f"sampling {share:.3g} ({hits} of {trials} altogether)"
    )
