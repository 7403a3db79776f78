"""The numbers behind the page's charts: curves over time and cost, final values over a sweep, spreads over agents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..analysis.aggregate import ALIASES, PREFERRED, final_values, mean_interval
from ..analysis.results import Collection
from ..compare.measures import measures
from ..figures.intervals import FEW
from ..metrics.metric import range_of
from .grid import Grid, Series
from .naming import axis_name, metric_name
from .recording import Curves, Pair, RunRecord

NUMBERS = 300_000
"""Numbers of all curves together; what keeps the file small, whatever the number of runs."""

PLACES = (20, 160)
"""Places of a curve: as many as the numbers allow, within these limits."""

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def number(value: Any) -> float | None:
    """Six digits of a finite number, else None."""
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None


def numbers(values: NDArray[Any]) -> list[float | None]:
    """`number` of every value."""
    return [number(value) for value in values.tolist()]


def recorded(collection: Collection) -> list[Pair]:
    """Metrics and statistics of the trace, but for those of bins of agents."""
    pairs = collection.trace[["metric", "statistic"]].drop_duplicates().itertuples(index=False, name=None)
    return [(metric, statistic) for metric, statistic in pairs if not statistic.startswith("samples ")]


def metric_id(pair: Pair) -> str:
    """Return the identifier of a metric in the page's script."""
    return ":".join(filter(None, pair))


def curves(collection: Collection, grid: Grid) -> dict[str, Any]:
    """Every metric on every axis, for every series.

    Where there are so many series that curves would get too coarse, only a metric's usual statistic is kept; where
    that does not help, only evenly spaced series are.
    """
    pairs, kept = recorded(collection), list[Series](grid.series)
    recording = RunRecord(collection, pairs)
    if _places(kept, pairs, recording) < PLACES[0]:
        pairs = [pair for pair in pairs if pair[1] == _usual(pair[0], pairs)]
        recording = RunRecord(collection, pairs)
    if (places := _places(kept, pairs, recording)) < PLACES[0]:
        count = max(1, len(kept) * places // PLACES[0])
        kept = [kept[rank] for rank in np.unique(np.linspace(0, len(kept) - 1, count).round().astype(int))]
    places = int(np.clip(_places(kept, pairs, recording), *PLACES))
    found: dict[str, list[Any]] = {}
    ranks = {series: rank for rank, series in enumerate(grid.series)}
    for axis in recording.axes:
        made = [(ranks[series], recording.curves(series.runs, axis, places)) for series in kept]
        found[axis] = [_curve(rank, curve, pairs) for rank, curve in made]
    return {
        "axes": [{"id": axis, "name": axis_name(collection, axis)} for axis in recording.axes],
        "metrics": [{"id": metric_id(pair), "name": metric_name(*pair), "range": _range(*pair)} for pair in pairs],
        "curves": found,
        "places": places,
        "left_out": len(grid.series) - len(kept),
    }


def _places(series: Sequence[Series], pairs: list[Pair], recording: RunRecord) -> int:
    """Places that the numbers allow; beside every mean stand a half-width, or the few runs themselves."""
    each = max((1 + len(one.runs) if len(one.runs) < FEW else 2 for one in series), default=1)
    return NUMBERS // (each * max(1, len(series) * len(pairs) * len(recording.axes)))


def _usual(metric: str, pairs: list[Pair]) -> str:
    known = [statistic for name, statistic in pairs if name == metric]
    return next((statistic for statistic in PREFERRED if statistic in known), known[0])


def _curve(rank: int, curve: Curves, pairs: list[Pair]) -> dict[str, Any]:
    """One series on one axis: x, and by metric mean, half-width, runs, and whether something was infinite."""
    metrics: dict[str, Any] = {}
    for column, pair in enumerate(pairs):
        mean, half, n = curve.mean[:, column], curve.half[:, column], curve.n[:, column]
        if len(mean) == 0 or not (np.isfinite(mean).any() or np.isinf(mean).any()):
            continue
        entry: dict[str, Any] = {"y": numbers(mean), "n": int(n[0]) if (n == n[0]).all() else n.tolist()}
        if len(curve.each):
            entry["r"] = [numbers(run) for run in curve.each[:, :, column]]
        elif np.isfinite(half).any():
            entry["h"] = numbers(half)
        if np.isinf(mean).any():
            entry["infinite"] = "everywhere" if not np.isfinite(mean).any() else "in part"
        metrics[metric_id(pair)] = entry
    return {"s": rank, "x": numbers(curve.x), "m": metrics}


def finals(collection: Collection, grid: Grid) -> dict[str, Any]:
    """Return final values of every series: mean, half-width, runs and runs in which it was infinite, by measure.

    The measures are those of ``hushnet compare``, and what was sent in all; ``own`` has those of each run.
    """
    found = [(measure.name, measure.title, measure.values) for measure in measures(collection)]
    for name in ("vectors", "bytes"):
        if any(name == each for each, _, _ in found):
            continue
        found.append((name, f"{name} sent", final_values(collection, name, "").set_index("run")["value"]))
    by_rank = [(name, values.reindex(collection.runs).to_numpy(np.float64)) for name, _, values in found]
    rows = [{name: _mean(values[list(series.finished)]) for name, values in by_rank} for series in grid.series]
    own = [{name: float(values[run]) for name, values in by_rank} for run in range(len(collection.runs))]
    kept = [(name, title) for name, title, _ in found if any(row[name] is not None for row in rows)]
    return {
        "metrics": [{"id": name, "name": title, "range": _range(*_measured(name))} for name, title in kept],
        "values": [{name: row[name] for name, _ in kept} for row in rows],
        "own": own,
    }


def _measured(measure: str) -> tuple[str, str]:
    """Metric and statistic that a measure of ``hushnet compare`` is of; a mean over time lies where its metric does."""
    metric, _, statistic = measure.removeprefix("area of ").partition(" ")
    return ALIASES.get(metric, metric), statistic


def _range(metric: str, statistic: str = "") -> list[float | None]:
    return [number(end) for end in range_of(metric, statistic)]


def _mean(values: NDArray[np.float64]) -> list[Any] | None:
    """Mean and half-width over the finite values, their number and that of the infinite; None if there are none.

    Of fewer than `hushnet.simulator.figures.intervals.FEW` the values themselves follow.
    """
    finite, infinite = values[np.isfinite(values)], int(np.isinf(values).sum())
    if len(finite) + infinite == 0:
        return None
    mean, half, n = mean_interval(finite) if len(finite) else (math.nan, math.nan, 0)
    few = [numbers(finite)] if 1 < n < FEW else []
    return [number(mean), number(half), int(n), infinite, *few]


def spreads(collection: Collection, grid: Grid) -> dict[str, Any]:
    """Summarise the distribution of agents' final values, over the agents of all finished runs of each series.

    The summary of each numeric column but the identifiers is `QUANTILES` and mean of the finite values, their number,
    and that of the infinite ones.
    """
    table = collection.agents
    aside = {"run", "protocol", "seed", "agent", "place_x", "place_y", *collection.grid}
    columns = [name for name in table.columns if name not in aside and pd.api.types.is_numeric_dtype(table[name])]
    rank = {collection.runs[run]: place for place, series in enumerate(grid.series) for run in series.finished}
    groups = dict(list(table.groupby(table["run"].map(rank))))
    rows = []
    for place in range(len(grid.series)):
        group = groups.get(place)
        found = {} if group is None else {name: _spread(group[name].to_numpy(np.float64)) for name in columns}
        rows.append({name: spread for name, spread in found.items() if spread is not None})
    kept = [name for name in columns if any(name in row for row in rows)]
    order = sorted(kept, key=lambda name: name in ("samples", "degree"))
    return {"metrics": [{"id": name, "name": metric_name(name)} for name in order], "values": rows}


def _spread(values: NDArray[np.float64]) -> list[float | None] | None:
    finite, infinite = values[np.isfinite(values)], int(np.isinf(values).sum())
    if len(finite) + infinite == 0:
        return None
    quantiles = np.quantile(finite, QUANTILES) if len(finite) else np.full(len(QUANTILES), np.nan)
    mean = float(finite.mean()) if len(finite) else None
    return [*numbers(quantiles), number(mean), len(finite), infinite]
