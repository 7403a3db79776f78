"""The numbers of a figure: means and t intervals over runs, at the places where they are drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.errors import InputError
from ..aggregate import final_values, resolve, time_scale, unknown, wins
from ..language.figure_parameters import TO_TARGET
from ..language.target_parameters import more_is_better
from ..results import Collection
from ..storage.files import Frame
from ..targets import reached

Spec = Mapping[str, Any]
"""A figure as the scenario describes it; see `hushnet.simulator.language.figure_parameters.Figure`."""


@dataclass(frozen=True)
class Plot:
    """The numbers of one panel.

    Parameters
    ----------
    kind : str
        How it is drawn.
    x, metric, statistic : str
        What the axes show; the statistic is empty for counts and for means over agents.
    splits : list of str
        Swept parameters that divide a protocol's runs into several series.
    points : DataFrame
        What is drawn. Of curves, sweeps, samples and bars the columns ``x, protocol, mean, low, high, n`` and one per
        split; ``n`` counts the runs behind a point, and low and high are NaN where there are fewer than two. Where y is
        what it took to the target, ``reached`` counts the runs that got there.
    panel : str
        Title of the panel; empty where there is only one.
    note : str
        What the legend says about the marks, where that is not means over runs.
    """

    kind: str
    x: str
    metric: str
    statistic: str
    splits: list[str]
    points: Frame
    panel: str = ""
    note: str = ""


def select(collection: Collection, at: Mapping[str, Any]) -> Collection:
    """The runs at some places of the grid.

    Parameters
    ----------
    collection : Collection
    at : mapping
        Value by name of the sweep.

    Raises
    ------
    InputError
        If a name was not swept, or nothing was run at its value.
    """
    if not at:
        return collection
    places = collection.places
    for name, value in at.items():
        path = swept(collection, name, field="at")
        if not (places[path] == value).any():
            known = ", ".join(dict.fromkeys(map(str, collection.places[path].dropna())))
            raise InputError(
                f"figures: at {path} has no value {value!r}; it must be one of {known}", field=("figures",)
            )
        places = places[places[path] == value]
    return subset(collection, set(places["run"]))


def subset(collection: Collection, runs: set[str]) -> Collection:
    """Some of the runs of a collection."""
    kept = [(run, m) for run, m in zip(collection.runs, collection.manifests, strict=True) if run in runs]
    return replace(
        collection,
        trace=collection.trace[collection.trace["run"].isin(runs)],
        agents=collection.agents[collection.agents["run"].isin(runs)],
        runs=[run for run, _ in kept],
        manifests=[manifest for _, manifest in kept],
    )


def chosen(collection: Collection, spec: Spec) -> list[str]:
    """Keys of the protocols that a figure shows, in drawing order."""
    known, labelled = list(collection.labels), collection.index.get("labels") or {}
    wanted = spec.get("protocols") or known
    for name in wanted:
        if name not in known and name not in labelled:
            raise InputError(f"figures: protocol {name!r} is not in the results{unknown(name, known)}")
    return [name for name in known if name in wanted]


def swept(collection: Collection, name: str, *, field: str = "x", others: tuple[str, ...] = ()) -> str:
    """The swept parameter of a name, which may be the end of its path."""
    found = [path for path in collection.grid if path == name or path.endswith(f".{name}")]
    if len(found) == 1 or name in found:
        return name if name in found else found[0]
    admissible = unknown(name, [*others, *collection.grid])
    raise InputError(f"figures: {field} {name!r} is no axis of these results{admissible}", field=("figures",))


def level_of(interval: Any) -> float | None:
    """Coverage of the intervals, in (0, 1); None where none are asked for."""
    if interval in (None, "none", False):
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", str(interval))
    if match is None or not 0 < float(match[1]) < 100:
        raise InputError(f"figures: interval {interval!r} must be '95%' or 'none'", field=("figures",))
    return float(match[1]) / 100


def finals(collection: Collection, spec: Spec) -> tuple[str, str, Frame]:
    """One value per run that reached its end: what it ended with, what it took to the target, or either's difference.

    Returns
    -------
    metric, statistic : str
    values : DataFrame
        ``run, protocol, seed, value`` and the swept parameters. With a baseline, the difference from the run of the
        baseline that met the same luck, or whether it wins against that; runs without one are left out, and the
        baseline is.
    """
    y = str(spec["y"])
    if y in TO_TARGET:
        axis = y.removesuffix("_to_target")
        metric, statistic, values = y, "", reached(collection, None, axis)
        if axis == "time":
            values = values.assign(value=values["value"] * time_scale(collection.index.get("time_unit"))[0])
        values = values[values["run"].isin(collection.complete)]
    else:
        metric, statistic = resolve(collection, y, spec.get("statistic") or None)
        values = final_values(collection, metric, statistic)
    values = values.assign(seed=values["run"].map(seeds_of(collection)))
    if spec.get("baseline") is not None:
        values = with_baseline(collection, values, spec, ["seed", *collection.grid])
        if spec.get("wins"):
            more = metric not in TO_TARGET and bool(more_is_better(metric))
            values = values.assign(value=wins(values["value"], values["base"], more_is_better=more))
        else:
            values = minus_baseline(values)
    return metric, statistic, values


def with_baseline(collection: Collection, values: Frame, spec: Spec, keys: list[str]) -> Frame:
    """Values with the baseline's of equal keys as ``base``; rows without one are left out, and the baseline is."""
    baseline = str(spec["baseline"])
    if baseline not in collection.labels:
        complaint = f"figures: baseline {baseline!r} is not in the results{unknown(baseline, collection.labels)}"
        raise InputError(complaint, field=("figures",))
    theirs = values.loc[values["protocol"] == baseline, [*keys, "value"]].rename(columns={"value": "base"})
    mine = values[values["protocol"] != baseline]
    return mine.merge(theirs, on=keys, how="inner", sort=False)


def minus_baseline(paired: Frame) -> Frame:
    """Values less those of the baseline that `with_baseline` found."""
    with np.errstate(invalid="ignore"):
        return paired.assign(value=paired["value"] - paired["base"]).drop(columns="base")


def seeds_of(collection: Collection) -> dict[str, int]:
    """Seed of every run."""
    return {run: m["seed"] for run, m in zip(collection.runs, collection.manifests, strict=True)}


def around(mean: Any, half: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends of an interval."""
    with np.errstate(invalid="ignore"):
        return mean - half, mean + half


def require_points(points: Frame, what: str, protocols: list[str]) -> None:
    """Raise an `InputError` where there is nothing to draw."""
    if points.empty:
        sentence = f"figures: no finished run of {', '.join(protocols)} recorded {what}, so there is nothing to draw"
        raise InputError(sentence, field=("figures",))
