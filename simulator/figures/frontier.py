"""Cost of accuracy: one mark per protocol and grid point, against epsilon or against messages and time.

Protocols that protect different things, or against different observers, must not be compared on one privacy axis: they
stand in panels of their own. Protocols without noise make no promise and stand in every panel, at an infinite epsilon,
or at 0 if they send nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..analysis.aggregate import final_values, series, time_scale
from ..analysis.results import Collection
from ..analysis.targets import reached
from ..language.figure_parameters import TO_TARGET
from ..metrics.epsilon import EPSILONS, PAIRS
from ..metrics.metric import Range, range_of
from ..storage.files import Frame
from .axis_ends import BrokenAxis, ends_around, show
from .figure_words import axis_label, series_label, value_label
from .intervals import extent, interval
from .lines import Entries, Panels
from .numbers import Plot, Spec, by_seed, chosen, finals, level_of, require_points, single_runs, within_of
from .series_style import series_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROMISE = ("unit", "adjacency", "observer")
"""What an epsilon is about, as in a run's privacy statement."""


def promises(collection: Collection, spec: Spec) -> Iterator[tuple[str, list[str]]]:
    """Title and protocols of every panel: those with the same promise, and those without any.

    ``panels`` says what has to be the same; by default everything against epsilon, else nothing.
    """
    wanted = spec.get("panels")
    if wanted is None:
        wanted = PROMISE if spec["x"] in EPSILONS else ()
    groups: dict[tuple[str, ...], list[str]] = {}
    free = []
    for key in chosen(collection, spec):
        statements = [m["privacy"] for m in collection.manifests if m["protocol"] == key and m.get("privacy")]
        if statements:
            groups.setdefault(tuple(_said(statements[0].get(name)) for name in wanted), []).append(key)
        else:
            free.append(key)
    order = {key: rank for rank, key in enumerate(collection.labels)}
    for promise, keys in groups.items() or [((), [])]:
        yield (
            _title(dict(zip(wanted, promise, strict=True)) if promise else {}),
            sorted([*keys, *free], key=order.__getitem__),
        )


def numbers(collection: Collection, spec: Spec) -> Plot:
    """One point per protocol and grid point that the protocol depends on."""
    asked = {"interval": "95%", **spec}
    protocols, level, x = chosen(collection, spec), level_of(asked["interval"]), str(spec["x"])
    metric, statistic, values = finals(collection, spec)
    values = values[values["protocol"].isin(protocols)].assign(x=values["run"].map(_costs(collection, x)))
    values = values.dropna(subset=["x"])
    require_points(values, f"{metric} and {x}", protocols)
    within = within_of(metric, statistic, spec), range_of(x)
    pieces, reached_at, paid, matters = [], [], [], set()
    for _, runs in series(values, protocols, []):
        # A run whose protocol does not depend on what is swept stands at several places of the grid.
        runs = runs.assign(base=runs["run"].str.partition("#")[0]).drop_duplicates("base")
        paths = [path for path in collection.grid if runs[path].nunique(dropna=False) > 1]
        matters |= set(paths)
        points, *by_run = _points(runs.assign(seed=runs["run"].map(collection.seeds)), paths, within, level)
        pieces.append(points)
        reached_at.append(by_run[0])
        paid.append(by_run[1])
    points = pd.concat(pieces, ignore_index=True)
    splits = [path for path in collection.grid if path in matters]
    points = points.reindex(columns=["x", "x_low", "x_high", "protocol", "mean", "low", "high", "n", *splits])
    runs, costs = (pd.concat(parts, ignore_index=True) for parts in (reached_at, paid))
    return Plot(
        "frontier",
        x,
        metric,
        statistic,
        splits,
        points,
        runs=runs,
        costs=costs,
        single=single_runs(points["n"], asked),
        within=within[0],
    )


def draw(panels: Panels, collection: Collection, spec: Spec) -> Entries:
    """Draw all panels on common axes."""
    order = list(collection.labels)
    keys = [key for key in order if any((plot.points["protocol"] == key).any() for _, plot in panels)]
    drawn_as = dict(zip(keys, series_styles([(key,) for key in keys], order), strict=True))
    every = pd.concat([plot.points for _, plot in panels], ignore_index=True)
    paid = np.concatenate(
        [extent(p.points["x"], _reaches(p), p.costs.to_numpy(np.float64), p.single) for _, p in panels]
    )
    axis = _cost_axis(every["x"].to_numpy(np.float64), np.concatenate(paid), spec)
    ends = np.concatenate([plot.extent for _, plot in panels])
    entries: Entries = {}
    for axes, plot in panels:
        drawn = plot.points.assign(low=plot.ends[:, 0], high=plot.ends[:, 1])
        drawn[["x_low", "x_high"]] = _reaches(plot)
        for (key,), points in series(drawn, order, []):
            look = drawn_as[key]
            _runs(axes, plot, points, axis, look)
            style = {"color": look.colour, "marker": look.marker, "elinewidth": 0.8, "capsize": 1.5}
            for line in _lines(points, plot.splits):
                shown_at = line.assign(x=axis.place(line["x"])).sort_values("x", kind="stable")
                entries[series_label(collection, (key,), (), claims=False)] = axes.errorbar(
                    shown_at["x"],
                    shown_at["mean"],
                    xerr=_reach(line.loc[shown_at.index], "x", "x_low", "x_high", axis.numbers),
                    yerr=_reach(shown_at, "mean", "low", "high", (-math.inf, math.inf)),
                    linestyle=look.line if np.isfinite(line["x"]).all() else "none",
                    **style,
                )
                if len(line) > 1 and not np.isfinite(line["x"]).all():
                    axes.plot(shown_at["x"], shown_at["mean"], color=look.colour, linestyle=look.line, linewidth=0.7)
        axis.finish(axes, "x")
        if str(spec.get("log")) in ("y", "both") and bool((every["mean"] > 0).any()):
            axes.set_yscale("log", nonpositive="clip")
            show(axes, ends[np.isfinite(ends) & (ends > 0)])
        else:
            show(axes, ends[np.isfinite(ends)])
        axes.set_xlabel(_cost_label(collection, plot.x))
        axes.set_ylabel(value_label(collection, plot.metric, plot.statistic, baseline=spec.get("baseline")))
    return entries


def _title(promise: Mapping[str, str]) -> str:
    unit, adjacency, observer = (promise.get(name, "") for name in PROMISE)
    parts = [f"{unit} protected" if unit else "", f"({adjacency})" if adjacency else ""]
    return " ".join([*filter(None, parts), *([f"against {observer}"] if observer else [])])


def _said(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list | tuple) else str(value or "")


def _costs(collection: Collection, x: str) -> Mapping[str, float]:
    """Return each run's cost on the x axis, by run: epsilon, time or messages, in total or to the target."""
    if x in EPSILONS:
        entry = {"epsilon_verified": "verified", "epsilon_claimed": "claimed"}[x]
        worst = collection.agents.groupby("run")[x].max().to_dict() if x in collection.agents else {}
        stated = {
            run: float(manifest["privacy"][entry])
            for run, manifest in collection.by_run.items()
            if manifest.get("privacy") and manifest["privacy"].get(entry) is not None
        }
        return {**worst, **stated}
    if x == PAIRS.name:
        return final_values(collection, x, "worst").set_index("run")["value"].to_dict()
    scale = time_scale(collection.index.get("time_unit"))[0] if x in ("time", "time_to_target") else 1.0
    if x == "time":
        ends = collection.trace.groupby("run")["time"].max()
        return (ends * scale).to_dict()
    table = reached(collection, None, TO_TARGET[x]) if x in TO_TARGET else final_values(collection, x, "")
    return (table.set_index("run")["value"] * scale).to_dict()


def _points(
    runs: Frame, paths: list[str], within: tuple[Range, Range], level: float | None
) -> tuple[Frame, Frame, Frame]:
    """A point per place of the grid, and the values and costs of its runs."""
    rows, values, costs = [], [], []
    for key, group in runs.groupby(paths, sort=False, dropna=False) if paths else [((), runs)]:
        y, x = (interval(group[name], of, level) for name, of in zip(("value", "x"), within, strict=True))
        row = {"x": float(x.mean), "x_low": float(x.low), "x_high": float(x.high), **y._asdict()}
        rows.append({**row, "protocol": group["protocol"].iloc[0], **dict(zip(paths, key, strict=True))})
        one = group.assign(x=0, cost=group["x"])
        values.append(by_seed([0], one))
        costs.append(by_seed([0], one, "cost"))
    return pd.DataFrame(rows), pd.concat(values, ignore_index=True), pd.concat(costs, ignore_index=True)


def _lines(points: Frame, splits: Sequence[str]) -> Iterator[Frame]:
    """Points that are joined: along the first swept parameter that the protocol depends on."""
    others = [path for path in splits if points[path].nunique(dropna=False) > 1][1:]
    yield from (group for _, group in points.groupby(others, sort=False, dropna=False)) if others else [points]


def _reach(points: Frame, middle: str, low: str, high: str, within: tuple[float, float]) -> Any:
    """Half-widths of an interval, cut off at the ends of an axis, as matplotlib wants them; None without any."""
    value = points[middle].to_numpy(np.float64)
    known = (within[0] <= value) & (value <= within[1]) & np.isfinite(points[high].to_numpy(np.float64))
    ends = (np.clip(points[end].to_numpy(np.float64), *within) for end in (low, high))
    below, above = (
        np.where(known, np.maximum(sign * (end - value), 0.0), 0.0) for sign, end in zip((-1, 1), ends, strict=True)
    )
    return np.array([below, above]) if bool(np.any(below > 0)) or bool(np.any(above > 0)) else None


def _reaches(plot: Plot) -> Any:
    """(rows, 2) ends of the intervals of costs that are drawn."""
    ends = plot.points[["x_low", "x_high"]].to_numpy(np.float64, copy=True)
    ends[plot.single] = np.nan
    return ends


def _runs(axes: Axes, plot: Plot, points: Frame, axis: BrokenAxis, look: Any) -> None:
    rows = points.index[plot.single[np.asarray(points.index)]]
    costs, values = (frame.loc[rows].to_numpy(np.float64).ravel() for frame in (plot.costs, plot.runs))
    known = np.isfinite(values) & ~np.isnan(costs)
    small = {"linestyle": "none", "markersize": 2.2, "markeredgewidth": 0, "alpha": 0.6, "zorder": 1.8}
    axes.plot(axis.place(costs[known]), values[known], marker=look.marker, color=look.colour, **small)


def _cost_label(collection: Collection, x: str) -> str:
    if x not in (*EPSILONS, PAIRS.name):
        return axis_label(collection, x)
    privacy = [manifest.get("privacy") or {} for manifest in collection.manifests]
    deltas = sorted({float(delta) for each in privacy if (delta := each.get("delta"))})
    span = " to ".join(f"{delta:.2g}" for delta in dict.fromkeys([*deltas[:1], *deltas[-1:]]))
    at = rf", $\delta$ = {span}" if span else ""
    return f"{axis_label(collection, x)}, worst {'pair' if x == PAIRS.name else 'agent'}{at}"


def _cost_axis(x: NDArray[np.float64], paid: NDArray[np.float64], spec: Spec) -> BrokenAxis:
    """The axis of costs that shows what runs paid, with a broken end for what is infinite."""
    asked = str(spec.get("log")) in ("x", "both")
    inside = paid[np.isfinite(paid) & ((paid > 0) | (not asked))]
    log = asked and len(inside) > 0
    low, high = ends_around(inside if len(inside) else np.array([0.0, 1.0]), log=log, pad=0.06)
    never = "never" if spec["x"] in TO_TARGET else "\N{INFINITY}"
    infinite = never if np.isinf(x).any() else ""
    return BrokenAxis(low, high, log=log, infinite=infinite, zero=log and bool((x <= 0).any()))
