"""Runs to the numbers of a figure or table: means and t intervals over runs, on a common axis.

An interval treats the runs of a series as independent, so it describes what changes between seeds and nothing else.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..agents.errors import InputError
from .results import Collection
from .storage import Frame

COUNTS = ("activations", "messages", "vectors", "bytes")
CURVE_AXES = ("time", *COUNTS, "updates")
PREFERRED = ("gap", "value", "mean", "worst")
"""Statistics of a metric that stand for it where the one asked for, or none, is recorded."""

ALIASES = {"gap": "objective", "epsilon": "epsilon_tight"}
POINTS = 400
"""Points of a curve whose runs were recorded at different places."""

BINS = 6
"""Bins of agents by the size of their data."""


@dataclass(frozen=True)
class Plot:
    """The numbers of one figure.

    Parameters
    ----------
    kind : {"curve", "sweep", "samples", "bars"}
    x, metric, statistic : str
        What the axes show; the statistic is empty for counts and for means over agents.
    splits : list of str
        Swept parameters that divide a protocol's runs into several series.
    points : DataFrame
        Columns ``x, protocol, mean, low, high, n`` and one per split; ``n`` counts the runs behind a point, and low and
        high are NaN where there are fewer than two.
    """

    kind: Literal["curve", "sweep", "samples", "bars"]
    x: str
    metric: str
    statistic: str
    splits: list[str]
    points: Frame


def mean_interval(values: ArrayLike, level: float = 0.95) -> tuple[Any, Any, Any]:
    """Mean, half-width of the two-sided Student t interval, and number of runs, along the first axis.

    Parameters
    ----------
    values : (n,) or (n, k) array_like
        NaN marks a run that does not count.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    mean, half_width, n : scalars or (k,) arrays
        The half-width is NaN where n < 2, the mean where n = 0.
    """
    table = np.asarray(values, dtype=np.float64)
    n = np.sum(~np.isnan(table), axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.nansum(table, axis=0) / n
        deviation = np.sqrt(np.nansum((table - mean) ** 2, axis=0) / (n - 1))
        half = stats.t.ppf(0.5 + level / 2, n - 1) * deviation / np.sqrt(n)
    return mean, np.where(np.isfinite(mean) & (n > 1), half, np.nan)[()], n


def resolve(collection: Collection, y: str, statistic: str | None = None) -> tuple[str, str]:
    """Metric and statistic that a name stands for in the recorded trace.

    Raises
    ------
    InputError
        If nothing of this name was recorded.
    """
    if y in COUNTS:
        return y, ""
    recorded = collection.trace[["metric", "statistic"]].drop_duplicates()
    metrics = set(recorded["metric"])
    metric = y if y in metrics else ALIASES.get(y, y)
    if y == "epsilon" and metric not in metrics:
        metric = "epsilon_claimed"
    if metric not in metrics:
        raise InputError(f"figures: y {y!r} was not recorded{_admissible(y, [*metrics, *COUNTS])}", field=("figures",))
    known = list(recorded.loc[recorded["metric"] == metric, "statistic"])
    wanted = "gap" if y == "gap" else statistic
    if wanted in known:
        return metric, str(wanted)
    if wanted not in (None, "mean"):
        complaint = f"figures: statistic {wanted!r} of {metric} was not recorded{_admissible(str(wanted), known)}"
        raise InputError(complaint, field=("figures",))
    return metric, next((name for name in PREFERRED if name in known), known[0])


def final_values(collection: Collection, metric: str, statistic: str) -> Frame:
    """Last recorded value of every run that reached its end: columns ``run, protocol, value`` and the grid."""
    rows = _rows(collection, metric, statistic)
    rows = rows[rows["run"].isin(collection.complete)]
    return rows.drop_duplicates("run", keep="last")[["run", "protocol", *collection.grid, "value"]]


def plot(collection: Collection, spec: dict[str, Any]) -> Plot:
    """The numbers of the figure that a specification asks for.

    Parameters
    ----------
    collection : Collection
    spec : dict
        ``y``, ``x`` and optionally ``statistic``, ``interval`` ("95%" or "none") and ``protocols`` (a list of keys).

    Raises
    ------
    InputError
        If x, y, the statistic or a protocol does not exist in the results.
    """
    x, statistic = str(spec["x"]), spec.get("statistic")
    chosen = _chosen(collection, spec.get("protocols"))
    level = _level(spec.get("interval", "95%"))
    if x in CURVE_AXES:
        metric, statistic = resolve(collection, spec["y"], statistic)
        kind, x_name, samples = "curve", x, curves(collection, metric, statistic, x)
    elif x == "samples":
        kind, x_name, metric, statistic = "samples", x, _agent_column(collection, spec["y"]), ""
        samples = _by_size(collection, metric)
    else:
        metric, statistic = resolve(collection, spec["y"], statistic)
        kind, x_name = ("bars", x) if x == "protocol" else ("sweep", _swept(collection, x))
        values = final_values(collection, metric, statistic)
        samples = values.assign(x=values[x_name])
    samples = samples[samples["protocol"].isin(chosen)]
    if samples.empty:
        raise InputError(
            f"figures: no finished run of {', '.join(chosen)} recorded {metric}, so there is nothing to draw",
            field=("figures",),
        )
    splits = [path for path in collection.grid if path != x_name and samples[path].nunique(dropna=False) > 1]
    pieces = [
        _reduce(group, collection, kind, level).assign(**dict(zip(["protocol", *splits], key, strict=True)))
        for key, group in series(samples, chosen, splits)
    ]
    points = pd.concat(pieces, ignore_index=True)[["x", "protocol", "mean", "low", "high", "n", *splits]]
    if x == "time":
        points["x"] = points["x"] * time_scale(collection.index.get("time_unit"))[0]
    return Plot(kind, x_name, metric, statistic, splits, points)


def series(table: Frame, protocols: Iterable[str], splits: list[str]) -> Iterator[tuple[tuple[Any, ...], Frame]]:
    """Rows by protocol and splits; protocols in the order given, splits in the order of the rows."""
    for protocol in protocols:
        rows = table[table["protocol"] == protocol]
        if splits:
            for key, group in rows.groupby(splits, sort=False, dropna=False):
                yield (protocol, *key), group
        elif len(rows):
            yield (protocol,), rows


def time_scale(time_unit: Any) -> tuple[float, str]:
    """Factor and unit of a time axis: ``30 s`` gives (30.0, "s"), nothing gives (1.0, "expected wake-ups")."""
    if time_unit in (None, ""):
        return 1.0, "expected wake-ups"
    match = re.fullmatch(r"\s*([-+.\deE]*?)\s*([^\W\d_]*)\s*", str(time_unit))
    try:
        return (float(match[1] or 1.0), match[2] or "s") if match else (1.0, str(time_unit))
    except ValueError:
        return 1.0, str(time_unit)


def _rows(collection: Collection, metric: str, statistic: str) -> Frame:
    trace = collection.trace
    if metric in COUNTS:
        rows = trace.drop_duplicates(["run", "time", "activations"])
        return rows.assign(value=rows[metric].astype(np.float64))
    return trace[(trace["metric"] == metric) & (trace["statistic"] == statistic)]


def curves(collection: Collection, metric: str, statistic: str, x: str) -> Frame:
    """Every recorded value with its place on a curve's axis: columns ``run, protocol, x, value`` and the grid's."""
    rows = _rows(collection, metric, statistic)
    if x != "updates":
        return rows.assign(x=rows[x].astype(np.float64))
    updates = _rows(collection, "updates", "mean")
    if len(updates):
        instant = ["run", "time", "activations"]
        return rows.merge(updates[[*instant, "value"]].rename(columns={"value": "x"}), on=instant)
    return rows.assign(x=rows["activations"] / rows["run"].map(collection.agents["run"].value_counts()))


def _by_size(collection: Collection, metric: str) -> Frame:
    """One value per run and bin: the mean over the bin's agents; bins are common to all runs."""
    agents = collection.agents[collection.agents["run"].isin(collection.complete)]
    agents = agents[agents[metric].notna()].rename(columns={metric: "value"})
    if agents.empty:
        return agents.assign(x=np.nan)
    sizes = agents["samples"].to_numpy(np.float64)
    edges = np.unique(sizes)
    if len(edges) > BINS:
        edges = np.unique(np.quantile(sizes, np.linspace(0, 1, BINS + 1)))[:-1]
    bins = np.searchsorted(edges, sizes, side="right") - 1
    centres = np.bincount(bins, weights=sizes) / np.maximum(np.bincount(bins), 1)
    keys = ["run", "protocol", *collection.grid, "x"]
    return agents.assign(x=centres[bins]).groupby(keys, sort=False, dropna=False)["value"].mean().reset_index()


def _reduce(group: Frame, collection: Collection, kind: str, level: float | None) -> Frame:
    if kind == "curve":
        x, table = _common_axis(group, collection.complete)
        mean, half, n = mean_interval(table, level or 0.95)
    else:
        x = list(dict.fromkeys(group["x"]))
        x = sorted(x) if pd.api.types.is_numeric_dtype(group["x"]) else x
        parts = [mean_interval(group.loc[group["x"] == place, "value"], level or 0.95) for place in x]
        mean, half, n = (np.array(part) for part in zip(*parts, strict=True))
    if level is None:
        half = np.full_like(mean, np.nan)
    points = pd.DataFrame({"x": x, "mean": mean, "low": mean - half, "high": mean + half, "n": n})
    return points[points["n"] > 0]


def _common_axis(group: Frame, complete: set[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places (k,) and values (runs, k), each run as a step function of its last known value.

    The axis covers what all finished runs cover. A run that broke off counts up to its own end.
    """
    runs = []
    for run, rows in group.groupby("run", sort=False):
        rows = rows.drop_duplicates("x", keep="last").sort_values("x", kind="stable")
        runs.append((run in complete, rows["x"].to_numpy(np.float64), rows["value"].to_numpy(np.float64)))
    ends = [x[-1] for finished, x, _ in runs if finished] or [max(x[-1] for _, x, _ in runs)]
    axis = np.unique(np.concatenate([x for _, x, _ in runs]))
    axis = axis[(axis >= max(x[0] for _, x, _ in runs)) & (axis <= min(ends))]
    if len(axis) > POINTS and any(len(x) < len(axis) for finished, x, _ in runs if finished):
        axis = axis[np.unique(np.linspace(0, len(axis) - 1, POINTS).round().astype(int))]
    table = np.full((len(runs), len(axis)), np.nan)
    for row, (finished, x, values) in zip(table, runs, strict=True):
        held = np.searchsorted(x, axis, side="right") - 1
        known = (held >= 0) if finished else (held >= 0) & (axis <= x[-1])
        row[known] = values[held[known]]
    return axis, table


def _chosen(collection: Collection, protocols: list[str] | None) -> list[str]:
    known = list(collection.labels)
    if not protocols:
        return known
    labelled = collection.index.get("labels") or {}
    for name in protocols:
        if name not in known and name not in labelled:
            raise InputError(f"figures: protocol {name!r} is not in the results{_admissible(name, known)}")
    return [name for name in known if name in protocols]


def _swept(collection: Collection, x: str) -> str:
    found = [path for path in collection.grid if path == x or path.endswith(f".{x}")]
    if len(found) == 1:
        return found[0]
    admissible = _admissible(x, [*CURVE_AXES, "samples", "protocol", *collection.grid])
    raise InputError(f"figures: x {x!r} is no axis of these results{admissible}", field=("figures",))


def _agent_column(collection: Collection, y: str) -> str:
    columns = collection.agents.columns
    metric = y if y in columns else ALIASES.get(y, y)
    if metric in columns and pd.api.types.is_numeric_dtype(collection.agents[metric]):
        return metric
    known = [str(name) for name in columns if pd.api.types.is_numeric_dtype(collection.agents[name])]
    raise InputError(f"figures: y {y!r} is not known per agent{_admissible(y, known)}", field=("figures",))


def _level(interval: Any) -> float | None:
    if interval in (None, "none", False):
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", str(interval))
    if match is None or not 0 < float(match[1]) < 100:
        raise InputError(f"figures: interval {interval!r} must be '95%' or 'none'", field=("figures",))
    return float(match[1]) / 100


def _admissible(given: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    near = difflib.get_close_matches(given, names, n=1)
    return f"; it must be one of {', '.join(names)}" + (f" (did you mean {near[0]}?)" if near else "")
