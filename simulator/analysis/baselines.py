"""Protocols held against predictions without any learning: beside every metric stands what those come to.

A run's manifest has them under ``baselines``, by metric and name (`hushnet.simulator.metrics.criteria.trivial`);
whoever shows a metric shows them beside it, and says so where nobody beats them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..metrics import more_is_better
from ..storage.files import Frame
from .aggregate import final_values, mean_interval, resolve
from .apart import own_name
from .results import Collection

NO_BASELINES = "Runs of an older hushnet do not say what constant predictions come to, so nothing stands beside them."


def baselines(collection: Collection, metric: str) -> Frame:
    """Trivial predictions of a metric: a row per run that recorded it, a column per name, NaN where it does not say."""
    divisors = collection.kinds.ruling(metric).divisors
    there, rows = set(collection.trace.loc[collection.trace["metric"] == metric, "run"]), {}
    for run, manifest in zip(collection.runs, collection.manifests, strict=True):
        if run in there:
            known: Mapping[str, Any] = (manifest.get("baselines") or {}).get(own_name(metric)) or {}
            rows[run] = {name: float(value) / divisors.get(run, 1.0) for name, value in known.items()}
    return pd.DataFrame.from_dict(rows, orient="index", dtype=np.float64)


def with_baselines(collection: Collection) -> list[str]:
    """Recorded metrics that have trivial predictions beside them."""
    named = {name for manifest in collection.manifests for name in manifest.get("baselines") or {}}
    return [metric for metric in collection.kinds.metrics if own_name(metric) in named]


def best_trivial(collection: Collection, metric: str) -> tuple[str, Any]:
    """The best trivial prediction of a metric, by its mean over runs: name, and values by run; none where none is."""
    table = baselines(collection, metric).dropna(axis="columns", how="all")
    if table.empty:
        return "", pd.Series(dtype=np.float64)
    means = table.mean()
    name = str(means.idxmax() if more_is_better(metric) else means.idxmin())
    return name, table[name]


def unbeaten(collection: Collection) -> list[tuple[str, bool]]:
    """Sentences about who does not beat trivial predictions, each with whether nobody does.

    A protocol beats one at a grid point if the whole 95 % interval of its lead over the same runs is above 0.
    """
    if not any(manifest.get("baselines") for manifest in collection.manifests):
        return [(NO_BASELINES, False)]
    return [said for metric in with_baselines(collection) for said in _unbeaten(collection, metric)]


def _unbeaten(collection: Collection, metric: str) -> Iterator[tuple[str, bool]]:
    name, theirs = best_trivial(collection, metric)
    leads = [_leads(values, theirs, metric) for values in _by_place(collection, metric)]
    leads = [found for found in leads if found]
    what = f"{metric} gap" if own_name(metric) == "objective" else metric
    constant = f"{name}, {what} {theirs.mean():.4g}" if name else ""

    def sentence(who: str, behind: list[bool]) -> str:
        where = "" if len(behind) == len(leads) else f" at {len(behind)} of {len(leads)} points of the sweep"
        beyond = " beyond the spread over seeds" if not all(behind) else ""
        return f"{who} a trivial prediction{beyond}{where}: {constant}."

    everybody = _measured(collection, own_name(metric)) <= {key for found in leads for key in found}
    nobody = [found for found in leads if not any(low > 0 for _, low in found.values())] if everybody else []
    if nobody:
        yield sentence("Nobody beats", [all(mean <= 0 for mean, _ in found.values()) for found in nobody]), True
    if len(nobody) < len(leads):
        for key, label in collection.labels.items():
            own = [found[key] for found in leads if key in found]
            behind = [mean <= 0 for mean, low in own if not low > 0]
            if behind:
                yield sentence(f"{label} does not beat", behind), False


def _measured(collection: Collection, own: str) -> set[str]:
    """Keys of the protocols with a metric of this name, of whichever kind: one kind speaks for nobody of another."""
    metrics = {metric for metric in with_baselines(collection) if own_name(metric) == own}
    rows = collection.trace[collection.trace["metric"].isin(metrics)]
    return set(map(str, rows["protocol"].unique()))


def _leads(values: Frame, theirs: Any, metric: str) -> dict[str, tuple[float, float]]:
    """Mean lead over a trivial prediction and the lower end of its 95 % interval, by protocol."""
    found = {}
    for key, runs in values[values["run"].isin(theirs.index)].groupby("protocol", sort=False):
        lead = runs["value"].to_numpy(np.float64) - theirs[runs["run"]].to_numpy(np.float64)
        mean, half, n = mean_interval(lead if more_is_better(metric) else -lead)
        if n:
            # Means that differ by rounding do not differ.
            size = 1e-12 * max(1.0, abs(float(theirs.mean())))
            found[str(key)] = float(mean) - size, float(mean) - size - (float(half) if n > 1 else 0.0)
    return found


def _by_place(collection: Collection, metric: str) -> Iterator[Frame]:
    values = final_values(collection, *resolve(collection, metric))
    if not collection.grid:
        yield values
        return
    for _, rows in values.groupby(collection.grid, sort=False, dropna=False):
        yield rows
