"""Targets of runs: the place on an axis where a run meets one, and the area under its curve on the way.

A target is a mapping: ``{metric: objective, share: 0.9}`` asks that the objective's gap to its optimum has shrunk by
this share of its value at the start; ``{metric: accuracy, level: 0.85}`` asks that a metric meets a level;
``{metric: accuracy, share: 0.9, of: optimum}`` that the accuracy meets this share of what a protocol, here the one with
the key ``optimum``, ends with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...agents.errors import InputError
from ..language.target_parameters import share_of
from ..metrics import more_is_better
from ..metrics.metric import names_of
from ..storage.files import Frame
from .aggregate import CURVE_AXES, curves, power_near, resolve
from .comparability import Incomparable
from .labels import plain_name
from .results import Collection

DEFAULT: Mapping[str, Any] = {"metric": "objective", "share": 0.9}
"""What counts as reached where a scenario does not say."""


def target_of(collection: Collection, target: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """The given target, else the one of the scenario, else `DEFAULT`."""
    return target or collection.index.get("target") or DEFAULT


def describe(target: Mapping[str, Any]) -> str:
    """A target in words, for captions."""
    if target.get("level") is not None:
        sign = {True: "at least ", False: "at most ", None: ""}[more_is_better(str(target["metric"]))]
        return f"{plain_name(str(target['metric']))} {sign}{target['level']:g}"
    if share_of(str(target["metric"])) == "end":
        of = target.get("of")
        if isinstance(of, Mapping):
            of = ", ".join(f"{other} (for {key})" for key, other in of.items())
        return f"{target['share']:.4g} of the last {target['metric']}{f' of {of}' if of else ''}"
    return f"objective gap down to {1 - target['share']:.4g} of its start"


def reached(collection: Collection, target: Mapping[str, Any] | None, x: str) -> Frame:
    """Return the place on an axis at which every run first meets a target, a row per run.

    Raises `InputError` if the axis, the metric or the statistic was not recorded, the target is none, or protocols'
    numbers of its metric are not of one kind (`hushnet.simulator.analysis.comparability`).

    The target has ``metric`` with ``share`` in (0, 1), for objective and accuracy only, or with ``level``; optionally
    ``statistic``, and with a share of the accuracy ``of``, the key of a protocol or a mapping from protocols to
    protocols. None takes the scenario's, else `DEFAULT`. The axis is time (in expected wake-ups), activations,
    messages, vectors, bytes or updates, or messages or vectors ``_with_start``, which counts what was exchanged before
    the start as well.

    Columns are ``run, protocol, seed, value, after`` and the swept parameters. The value is the place of the first
    record that meets the target, infinite if none does, and NaN for a run in which the metric was not recorded, or
    which a limit has stopped, or which is held against one that did not reach its end. A run that broke off by itself
    counts up to its end. Nothing is interpolated: the target was met at most there and after the place ``after`` of the
    record before, which is the same place if there is none.

    Where all protocols are measured by the objective of one of them (``record.objective_of``), the level that a share
    asks for is that of this protocol's start with the same seed at the same grid point, so that it is the same for all;
    otherwise a run is compared with its own start. A share of the accuracy is compared with the final accuracy of the
    protocol that ``of`` names, with the same seed at the same grid point. A custom metric has to rise to the level
    where it starts below it, else to fall.
    """
    target = target_of(collection, target)
    places, level = _met(collection, target, x)
    found = per_run(collection)
    unknown = pd.Series(np.where(found["run"].isin(level.dropna().index), np.inf, np.nan), index=found.index)
    columns = {"value": "x", "after": "after"}
    there = found["run"].isin(places.index)
    return found.assign(**{name: found["run"].map(places[own]).where(there, unknown) for name, own in columns.items()})


def _met(collection: Collection, target: Mapping[str, Any], x: str) -> tuple[Frame, Any]:
    """The first row of every run that meets a target, with the place of the one before, and the levels."""
    metric, statistic = _meaning(collection, target)
    _check_kind(collection, target, metric)
    rows = _curves(collection, metric, statistic, x)
    first = rows.drop_duplicates("run").set_index("run")["value"]
    level = _levels(collection, target, rows)
    more = more_is_better(metric)
    rising = first < level if more is None else pd.Series(more, index=first.index)
    levels, up = rows["run"].map(level), rows["run"].map(rising)
    rows = rows.assign(after=rows.groupby("run", sort=False)["x"].shift().fillna(rows["x"]))
    met = rows[np.where(up, rows["value"] >= levels, rows["value"] <= levels)]
    return met.drop_duplicates("run").set_index("run"), level


def levels(collection: Collection, target: Mapping[str, Any] | None = None) -> Any:
    """The level that a target asks of every run, by run id; NaN where the run that it is held against did not end.

    Raises `InputError` if the metric or the statistic was not recorded, or the target is none.
    """
    target = target_of(collection, target)
    return _levels(collection, target, _curves(collection, *_meaning(collection, target), "time"))


def _levels(collection: Collection, target: Mapping[str, Any], rows: Frame) -> Any:
    """The same of a metric's rows (``run, value``, in order of time)."""
    first = rows.drop_duplicates("run").set_index("run")["value"]
    if target.get("level") is not None:
        return pd.Series(float(target["level"]), index=first.index)
    if share_of(str(target["metric"])) == "gap":
        return _common_starts(collection, first) * round(1 - target["share"], 12)  # 0.1, not 0.09999999999999998
    return target["share"] * _ends(collection, target.get("of"), rows).reindex(first.index)


def area(collection: Collection, metric: str, statistic: str | None = None) -> Frame:
    """Mean height of every run's curve over time: the area under it divided by its length, by the trapezoid rule.

    It is over the time that all finished runs of a grid point cover, whatever their protocol and seed. Columns are
    ``run, protocol, seed, value`` and the swept parameters; the value is NaN for a run that broke off or in which the
    metric was not recorded. Raises `InputError` if no run recorded the metric or the statistic.
    """
    rows = _curves(collection, *resolve(collection, metric, statistic), "time")
    rows = rows[rows["run"].isin(collection.complete)]
    paths = {run: (g["x"].to_numpy(np.float64), g["value"].to_numpy(np.float64)) for run, g in rows.groupby("run")}
    found = per_run(collection)
    heights: dict[str, float] = {}
    points = found.groupby(collection.grid, sort=False, dropna=False) if collection.grid else [((), found)]
    for _, group in points:
        here = {run: paths[run] for run in group["run"] if run in paths}
        moving = [places for places, _ in here.values() if places[-1] > places[0]]
        low = max((places[0] for places in moving), default=0.0)
        high = min((places[-1] for places in moving), default=0.0)
        heights |= {run: _mean_height(*path, low, high) for run, path in here.items()}
    return found.assign(value=found["run"].map(heights).astype(np.float64))


def per_run(collection: Collection) -> Frame:
    """One row per run: ``run, protocol, seed`` and the swept parameters."""
    seeds = [manifest["seed"] for manifest in collection.manifests]
    return collection.places.assign(seed=seeds)[["run", "protocol", "seed", *collection.grid]]


def _meaning(collection: Collection, target: Mapping[str, Any]) -> tuple[str, str]:
    metric, share, level = str(target.get("metric")), target.get("share"), target.get("level")
    if (share is None) == (level is None):
        raise InputError("target: give a metric with either a share or a level", field=("target",))
    if share is not None and not (share_of(metric) and 0 < share < 1):
        shared = " or ".join(names_of(lambda metric: metric.share))
        said = f"share: must be above 0 and below 1, of {shared}; give a level for any other metric"
        raise InputError(f"target: {said}", field=("target", "share"))
    wanted = "gap" if share is not None and share_of(metric) == "gap" else target.get("statistic")
    return resolve(collection, metric, wanted)


def _check_kind(collection: Collection, target: Mapping[str, Any], metric: str) -> None:
    """Refuse a target whose metric measures other things in other protocols, or a level for several scales."""
    collection.kinds.check(metric)
    ruling = collection.kinds.ruling(metric)
    if ruling.divisors and target.get("level") is not None:
        raise Incomparable(f"target: level {target['level']:g} would be one for several scales; {ruling.normalised[0]}")


def _curves(collection: Collection, metric: str, statistic: str, x: str) -> Frame:
    if x not in CURVE_AXES:
        raise InputError(f"target: {x!r} is no axis of a run; it must be one of {', '.join(CURVE_AXES)}")
    return curves(collection, metric, statistic, x)


def _common_starts(collection: Collection, first: Any) -> Any:
    """Value at the start against which every run's gap is measured, by run."""
    measuring = {
        run
        for run, manifest in collection.by_run.items()
        if (manifest["scenario"].get("record") or {}).get("objective_of") == manifest["protocol"]
    }
    table = per_run(collection)
    places = zip(table["run"], table[["seed", *collection.grid]].itertuples(index=False, name=None), strict=True)
    at = {run: place for run, place in places if run in first.index}
    owner = {place: run for run, place in at.items() if run in measuring}
    return pd.Series({run: first[owner.get(place, run)] for run, place in at.items()}, dtype=np.float64)


def _ends(collection: Collection, of: str | Mapping[str, str] | None, rows: Frame) -> Any:
    """The last value of the finished run that every run is held against, by run."""
    last = rows[rows["run"].isin(collection.complete)].groupby("run", sort=False)["value"].last()
    table = per_run(collection)
    table["end"] = table["run"].map(last).astype(np.float64)
    held: dict[str, float] = {}
    for key, runs in table.groupby("protocol", sort=False):
        other = of if isinstance(of, str) else (of or {}).get(str(key), key)
        theirs = table[table["protocol"] == other]
        # What was swept of one protocol alone is no place of another's runs.
        at = ["seed", *(path for path in collection.grid if theirs[path].notna().any())]
        paired = runs[["run", *at]].merge(theirs[[*at, "end"]], on=at, how="left")
        held |= dict(zip(paired["run"], paired["end"], strict=True))
    return pd.Series(held, dtype=np.float64)


def _mean_height(places: NDArray[np.float64], values: NDArray[np.float64], low: float, high: float) -> float:
    if not places[-1] > places[0]:
        return float(values[-1])
    if not high > low:
        return np.nan
    inside = (places > low) & (places < high)
    ends = np.interp([low, high], places, values)
    axis = np.concatenate([[low], places[inside], [high]])
    heights = np.concatenate([ends[:1], values[inside], ends[1:]])
    unit = power_near(heights)
    return float(np.ldexp(np.trapezoid(np.ldexp(heights, -unit), axis) / (high - low), unit))
