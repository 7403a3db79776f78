"""Measures that runs are compared by, one value per run: final values, target crossings, mean heights, epsilon."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..analysis.aggregate import final_values, resolve, time_scale
from ..analysis.claimed_privacy import replayed_elsewhere
from ..analysis.labels import column_name
from ..analysis.results import Collection
from ..analysis.summary import column_of
from ..analysis.targets import area, describe, reached, target_of
from ..metrics import more_is_better
from ..metrics.costs import TO_TARGET
from ..metrics.metric import of_learning

AXES_TO_TARGET = ("time_to_target", "vectors_to_target", "vectors_with_start_to_target", "bytes_to_target")

START = "vectors_with_start"
NAMES = {START: "vectors, with those before the start,"}
"""What axes are called whose name is no word."""


@dataclass(frozen=True)
class Measure:
    """One number per run."""

    name: str
    """Short and stable, for CSV."""
    title: str
    """For tables."""
    more_is_better: bool | None
    """None where nobody knows."""
    values: Any
    """By run id; infinite where something never happened, NaN or absent where it is not known."""
    metric: str = ""
    """What was recorded that it is made of, if it is made of one metric."""
    after: Any = None
    """By run id, where values are places of records: what is measured happened after this place, and at most at the
    value."""


def measures(collection: Collection) -> list[Measure]:
    """Everything that the runs of an experiment are compared by, in the order of tables."""
    recorded = of_learning(map(str, collection.trace["metric"].unique()))
    means = [_mean_height(collection, name) for name in recorded]
    finals = [_final(collection, name) for name in recorded]
    return [*finals, *_to_target(collection, recorded), *means, *_sent(collection), *_epsilon(collection)]


def _final(collection: Collection, name: str) -> Measure:
    metric, statistic = resolve(collection, name)
    values = final_values(collection, metric, statistic).set_index("run")["value"]
    shown = column_name(collection, metric, statistic)
    return Measure(column_of(metric, statistic), f"final {shown}", more_is_better(metric), values, metric)


def _mean_height(collection: Collection, name: str) -> Measure:
    metric, statistic = resolve(collection, name)
    values = area(collection, metric, statistic).set_index("run")["value"]
    shown, what = column_name(collection, metric, statistic), column_of(metric, statistic)
    return Measure(f"area of {what}", f"{shown}, mean over time", more_is_better(metric), values, metric)


def _to_target(collection: Collection, recorded: list[str]) -> Iterator[Measure]:
    target = target_of(collection)
    by_default = not collection.index.get("target")
    if by_default and (target["metric"] not in recorded or "gap" not in set(collection.trace["statistic"])):
        return
    started = collection.started_with_vectors
    for name in AXES_TO_TARGET:
        axis = TO_TARGET[name]
        if axis == START and not started:
            continue
        without = ", those before the start not counted" if started and axis in ("vectors", "bytes") else ""
        found = reached(collection, target, axis).set_index("run")
        title = f"{NAMES.get(axis, axis)} to {describe(target)}{without}"
        if axis == "time" and (length := collection.index.get("time_unit")):
            factor, unit = time_scale(length)
            found[["value", "after"]] *= factor
            title += f" ({unit})"
        yield Measure(name, title, False, found["value"], str(target["metric"]), found["after"])


def _sent(collection: Collection) -> Iterator[Measure]:
    if collection.started_with_vectors:
        for axis, words in (("vectors", "those before the start not counted"), (START, "with those before the start")):
            values = final_values(collection, axis, "").set_index("run")["value"]
            yield Measure(axis, f"vectors sent, {words}", None, values)


def _epsilon(collection: Collection) -> Iterator[Measure]:
    """Verified epsilon of the worst agent, among private runs; none where the protocol was not replayed."""
    runs = collection.by_run.items()
    known = {run: {} if replayed_elsewhere(manifest) else manifest.get("privacy") or {} for run, manifest in runs}
    found = {run: privacy.get("verified") for run, privacy in known.items()}
    values = pd.Series({run: np.nan if value is None else float(value) for run, value in found.items()})
    if values.notna().any():
        yield Measure("epsilon", "verified epsilon, worst agent", False, values, "epsilon_verified")
