"""What a finished scenario measured, one value per run: at its end, at a place on an axis, or where a level is met.

Values come as a series by seed, so that the difference of two protocols is a difference of runs that met the same
draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from ...agents.errors import InputError
from ..analysis.aggregate import ALIASES, curves, final_values, resolve
from ..analysis.results import Collection, RunResult
from ..analysis.targets import reached
from ..audit.verdicts import ROUNDING
from ..figures.one_run import store_of
from ..metrics import more_is_better
from ..storage.files import Frame

Series = Any
"""A pandas Series by seed, as an annotation."""

Point = Mapping[str, Any]
"""Values of swept parameters, by path."""

SHARE = 0.25
"""Share of the agents that has the least data, and the most."""


@dataclass
class Runs:
    """The finished runs of one figure; functions that name a protocol are about its runs at the point."""

    collection: Collection
    point: dict[str, Any] = field(default_factory=dict)
    """Values of swept parameters."""
    asked: set[str] = field(default_factory=set)
    """Protocols that were asked about since it was emptied."""
    on_the_way: bool = False
    """Whether a value on the way was asked for since it was False."""

    def values(self, path: str) -> list[Any]:
        """Values of a swept parameter, sorted; raises `InputError` if it was not swept."""
        if path not in self.collection.grid:
            raise InputError(f"the scenario does not sweep {path}")
        return sorted(dict.fromkeys(self.collection.places[path]))

    def final(self, key: str, metric: str, statistic: str | None = None, *, at: Point | None = None) -> Series:
        """Last value of every run of a protocol, at the point or another place in the grid, by seed.

        Of the metrics, ``gap`` is the objective's distance from its minimum. Raises `InputError` if nothing of the kind
        was recorded in a run that reached its end.
        """
        rows = final_values(self.collection, *resolve(self.collection, metric, statistic))
        return self._chosen(rows, key, metric, at).set_index("seed")["value"].sort_index()

    def lead(self, first: str, second: str, metric: str, *, at: Point | None = None) -> Series:
        """Return by how much the first protocol ends better, by seed; numbers of two kinds are refused."""
        sign = self._sign(metric, first, second)
        return sign * (self.final(first, metric, at=at) - self.final(second, metric, at=at))

    def lead_at(self, place: float, first: str, second: str, metric: str, x: str) -> Series:
        """Return by how much the first protocol is better at a place on an axis, by seed."""
        sign = self._sign(metric, first, second)
        return sign * (self.at(place, first, metric, x) - self.at(place, second, metric, x))

    def curve(self, key: str, metric: str, x: str) -> dict[int, tuple[Any, Any]]:
        """Places on the axis and values there, both (k,) arrays in order of x, by seed."""
        rows = curves(self.collection, *resolve(self.collection, metric), x)
        rows = self._chosen(rows[rows["run"].isin(self.collection.complete)], key, metric, None)
        rows = (
            rows.drop_duplicates(["seed", "x"], keep="last").sort_values("x", kind="stable").astype({"x": np.float64})
        )
        return {seed: (own["x"].to_numpy(), own["value"].to_numpy(np.float64)) for seed, own in rows.groupby("seed")}

    def along(self, key: str, metric: str, x: str, of: Callable[..., Any]) -> Series:
        """A number of every run's curve, by seed: ``of(seed, places, values)``."""
        self.on_the_way = True
        return _by_seed({seed: of(seed, *curve) for seed, curve in self.curve(key, metric, x).items()})

    def at(self, place: float | Series, key: str, metric: str, x: str) -> Series:
        """Last value of every run that was recorded up to a place on the axis x, one for all or one by seed."""

        def last(seed: int, places: Any, values: Any) -> float:
            own = place[seed] if isinstance(place, pd.Series) else place
            known = np.searchsorted(places, own * (1 + ROUNDING), side="right") - 1
            return values[known] if known >= 0 else np.nan

        return self.along(key, metric, x, last)

    def worst_lead(self, first: str, second: str, metric: str, x: str) -> Series:
        """The smallest lead of the first protocol over the second at any record after the start, by seed."""
        sign, others = self._sign(metric, first, second), self.curve(second, metric, x)

        def least(seed: int, places: Any, values: Any) -> float:
            return (sign * (values - np.interp(places, *others[seed])))[places > 0].min(initial=math.inf)

        return self.along(first, metric, x, least)

    def first(self, target: Mapping[str, Any], key: str, x: str, *, before: bool = False) -> Series:
        """Where on the axis x every run first meets a target, see `reached`, or the place of the record before."""
        self.on_the_way = True
        rows = reached(self.collection, target, x)
        return self._chosen(rows, key, target["metric"], None).set_index("seed")["after" if before else "value"]

    def at_epsilon(self, key: str, metric: str, level: float) -> Series:
        """A metric at an epsilon of the worst pair, between the two swept points around it (log axis); else NaN."""
        points: list[Point] = [{"epsilon": value} for value in self.values("epsilon")]
        worst, own = ("epsilon_observers", "worst"), (metric, None)
        columns = [[self.final(key, *one, at=point) for point in points] for one in (worst, own)]
        found: dict[Any, float] = {}
        for seed in columns[0][0].index:
            spent, measured = (np.array([one[seed] for one in column]) for column in columns)
            order = np.argsort(spent)
            place = math.log(level) * (1 + 1e-9)
            found[seed] = np.interp(place, np.log(spent[order]), measured[order], left=math.nan, right=math.nan)
        return _by_seed(found)

    def end(self, keys: Sequence[str], metric: str, x: str) -> float:
        """The last place on the axis x that every run of these protocols reached."""
        return float(min(places[-1] for key in keys for places, _ in self.curve(key, metric, x).values()))

    def of_size(self, which: str, key: str, metric: str) -> Series:
        """Mean over the agents with the least data (``small``) or the most (``large``), a quarter each, by seed."""
        agents = self.collection.agents[self.collection.agents["run"].isin(self.collection.complete)]
        if metric not in agents:
            raise InputError(f"{metric} is not known per agent")
        rows = self._chosen(agents.dropna(subset=[metric]), key, metric, None)
        ranks = rows.groupby("seed")["samples"].rank(pct=True, method="average")
        chosen = rows[ranks <= SHARE] if which == "small" else rows[ranks > 1 - SHARE]
        return chosen.groupby("seed")[metric].mean()

    def spread(self, key: str, metric: str) -> Series:
        """Range over runs of the last value, as the jackknife's pseudo-values."""
        return jackknife(lambda rows: float(np.ptp(rows)), self.final(key, metric))

    def epsilon(self, which: str, key: str) -> float:
        """The ``claimed`` or ``verified`` epsilon of the worst agent at the end of the worst run."""
        return float(self.final(key, f"epsilon_{which}", "worst").max())

    def best(self, key: str, metric: str, path: str) -> Series:
        """Last value of every run at the value of a swept field that is best on the other seeds."""
        table, chosen = self._best(key, metric, path)
        return _by_seed({seed: table.loc[seed, value] for seed, value in chosen.items()})

    def best_at(self, key: str, metric: str, path: str) -> list[Any]:
        """The values of the field that `best` takes, sorted."""
        return sorted(set(self._best(key, metric, path)[1].values()))

    def given(self, key: str, path: str = "", *, at: Point | None = None) -> Any:
        """What a protocol was given, or a field of it, by the runs' manifest; None where it has no such field."""
        value: Any = self.manifests(key, at)[0]["scenario"]["protocols"][key]
        for part in filter(None, path.split(".")):
            value = (value or {}).get(part)
        return value

    def of_agents(self, key: str) -> Frame:
        """What is known of the agents of a protocol's runs, a row each and run."""
        return self.collection.agents[self.collection.agents["protocol"] == key]

    def tuning(self) -> Mapping[str, Any]:
        """The account of how fields were tuned."""
        return self.collection.index.get("tuning") or {"chosen": [], "trials": 0, "decided_by": ""}

    def trials(self, key: str) -> int:
        """Return in how many trials a protocol was tuned."""
        return int(self.tuning()["trials"]) if key in {entry["protocol"] for entry in self.tuning()["chosen"]} else 0

    def chosen(self, key: str) -> str:
        """What tuning chose for a protocol, in words."""
        values = [entry["values"] for entry in self.tuning()["chosen"] if entry["protocol"] == key]
        return "; ".join(", ".join(f"{name} {value:g}" for name, value in each.items()) for each in values) or "nothing"

    def unfair(self, untunable: Sequence[str]) -> str:
        """Why the protocols that were asked about are not compared as equals; empty if they are."""
        trials = {key: self.trials(key) for key in sorted(self.asked) if key not in untunable}
        if len(set(trials.values())) > 1:
            return ", ".join(f"{key} had {count or 'no'} trials" for key, count in trials.items())
        decided = self.tuning()["decided_by"]
        if len(trials) > 1 and max(trials.values()) and self.on_the_way and not decided.endswith("over the run"):
            return f"tuned by {decided} at the end of trials, and judged on the way"
        return ""

    def manifests(self, key: str, at: Point | None = None) -> list[dict[str, Any]]:
        """Manifests of a protocol's runs; raises `InputError` if there are none."""
        point = self.point if at is None else at
        ours = (manifest for manifest in self.collection.manifests if manifest["protocol"] == key)
        chosen = [manifest for manifest in ours if point.items() <= (manifest.get("grid") or {}).items()]
        if not chosen:
            raise InputError(f"the scenario has no runs of {key}{_at(point)}")
        return chosen

    def ledgers(self, key: str) -> list[Frame]:
        """What each of a protocol's runs at the point that reached their end released, counted by agent and charge.

        Raises `InputError` if the runs are nowhere on disk, or a file of one is damaged.
        """
        return [result.ledger for result in self._results(key)]

    def graph(self, key: str) -> nx.Graph:
        """The graph of a protocol's runs, without its weights; errors as of `ledgers`."""
        edges = store_of(self.collection).load_graph(self.manifests(key)[0]["topology"]["graph"])
        return nx.from_pandas_edgelist(edges, "tail", "head")

    def mean_of_pairs(self, key: str, distance: int, *, at: Point | None = None) -> Series:
        """Mean epsilon of agents against observers at a distance, at the end of every run at a point, by seed."""
        self.asked.add(key)
        pairs = {result.manifest["seed"]: result.extras["observers"] for result in self._results(key, at)}
        return _by_seed({seed: own.loc[own["distance"] == distance, "epsilon"].mean() for seed, own in pairs.items()})

    def _results(self, key: str, at: Point | None = None) -> list[RunResult]:
        asked, complete = self.manifests(key, at), self.collection.complete
        known = self.collection.by_run.items()
        return [store_of(self.collection).load(run) for run, m in known if run in complete and m in asked]

    def _best(self, key: str, metric: str, path: str) -> tuple[Any, dict[Any, Any]]:
        values, sign = self.values(path), self._sign(metric, key)
        table = pd.DataFrame({value: self.final(key, metric, at={**self.point, path: value}) for value in values})
        # Of every seed the best value is that of the others: chosen on the same numbers, it could only gain.
        means = {seed: (sign * table.drop(index=seed).mean()).to_numpy() for seed in table.index}
        return table, {seed: values[int(np.argmax(mean))] for seed, mean in means.items()}

    def _chosen(self, rows: Frame, key: str, metric: str, at: Point | None) -> Frame:
        self.asked.add(key)
        point = self.point if at is None else at
        rows = rows[rows["protocol"] == key]
        for path, value in point.items():
            rows = rows[rows[path] == value]
        if rows.empty:
            raise InputError(f"no finished run of {key} recorded {metric}{_at(point)}")
        if open_paths := [path for path in self.collection.grid if rows[path].nunique() > 1]:
            raise InputError(f"{metric} of {key} depends on {', '.join(open_paths)}")
        return rows.assign(seed=rows["run"].map(self.collection.seeds))

    def _sign(self, metric: str, *keys: str) -> int:
        """Return 1 if more of a metric is better, else -1, of protocols whose numbers are of one kind."""
        self.collection.kinds.check(ALIASES.get(metric, metric), list(keys))
        return 1 if more_is_better(ALIASES.get(metric, metric)) else -1


def jackknife(statistic: Callable[[Any], float], values: Any) -> Series:
    """The pseudo-values of a statistic of all runs, a row each: their mean and deviation are its estimate and error."""
    n, whole = len(values), statistic(values)
    left = {seed: statistic(values.drop(index=seed)) for seed in values.index} if n > 1 else {}
    return _by_seed({seed: n * whole - (n - 1) * without for seed, without in left.items()} or {0: whole})


def _by_seed(found: dict[Any, float]) -> Series:
    return pd.Series(found, dtype=np.float64).sort_index()


def _at(point: Point) -> str:
    return "".join(f", {path} = {value}" for path, value in point.items())
