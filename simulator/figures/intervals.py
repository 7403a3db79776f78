"""Means with intervals that stay within what a metric can be, and from how many runs on an interval is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..analysis.aggregate import mean_interval
from ..metrics.metric import ANY, Range

FEW = 5
"""Runs below which a figure shows each of them: an interval from so few says more about itself than about them."""

Numbers = NDArray[np.float64]


class Interval(NamedTuple):
    """Means with both ends of their intervals; of one place, or of k."""

    mean: Numbers
    low: Numbers
    """NaN, like high, where there are fewer than two runs."""
    high: Numbers
    n: NDArray[np.int64]


def common_places(axes: Sequence[Numbers], finished: Sequence[bool]) -> Numbers:
    """Places in runs' ascending ones that all finished runs cover, or where none finished, that the longest does."""
    ends = [x[-1] for x, done in zip(axes, finished, strict=True) if done] or [max(x[-1] for x in axes)]
    places = np.unique(np.concatenate(axes))
    return places[(places >= max(x[0] for x in axes)) & (places <= min(ends))]


def thinned(places: Numbers, most: int) -> Numbers:
    """Evenly spread ones of some places, at most so many, with both ends."""
    return places[np.unique(np.linspace(0, len(places) - 1, min(most, len(places))).round().astype(int))]


def interval(values: ArrayLike, within: Range = ANY, level: float | None = 0.95) -> Interval:
    """Mean and t interval along the first axis, computed on a scale on which the interval cannot leave a range.

    Of (n,) or (n, k) values NaN marks a run that does not count. Where a run lies outside of the range (a gap below 0,
    while agents' models differ), nothing is assumed. The level is in (0, 1); None for no interval.

    With f the logit of the range, its logarithm from one end, or the identity, the ends are f^-1(f(m) -+ f'(m) h), with
    mean m and half-width h of Student's t interval (the delta method). They agree with m -+ h to first order in h and
    contain the mean; what they do not do is reach the end of the range unless all runs are there.

    >>> found = interval([0.97, 0.99, 0.999, 0.9], (0, 1))
    >>> [round(float(number), 3) for number in (found.mean, found.low, found.high)]
    [0.965, 0.771, 0.996]
    """
    table = np.asarray(values, dtype=np.float64)
    mean, half, n = (np.asarray(part) for part in mean_interval(table, level or 0.95))
    low, high = np.asarray(mean - half), np.asarray(mean + half)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        inside = np.all(np.isnan(table) | ((table >= within[0]) & (table <= within[1])), axis=0)
        ends = _ends(mean, half, within)
        low, high = (np.where(inside, end, plain) for end, plain in zip(ends, (low, high), strict=True))
    certain = half == 0
    low, high = np.minimum(np.where(certain, mean, low), mean), np.maximum(np.where(certain, mean, high), mean)
    if level is None:
        low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
    return Interval(mean[()], low[()], high[()], n[()])


def scale_of(within: Range) -> str:
    """Name the scale on which the intervals of a range are computed; empty if as they are."""
    if math.isinf(within[0]) and math.isinf(within[1]):
        return ""
    return "log" if math.isinf(within[0]) or math.isinf(within[1]) else "logit"


def _ends(mean: Numbers, half: Numbers, within: Range) -> tuple[Numbers, Numbers]:
    least, most = within
    scale = scale_of(within)
    if not scale:
        return mean - half, mean + half
    if scale == "log":
        end, sign = (least, 1.0) if math.isfinite(least) else (most, -1.0)
        size = sign * (mean - end)
        ends = [end + sign * size * np.exp(side * half / size) for side in (-sign, sign)]
        return ends[0], ends[1]
    odds, slope = (mean - least) / (most - mean), (most - least) / ((mean - least) * (most - mean))
    low, high = (least + (most - least) / (1 + 1 / (odds * np.exp(side * slope * half))) for side in (-1, 1))
    return low, high


def one_by_one(n: ArrayLike, choice: str, *, shares: bool) -> NDArray[np.bool_]:
    """Mark points, by the (k,) numbers of runs behind them, that show each run in place of an interval.

    They are those of fewer than `FEW` runs, or all if the figure's ``interval`` says seeds; no shares of wins, to which
    single runs, each won or lost, would add nothing.
    """
    count = np.asarray(n)
    if choice == "none" or shares:
        return np.zeros(count.shape, dtype=bool)
    return (count > 1) if choice == "seeds" else (count > 1) & (count < FEW)


def extent(middle: ArrayLike, ends: Numbers, runs: Numbers, single: NDArray[np.bool_]) -> Numbers:
    """Both ends, (k, 2), of what an axis has to show at every point: what runs came to, not how wide an interval is.

    There are (k,) means, (k, 2) ends of their intervals, NaN without one, and (k, m) runs that they are of. Where
    ``single`` says that runs are shown one by one, the ends are the smallest and the largest; elsewhere those of the
    interval, as far as runs reach.
    """
    mean = np.asarray(middle, dtype=np.float64)
    known = np.where(np.isfinite(runs), runs, np.nan) if runs.size else np.full((len(mean), 1), np.nan)
    reach = np.stack([_or(mean, np.fmin.reduce(known, axis=1)), _or(mean, np.fmax.reduce(known, axis=1))], axis=1)
    inside = np.clip(_or(mean[:, None], ends), reach[:, :1], reach[:, 1:])
    found = np.where(single[:, None], reach, inside)
    return np.stack([np.fmin(found[:, 0], mean), np.fmax(found[:, 1], mean)], axis=1)


def _or(other: Numbers, values: Numbers) -> Numbers:
    """The values, and another where there is none."""
    return np.where(np.isfinite(values), values, other)
