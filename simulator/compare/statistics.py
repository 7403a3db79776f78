"""The arithmetic of a paired comparison: intervals, tests, Holm's correction and break-even points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..analysis.aggregate import mean_interval, power_near

FEWEST_SEEDS = 10
"""Below so many seeds a break-even point has no interval: resampling them covers .72 / .83 at three and five seeds
where 95 % are promised, and .90 / .94 at ten and twenty."""

REPETITIONS = 1999
"""Resamples of a whole axis, for an interval of a break-even point."""

DRAWN = 2**19
"""Resampled differences in memory at a time, whatever the number of pairs; the draws are the same for any number."""

LEVEL = 0.95
NOTHING = "nothing to test"
"""Method where all differences are the same."""

ROUNDING = 1e-12
"""Values that differ by less than this share of them are equal, and differences that vary by less do not vary."""


@dataclass(frozen=True)
class Difference:
    """Paired difference of a protocol (ours) minus another (theirs), with its interval and test."""

    n: int
    """Pairs in which both are known."""
    mean: float
    """Mean difference over the pairs in which both are finite."""
    low: float
    high: float
    """`low` and `high`: 95 % interval of the mean difference; NaN below two pairs and where a value is infinite."""
    p: float
    """Two-sided p value of no difference; NaN below two pairs."""
    pairing: float
    """Variance that the difference of two independent means would have, divided by that of the paired one; NaN below
    two pairs, where a value is infinite and where nothing varies."""
    method: str
    """{"t", "sign test", "nothing to test", ""}: Source of interval and p value; the sign test has no interval, and
    where all differences are the same there is nothing to test."""
    ours: float
    theirs: float
    """`ours` and `theirs`: Means over the pairs that ``mean`` is about."""
    finite: int
    theirs_finite: int
    """`finite` and `theirs_finite`: Pairs in which ours, and theirs, are finite."""
    larger: int
    smaller: int
    """`larger` and `smaller`: Pairs in which ours is the larger, and the smaller."""


def paired_difference(ours: ArrayLike, theirs: ArrayLike, *, interval: bool = True) -> Difference:
    """Compare (n,) paired values: infinite where something never happened, NaN where unknown, which drops the pair.

    Student's t interval, if wanted, and the paired t test, which never contradict each other: 0 is outside the interval
    where p is below 0.05. It covers .95 of normal differences at any number of pairs, and less of skewed ones: of
    lognormal ones with sigma 0.5 it covers .92, .92 and .93 at 5, 10 and 20 pairs, with sigma 1 .82, .84 and .87. A
    bias-corrected and accelerated bootstrap of 20 pairs covers less, .91 where this covers .94.

    Differences that do not vary admit no test: either nothing in them is random, or they are too few. Infinite values
    (a run that never reached its target) have no mean: there the exact sign test on all pairs counts who came first,
    ties aside, and the mean over the pairs in which both are finite, which favours whoever fails more often, is given
    without an interval.
    """
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    known = ~(np.isnan(ours) | np.isnan(theirs))
    ours, theirs = ours[known], theirs[known]
    unit = power_near(np.concatenate([ours, theirs]))
    ours, theirs = np.ldexp(ours, -unit), np.ldexp(theirs, -unit)
    signed = less(ours, theirs)
    counts = [int(np.sum(here)) for here in (np.isfinite(ours), np.isfinite(theirs), signed > 0, signed < 0)]
    both = np.isfinite(ours) & np.isfinite(theirs)
    differences = signed[both]
    means = [float(np.mean(values)) if len(values) else np.nan for values in (differences, ours[both], theirs[both])]
    p, (low, high), method, pairing = np.nan, (np.nan, np.nan), "", np.nan
    if known.sum() > 1:
        if not both.all():
            p, method = _sign_test(*counts[2:]), "sign test"
        elif not _vary(differences, ours, theirs):
            method, varies = NOTHING, _vary(ours, ours, theirs) or _vary(theirs, ours, theirs)
            pairing = np.inf if varies else np.nan
            low, high = (means[0], means[0]) if interval else (np.nan, np.nan)
        else:
            mean, half, _ = mean_interval(differences, LEVEL)
            low, high = (mean - half, mean + half) if interval else (np.nan, np.nan)
            method = "t"
            pairing = _ratio(np.var(ours, ddof=1) + np.var(theirs, ddof=1), np.var(differences, ddof=1))
            error = np.std(differences, ddof=1) / np.sqrt(len(differences))
            p = 2.0 * float(special.stdtr(len(differences) - 1, -abs(means[0]) / error))
    with np.errstate(over="ignore"):
        mean, low, high, our_mean, their_mean = np.ldexp([means[0], low, high, *means[1:]], unit).tolist()
    return Difference(int(known.sum()), mean, low, high, p, pairing, method, our_mean, their_mean, *counts)


def less(ours: ArrayLike, theirs: ArrayLike) -> NDArray[np.float64]:
    """Ours less theirs, and 0 where the two differ by nothing but rounding; of shape ``(...)`` as both."""
    mine, other = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        found = mine - other
    equal = np.isfinite(found) & (np.abs(found) <= ROUNDING * np.maximum(np.abs(mine), np.abs(other)))
    return np.where(equal, 0.0, found)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down adjustment (1979): the k-th smallest of m p values times m - k + 1, made monotone, at most 1.

    Of (m,) values NaN stands for a test that was not made and does not count.
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    order = np.argsort(p, kind="stable")[: int(np.sum(~np.isnan(p)))]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return adjusted


@dataclass(frozen=True)
class Crossing:
    """Point on an axis at which a mean difference changes sign."""

    at: float
    """Linear interpolation between the two neighbouring values; NaN where a mean is infinite."""
    after: float
    before: float
    """`after` and `before`: The neighbouring values of the axis."""
    rising: bool
    """Whether the difference turns from negative to positive."""
    low: float
    high: float
    """`low` and `high`: 95 % percentile interval over resampled seeds; NaN below `FEWEST_SEEDS` or without ``at``."""
    seen: float
    """Share of the resamples with a crossing in this direction."""
    points: int
    """Values of the axis at which the difference is known; the place is interpolated between two of them."""


def crossings(x: ArrayLike, differences: ArrayLike, *, log: bool, rng: np.random.Generator) -> list[Crossing]:
    """Find the points along an axis at which the mean over seeds of a paired difference changes sign.

    There are (k, n) differences, by ascending value of the axis and by seed: NaN where unknown, infinite where one of
    the two never reached the target. The generator resamples seeds jointly at all values. With ``log``, places are
    interpolated, and the nearest crossing of a resample chosen, on a logarithmic axis.
    """
    places, table = np.asarray(x, dtype=np.float64), np.asarray(differences, dtype=np.float64)
    known = ~np.isnan(_means(table))
    places, table = places[known], table[known]
    axis = np.log(places) if log else places
    resampled = _resampled(table, rng)
    result = []
    for at, after, before, rising in _sign_changes(axis, _means(table)):
        near = _nearest(axis, resampled, at, rising)
        enough = len(near) > 0 and table.shape[1] >= FEWEST_SEEDS
        low, high = np.quantile(near, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if enough else (np.nan, np.nan)
        seen = len(near) / len(resampled) if len(resampled) else np.nan
        ends = [float(np.exp(place) if log else place) for place in (at, low, high)]
        result.append(
            Crossing(ends[0], float(places[after]), float(places[before]), rising, ends[1], ends[2], seen, len(axis))
        )
    return result


def _vary(values: NDArray[np.float64], *sizes: NDArray[np.float64]) -> bool:
    """True if values vary by more than the rounding error of the numbers that they are computed from."""
    return bool(np.ptp(values) > ROUNDING * max(np.abs(each).max() for each in sizes))


def _sign_test(larger: int, smaller: int) -> float:
    """Return the two-sided p value of so many signs of either kind that are as probable as each other."""
    return min(1.0, 2.0 * float(special.bdtr(min(larger, smaller), larger + smaller, 0.5)))


def _ratio(above: Any, below: Any) -> float:
    return float(above / below) if below > 0 else np.inf if above > 0 else np.nan


def _means(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means along the last axis over the seeds that are known; NaN where none is, or where both infinities meet."""
    known = ~np.isnan(table)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known, table, 0.0).sum(axis=-1) / known.sum(axis=-1)


def _resampled(table: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """(`REPETITIONS`, k) means over seeds that are drawn anew, jointly at all k places; none below three seeds."""
    places, n = table.shape
    means = np.empty((REPETITIONS if n > 2 else 0, places))
    step = _at_a_time(places * n)
    for first in range(0, len(means), step):
        part = means[first : first + step]
        draws = rng.integers(n, size=(len(part), n))
        part[:] = _means(table[:, draws]).T
    return means


def _at_a_time(numbers: int) -> int:
    """Resamples of so many numbers each that are in memory together."""
    return max(1, DRAWN // max(numbers, 1))


def _sign_changes(axis: NDArray[np.float64], means: NDArray[np.float64]) -> Iterator[tuple[float, int, int, bool]]:
    """(place, index before it, index after it, whether rising) of every change of sign."""
    for left, right in pairwise(np.flatnonzero(means)):
        if (means[left] > 0) == (means[right] > 0):
            continue
        if right > left + 1:
            at = float(np.mean(axis[left + 1 : right]))
        elif np.isfinite(means[left]) and np.isfinite(means[right]):
            at = float(axis[left] + means[left] / (means[left] - means[right]) * (axis[right] - axis[left]))
        else:
            at = np.nan
        yield at, int(left), int(right), bool(means[right] > 0)


def _nearest(axis: NDArray[np.float64], means: NDArray[np.float64], at: float, rising: bool) -> NDArray[np.float64]:
    """Find the crossing nearest to a place of every resample (rows of means) that crosses zero in this direction."""
    upwards = means if rising else -means
    left, right = upwards[:, :-1], upwards[:, 1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        crossed = axis[:-1] + left / (left - right) * np.diff(axis)
    there = (left <= 0) & (right >= 0) & (left < right) & np.isfinite(left) & np.isfinite(right)
    distance = np.where(there, np.abs(crossed - at), np.inf)
    best = np.argmin(distance, axis=1)
    rows = np.flatnonzero(np.isfinite(distance[np.arange(len(best)), best]))
    return crossed[rows, best[rows]]
