"""The numbers of a figure: means and t intervals over runs, at the places where they are drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ...agents.errors import InputError
from ...agents.suggestions import listed
from ..analysis.aggregate import NothingRecorded, final_values, resolve, time_scale, unknown, wins
from ..analysis.results import Collection
from ..analysis.targets import reached
from ..language.figure_kinds import FIGURE_KINDS, FigureKind
from ..language.figure_parameters import TO_TARGET, kind_of
from ..metrics import more_is_better
from ..metrics.metric import ANY, Range, range_of, range_of_difference
from ..storage.files import Frame
from .intervals import extent, one_by_one

Spec = Mapping[str, Any]
"""A figure as the scenario describes it; see `hushnet.simulator.language.figure_parameters.Figure`."""


@dataclass(frozen=True)
class Plot:
    """The numbers of one panel."""

    kind: str
    """How it is drawn."""
    x: str
    metric: str
    statistic: str
    """`x`, `metric` and `statistic`: What the axes show; the statistic is empty for counts and for means over
    agents."""
    splits: list[str]
    """Swept parameters that divide a protocol's runs into several series."""
    points: Frame
    """What is drawn: the columns that the kind declares, see `hushnet.simulator.language.figure_kinds.FigureKind`, and
    one per split. ``n`` counts the runs behind a point, and low and high are NaN where there are fewer than two. Where
    y is what it took to the target, ``reached`` counts the runs that got there."""
    panel: str = ""
    """Title of the panel; empty where there is only one."""
    note: str = ""
    """What the legend says about the marks, where that is not means over runs."""
    runs: Frame = field(default_factory=pd.DataFrame)
    """What the means are of: a row per row of the points, a column per seed, and NaN where a run does not count. Of a
    frontier the values, and `costs` likewise those of the x axis. Empty where runs are not shown."""
    costs: Frame = field(default_factory=pd.DataFrame)
    single: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """(rows,) bool: Where runs are drawn one by one, in place of an interval."""
    within: Range = ANY
    """Where the intervals lie, see `hushnet.simulator.figures.intervals`."""

    @property
    def ends(self) -> NDArray[np.float64]:
        """(rows, 2) ends of the intervals that are drawn; NaN where none is."""
        return (
            self.points[["low", "high"]].to_numpy(np.float64, copy=True) * np.where(self.single, np.nan, 1.0)[:, None]
        )

    @property
    def extent(self) -> NDArray[np.float64]:
        """(rows, 2) ends of what the y axis has to show, see `hushnet.simulator.figures.intervals.extent`."""
        return extent(self.points["mean"], self.ends, self.runs.to_numpy(np.float64), self.single)

    def table(self) -> Frame:
        """The points for a CSV file; where runs are drawn one by one, with a column per seed."""
        if not self.single.any():
            return self.points
        parts = [("seed", self.runs), *([("x of seed", self.costs)] if len(self.costs) else [])]
        shown = [self._singled(frame).add_prefix(f"{word} ") for word, frame in parts]
        return pd.concat([self.points, *shown], axis=1)

    def singled(self, rows: Any) -> Frame:
        """Values of runs that are drawn one by one at some rows of the points, a column per seed."""
        return self._singled(self.runs).loc[rows].dropna(axis=1, how="all")

    def _singled(self, frame: Frame) -> Frame:
        shown = frame.copy()
        shown[~self.single] = np.nan
        return shown.dropna(axis=1, how="all")


def kind_for(spec: Spec) -> FigureKind:
    """The kind that a figure asks for."""
    return FIGURE_KINDS[kind_of(spec.get("kind"), str(spec["x"]), spec.get("rows"))]


def numbers_of(kind: FigureKind, collection: Collection, spec: Spec) -> Plot:
    """The numbers of a panel, with the columns that its kind declares.

    Raises `InputError` if a function that somebody registered gives something else.
    """
    found = kind.function("numbers")(collection, spec)
    wrong = ""
    if not isinstance(found, Plot):
        wrong = f"its numbers are a {type(found).__name__} and must be a Plot"
    elif missing := [name for name in kind.columns if name not in found.points]:
        wrong = f"its numbers lack {listed(missing)}; the points of a {kind.name} have {listed(kind.columns)}"
    if wrong:
        raise InputError(f"figures: figure kind {kind.name}: {wrong}", field=("figures",))
    return found


def select(collection: Collection, at: Mapping[str, Any]) -> Collection:
    """The runs at some values of what is swept, by its name.

    Raises `InputError` if a name was not swept, or nothing was run at its value.
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
    kept = [(run, m) for run, m in collection.by_run.items() if run in runs]
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


def within_of(metric: str, statistic: str, spec: Spec) -> Range:
    """Return the range that contains a figure's intervals: the metric's, that of its differences, or of shares."""
    found = range_of(metric, statistic)
    if spec.get("wins"):
        return 0.0, 1.0
    return found if spec.get("baseline") is None else range_of_difference(found)


def single_runs(n: ArrayLike, spec: Spec) -> NDArray[np.bool_]:
    """Mark points at which a figure draws runs one by one, from the number of runs behind each."""
    return one_by_one(n, str(spec.get("interval") or "none"), shares=bool(spec.get("wins")))


def level_of(interval: Any) -> float | None:
    """Coverage of the intervals, in (0, 1); None where none are asked for."""
    if interval in (None, "none", "seeds", False):
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", str(interval))
    if match is None or not 0 < float(match[1]) < 100:
        raise InputError(f"figures: interval {interval!r} must be '95%', 'seeds' or 'none'", field=("figures",))
    return float(match[1]) / 100


def finals(collection: Collection, spec: Spec) -> tuple[str, str, Frame]:
    """One value per run: what it ended with, if it reached its end, what it took to the target, or either's difference.

    What a run took that broke off by itself counts as `compare` has it: infinite, if it had not met the target by then.
    Returns metric, statistic and a table ``run, protocol, seed, value`` with the swept parameters. With a baseline,
    values are differences from the run of the baseline that met the same draws, or whether it wins against that; runs
    without one are left out, and the baseline is.
    """
    y = str(spec["y"])
    if y in TO_TARGET:
        axis = y.removesuffix("_to_target")
        metric, statistic, values = y, "", reached(collection, None, axis)
        if axis == "time":
            values = values.assign(value=values["value"] * time_scale(collection.index.get("time_unit"))[0])
        values = values[~values["run"].isin(collection.limited)]
    else:
        metric, statistic = resolve(collection, y, spec.get("statistic") or None)
        values = final_values(collection, metric, statistic)
    values = values.assign(seed=values["run"].map(collection.seeds))
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


def by_seed(places: Sequence[Any], runs: Frame, column: str = "value") -> Frame:
    """Values of runs, a row per place and a column per seed.

    Runs have ``x``, which of the places they stand at, ``seed`` and the column.
    """
    rank = {place: row for row, place in enumerate(places)}
    found: dict[Any, Any] = {}
    for place, seed, value in zip(runs["x"], runs["seed"], runs[column], strict=True):
        row, name = rank[place], seed
        while not np.isnan(found.setdefault(name, np.full(len(rank), np.nan))[row]):
            name = f"{name}'"  # the same seed once more, at the same place
        found[name][row] = value
    return pd.DataFrame(found)


class NothingToDraw(NothingRecorded):
    """A figure would be an empty picture."""


def require_points(points: Frame, what: str, protocols: list[str]) -> None:
    """Raise `NothingToDraw` if there is no point, or none of them has a value."""
    if points.empty or points["value"].isna().all():
        sentence = f"figures: no finished run of {', '.join(protocols)} recorded {what}, so there is nothing to draw"
        raise NothingToDraw(sentence, field=("figures",))
