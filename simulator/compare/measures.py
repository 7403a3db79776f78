"""What runs are compared by: final values, places of the target, mean heights and epsilon, one value per run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..aggregate import final_values, resolve
from ..language.figure_parameters import TO_TARGET
from ..language.target_parameters import more_is_better
from ..results import Collection
from ..summary import ASIDE
from ..targets import area, describe, reached, target_of

AXES_TO_TARGET = ("time_to_target", "vectors_to_target", "bytes_to_target")


@dataclass(frozen=True)
class Measure:
    """One number per run.

    Parameters
    ----------
    name : str
        Short and stable, for CSV.
    title : str
        For tables.
    more_is_better : bool or None
        None where nobody knows.
    values : Series
        By run id; infinite where something never happened, NaN or absent where it is not known.
    """

    name: str
    title: str
    more_is_better: bool | None
    values: Any


def measures(collection: Collection) -> list[Measure]:
    """Everything that the runs of an experiment are compared by, in the order of tables."""
    recorded = [str(name) for name in collection.trace["metric"].unique() if name not in ASIDE]
    means = [_mean_height(collection, name) for name in recorded]
    finals = [_final(collection, name) for name in recorded]
    return [*finals, *_to_target(collection, recorded), *means, *_epsilon(collection)]


def _final(collection: Collection, name: str) -> Measure:
    metric, statistic = resolve(collection, name)
    values = final_values(collection, metric, statistic).set_index("run")["value"]
    return Measure(_named(metric, statistic), f"final {_named(metric, statistic)}", more_is_better(metric), values)


def _mean_height(collection: Collection, name: str) -> Measure:
    metric, statistic = resolve(collection, name)
    values = area(collection, metric, statistic).set_index("run")["value"]
    what = _named(metric, statistic)
    return Measure(f"area of {what}", f"{what}, mean over time", more_is_better(metric), values)


def _to_target(collection: Collection, recorded: list[str]) -> Iterator[Measure]:
    target = target_of(collection)
    if target["metric"] not in recorded and not collection.index.get("target"):
        return
    for name in AXES_TO_TARGET:
        values = reached(collection, target, TO_TARGET[name]).set_index("run")["value"]
        yield Measure(name, f"{TO_TARGET[name]} to {describe(target)}", False, values)


def _epsilon(collection: Collection) -> Iterator[Measure]:
    """Verified epsilon of the worst agent, among private runs."""
    pairs = zip(collection.runs, collection.manifests, strict=True)
    found = {run: (manifest.get("privacy") or {}).get("verified") for run, manifest in pairs}
    values = pd.Series({run: np.nan if value is None else float(value) for run, value in found.items()})
    if values.notna().any():
        yield Measure("epsilon", "verified epsilon, worst agent", False, values)


def _named(metric: str, statistic: str) -> str:
    return f"{metric} {statistic}" if statistic in ("gap", "worst") else metric
