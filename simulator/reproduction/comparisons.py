"""Comparisons that several papers' claims share; each gives numbers with what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..analysis.aggregate import ALIASES
from ..audit.verdicts import ROUNDING
from .claims import Finding, Number, Promise, measured
from .runs import Point, Runs, Series


def ahead(
    runs: Runs, first: str, second: str, metric: str, *, higher_is_better: bool = True, point: Point | None = None
) -> Series:
    """Measure by how much the first protocol ends better than the second, by seed; numbers of two kinds are refused."""
    check_kinds(runs, metric, [first, second])
    gap = runs.final(first, metric, point=point) - runs.final(second, metric, point=point)
    return gap if higher_is_better else -gap


def check_kinds(runs: Runs, metric: str, protocols: Iterable[str]) -> None:
    """See that protocols' numbers of a metric are of one kind (`hushnet.simulator.analysis.comparability`)."""
    runs.collection.kinds.check(ALIASES.get(metric, metric), protocols)


def ahead_along(
    runs: Runs, first: str, second: str, metrics: dict[str, bool], x: str, *, shares: Iterable[float] = (0.25, 1.0)
) -> tuple[Number, ...]:
    """The first protocol's lead over the second at shares of the part of an axis that all their runs cover.

    Parameters
    ----------
    runs : Runs
    first, second : str
    metrics : dict of bool
        Whether more is better, by metric.
    x : str
        The axis, such as ``activations`` or ``vectors``.
    shares : iterable of float
        In (0, 1].
    """
    numbers = []
    for metric, more_is_better in metrics.items():
        check_kinds(runs, metric, [first, second])
        end = runs.common_end([first, second], metric, x)
        for share in shares:
            values = [runs.at(share * end, key, metric, x) for key in (first, second)]
            lead = values[0] - values[1] if more_is_better else values[1] - values[0]
            name = f"lead of {first} over {second} in {metric} at {share * end:,.0f} {x}"
            numbers.append(measured(name, lead, above=0))
    return tuple(numbers)


def promises(
    runs: Runs,
    protocols: Iterable[str],
    *,
    why: str = "",
    point: Point | None = None,
    at_least: Callable[[str], float] = lambda protocol: 0.0,
) -> Finding:
    """Whether the worst agent's verified epsilon stays within the claimed one, at the end of protocols' runs.

    Parameters
    ----------
    runs : Runs
    protocols : iterable of str
    why : str
    point : mapping, optional
    at_least : callable
        A lower bound on the epsilon of a protocol's runs; asked for where what is verified is above the claim.
    """
    numbers = []
    for key in protocols:
        ends = (runs.final(key, f"epsilon_{which}", "worst", point=point) for which in ("claimed", "verified"))
        claimed, verified = (float(values.max()) for values in ends)
        name = f"verified epsilon of {key}, claimed {claimed:.3g}"
        above = verified > claimed * (1 + ROUNDING)
        numbers.append(Promise(name, verified, high=claimed, at_least=at_least(key) if above else 0.0))
    return Finding(tuple(numbers), why)


def straight_line(x: Any, y: Any) -> tuple[float, float]:
    """Slope and coefficient of determination R^2 of the least-squares line; NaN where the values do not vary."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    slope, intercept = np.polyfit(x, y, 1)
    rest = y - slope * x - intercept
    spread = np.sum((y - y.mean()) ** 2)
    return float(slope), float(1 - np.sum(rest**2) / spread) if spread > 0 else np.nan
