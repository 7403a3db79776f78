"""Protocols held against predictions without any learning: beside every metric stands what those come to.

A run's manifest has them under ``baselines``, by metric and name
(`hushnet.simulator.metrics.criterion_metrics.trivial`); whoever shows a metric shows them beside it, and says so where
nobody beats them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..metrics import more_is_better
from ..storage.files import Frame
from .aggregate import FEWEST, final_values, mean_interval, resolve
from .apart import own_name
from .results import Collection


def baselines(collection: Collection, metric: str) -> Frame:
    """Trivial predictions of a metric: a row per run that recorded it, a column per name, NaN where it does not say."""
    divisors = collection.kinds.ruling(metric).divisors
    there, rows = set(collection.trace.loc[collection.trace["metric"] == metric, "run"]), {}
    for run, manifest in collection.by_run.items():
        if run in there:
            known: Mapping[str, Any] = (manifest.get("baselines") or {}).get(own_name(metric)) or {}
            rows[run] = {name: float(value) / divisors.get(run, 1.0) for name, value in known.items()}
    return pd.DataFrame.from_dict(rows, orient="index", dtype=np.float64)


def with_baselines(collection: Collection) -> list[str]:
    """Recorded metrics that have trivial predictions beside them."""
    named = {name for manifest in collection.manifests for name in manifest.get("baselines") or {}}
    return [metric for metric in collection.kinds.metrics if own_name(metric) in named]


def measure_of(metric: str) -> str:
    """Name of the number that measures a trivial prediction of a metric: of an objective it is the gap."""
    return f"{metric} gap" if own_name(metric) == "objective" else metric


def best_trivial(table: Frame, metric: str) -> tuple[str, Any]:
    """The best of some runs' trivial predictions, by its mean: name, and values by run; none where none is."""
    table = table.dropna(axis="columns", how="all")
    if table.empty:
        return "", pd.Series(dtype=np.float64)
    means = table.mean()
    name = str(means.idxmax() if more_is_better(metric) else means.idxmin())
    return name, table[name]


def axes_that_matter(collection: Collection, tables: Iterable[Any]) -> list[str]:
    """Swept parameters along which some trivial prediction (values by run) changes at the same seed."""
    places, known = _places(collection), list(tables)
    return [axis for axis in collection.grid if any(_changes(values, places, axis) for values in known)]


def at_places(collection: Collection, axes: list[str]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Runs by their values of some swept parameters."""
    places = _places(collection)
    if not axes:
        yield {}, list(places.index)
        return
    for values, rows in places.groupby(axes, sort=False, dropna=False):
        yield dict(zip(axes, values, strict=True)), list(rows.index)


def _places(collection: Collection) -> Frame:
    """Seed and swept parameters by run."""
    seeds = [manifest["seed"] for manifest in collection.manifests]
    return collection.places.set_index("run").drop(columns="protocol").assign(seed=seeds)


def _changes(values: Any, places: Frame, axis: str) -> bool:
    known = values.dropna()
    others = [name for name in places.columns if name != axis]
    by = known.groupby([places.loc[known.index, name] for name in others], dropna=False)
    return bool((by.max() - by.min() > 1e-12 * np.maximum(1.0, by.max().abs())).any())


def unbeaten(collection: Collection) -> list[tuple[str, bool]]:
    """Sentences about who does not beat trivial predictions, each with whether nobody does.

    A protocol beats the best one of its grid point if the whole 95 % interval of its lead, over the same runs, is
    above 0; of fewer than three runs, if the mean is.
    """
    found: dict[tuple[str, bool], list[str]] = {}
    for metric in with_baselines(collection):
        for who, prediction, nobody in _unbeaten(collection, metric):
            found.setdefault((who, nobody), []).append(prediction)
    return [(f"{who}: {'; '.join(predictions)}.", nobody) for (who, nobody), predictions in found.items()]


def _unbeaten(collection: Collection, metric: str) -> Iterator[tuple[str, str, bool]]:
    """Who does not beat trivial predictions of a metric, which ones, and whether nobody does."""
    table, points = baselines(collection, metric), []
    for values in _by_place(collection, metric):
        name, theirs = best_trivial(table[table.index.isin(values["run"])], metric)
        leads = _leads(values, theirs, metric)
        if leads:
            points.append(_Point(name, float(theirs.mean()), leads))
    what = measure_of(metric)

    def said(who: str, behind: list[tuple[_Point, bool]]) -> tuple[str, str]:
        where = "" if len(behind) == len(points) else f" at {len(behind)} of {len(points)} points of the sweep"
        beyond = " beyond the spread over seeds" if not all(below for _, below in behind) else ""
        names = " or ".join(dict.fromkeys(point.name for point, _ in behind))
        ends = [f"{end(point.value for point, _ in behind):.4g}" for end in (min, max)]
        return f"{who} a trivial prediction{beyond}{where}", f"{names}, {what} {' to '.join(dict.fromkeys(ends))}"

    everybody = _measured(collection, own_name(metric)) <= {key for point in points for key in point.leads}
    nobody = [point for point in points if not any(low > 0 for _, low in point.leads.values())] if everybody else []
    if nobody:
        behind = [(point, all(mean <= 0 for mean, _ in point.leads.values())) for point in nobody]
        yield *said("Nobody beats", behind), True
    if len(nobody) < len(points):
        for key, label in collection.labels.items():
            own = [(point, *point.leads[key]) for point in points if key in point.leads]
            behind = [(point, mean <= 0) for point, mean, low in own if not low > 0]
            if behind:
                yield *said(f"{label} does not beat", behind), False


def _measured(collection: Collection, own: str) -> set[str]:
    """Keys of the protocols with a metric of this name, of whichever kind: one kind speaks for nobody of another."""
    metrics = {metric for metric in with_baselines(collection) if own_name(metric) == own}
    rows = collection.trace[collection.trace["metric"].isin(metrics)]
    return set(map(str, rows["protocol"].unique()))


@dataclass(frozen=True)
class _Point:
    """The best trivial prediction of a grid point, its mean over runs, and lead and lower end by protocol."""

    name: str
    value: float
    leads: Mapping[str, tuple[float, float]]


def _leads(values: Frame, theirs: Any, metric: str) -> dict[str, tuple[float, float]]:
    """Mean lead over a trivial prediction and the lower end of its 95 % interval, by protocol."""
    found = {}
    for key, runs in values[values["run"].isin(theirs.index)].groupby("protocol", sort=False):
        lead = runs["value"].to_numpy(np.float64) - theirs[runs["run"]].to_numpy(np.float64)
        mean, half, n = mean_interval(lead if more_is_better(metric) else -lead)
        if n:
            # Means that differ by rounding do not differ.
            size = 1e-12 * max(1.0, abs(float(theirs.mean())))
            found[str(key)] = float(mean) - size, float(mean) - size - (float(half) if n >= FEWEST else 0.0)
    return found


def _by_place(collection: Collection, metric: str) -> Iterator[Frame]:
    values = final_values(collection, *resolve(collection, metric))
    if not collection.grid:
        yield values
        return
    for _, rows in values.groupby(collection.grid, sort=False, dropna=False):
        yield rows
