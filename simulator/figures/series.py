"""Numbers of lines and bars: curves over time or cost, and final values by sweep, protocol or size of data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...agents.errors import InputError
from ..analysis.aggregate import ALIASES, CURVE_AXES, curves, resolve, series, share_interval, time_scale, unknown
from ..analysis.results import Collection
from ..language.figure_parameters import TO_TARGET
from ..metrics.metric import ANY, Range
from ..storage.files import Frame
from .intervals import common_places, interval, thinned
from .numbers import (
    Plot,
    Spec,
    by_seed,
    chosen,
    finals,
    level_of,
    require_points,
    single_runs,
    swept,
    within_of,
)

POINTS = 400
"""Points of a curve whose runs were recorded at different places."""

BINS = 6
"""Bins of agents by the size of their data."""

COLUMNS = ["x", "protocol", "mean", "low", "high", "n"]


def curve(collection: Collection, spec: Spec) -> Plot:
    """A metric over time or cost."""
    metric, statistic = resolve(collection, str(spec["y"]), spec.get("statistic") or None)
    x = str(spec["x"])
    if x not in CURVE_AXES:
        raise InputError(f"figures: x {x!r} is no axis of a curve{unknown(x, CURVE_AXES)}", field=("figures",))
    samples = curves(collection, metric, statistic, x)
    drawn = plot_of("curve", x, (metric, statistic), collection, spec, samples)
    if x == "time":
        drawn.points["x"] *= time_scale(collection.index.get("time_unit"))[0]
    return drawn


def sweep(collection: Collection, spec: Spec) -> Plot:
    """Final values along a swept parameter."""
    x = swept(collection, str(spec["x"]), others=(*CURVE_AXES, "samples", "protocol"))
    *named, values = finals(collection, spec)
    return plot_of("sweep", x, named, collection, spec, values.assign(x=values[x]).dropna(subset=["x"]))


def bars(collection: Collection, spec: Spec) -> Plot:
    """Final values, a bar per protocol."""
    *named, values = finals(collection, spec)
    return plot_of("bars", "protocol", named, collection, spec, values.assign(x=values["protocol"]))


def samples(collection: Collection, spec: Spec) -> Plot:
    """Final values by the size of the agents' data."""
    metric = agent_column(collection, str(spec["y"]))
    return plot_of("samples", "samples", (metric, ""), collection, spec, _by_size(collection, metric))


def agent_column(collection: Collection, y: str) -> str:
    """The column of the table of agents that a name stands for."""
    columns = collection.agents.columns
    metric = y if y in columns else ALIASES.get(y, y)
    if metric in columns and pd.api.types.is_numeric_dtype(collection.agents[metric]):
        return metric
    known = [str(name) for name in columns if pd.api.types.is_numeric_dtype(collection.agents[name])]
    raise InputError(f"figures: y {y!r} is not known per agent{unknown(y, known)}", field=("figures",))


def size_classes(sizes: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Class of each size, and the mean size of each class; at most `BINS`, with about as many members each."""
    edges = np.unique(sizes)
    if len(edges) > BINS:
        edges = np.unique(np.quantile(sizes, np.linspace(0, 1, BINS + 1)))[:-1]
    classes = np.searchsorted(edges, sizes, side="right") - 1
    return classes, np.bincount(classes, weights=sizes) / np.maximum(np.bincount(classes), 1)


def plot_of(kind: str, x: str, named: Any, collection: Collection, spec: Spec, samples: Frame) -> Plot:
    """Samples (``run, protocol, x, value`` and the grid's) averaged over runs."""
    asked = {"interval": "95%", **spec}
    protocols, level = chosen(collection, spec), level_of(asked["interval"])
    metric, statistic = named
    samples = samples[samples["protocol"].isin(protocols)]
    known = samples[np.isfinite(samples["value"])]
    if not collection.complete.intersection(samples["run"]) and known["x"].nunique() < 2:
        samples = samples[:0]  # all broke off where they began
    require_points(samples, metric, protocols)
    samples = samples.assign(seed=samples["run"].map(collection.seeds))
    splits = [path for path in collection.grid if path != x and samples[path].nunique(dropna=False) > 1]
    within = within_of(metric, statistic, spec)
    if within == ANY and str(spec.get("log")) in ("y", "both") and (samples["value"].dropna() > 0).all():
        within = (0.0, math.inf)  # as the axis says
    pieces, runs = [], []
    for key, group in series(samples, protocols, splits):
        points, values = _reduce(group, collection, kind, within, level, wins=bool(spec.get("wins")))
        pieces.append(points.assign(**dict(zip(["protocol", *splits], key, strict=True))))
        runs.append(values)
    points = pd.concat(pieces, ignore_index=True)
    columns = [*COLUMNS, *(["reached"] if metric in TO_TARGET else []), *splits]
    values = pd.concat(runs, ignore_index=True)
    return Plot(
        kind,
        x,
        metric,
        statistic,
        splits,
        points[columns],
        runs=values,
        single=single_runs(points["n"], asked),
        within=within,
    )


def _by_size(collection: Collection, metric: str) -> Frame:
    """One value per run and class: the mean over the class's agents; classes are common to all runs."""
    agents = collection.agents[collection.agents["run"].isin(collection.complete)]
    agents = agents[agents[metric].notna()].rename(columns={metric: "value"})
    if agents.empty:
        return agents.assign(x=np.nan)
    classes, centres = size_classes(agents["samples"].to_numpy(np.float64))
    keys = ["run", "protocol", *collection.grid, "x"]
    return agents.assign(x=centres[classes]).groupby(keys, sort=False, dropna=False)["value"].mean().reset_index()


def _reduce(
    group: Frame, collection: Collection, kind: str, within: Range, level: float | None, *, wins: bool
) -> tuple[Frame, Frame]:
    """Points of a series, and row by row the values of its runs."""
    if kind == "curve":
        x, table = _common_axis(group, collection.complete)
        seeds = group.drop_duplicates("run")["seed"]
        values = pd.DataFrame(table.T, columns=seeds if seeds.is_unique else range(len(seeds)))
    else:
        x = list(dict.fromkeys(group["x"]))
        x = sorted(x) if pd.api.types.is_numeric_dtype(group["x"]) else x
        values = by_seed(x, group)
        table = values.to_numpy(np.float64).T
    mean, low, high, n = interval(table, within, level)
    if wins and level is not None:
        low, high = np.transpose([share_interval(column, level)[1:3] for column in table.T])
    reached = np.isfinite(table).sum(axis=0)
    points = pd.DataFrame({"x": x, "mean": mean, "low": low, "high": high, "n": n, "reached": reached})
    return points[points["n"] > 0], values[points["n"] > 0]


def _common_axis(group: Frame, complete: set[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places (k,) and values (runs, k), each run as a step function of its last known value.

    The axis covers what all finished runs cover. A run that broke off counts up to its own end.
    """
    runs = []
    for run, rows in group.groupby("run", sort=False):
        rows = rows.drop_duplicates("x", keep="last").sort_values("x", kind="stable")
        runs.append((run in complete, rows["x"].to_numpy(np.float64), rows["value"].to_numpy(np.float64)))
    axis = common_places([x for _, x, _ in runs], [finished for finished, *_ in runs])
    if any(len(x) < len(axis) for finished, x, _ in runs if finished):
        axis = thinned(axis, POINTS)
    table = np.full((len(runs), len(axis)), np.nan)
    for row, (finished, x, values) in zip(table, runs, strict=True):
        held = np.searchsorted(x, axis, side="right") - 1
        known = (held >= 0) if finished else (held >= 0) & (axis <= x[-1])
        row[known] = values[held[known]]
    return axis, table
