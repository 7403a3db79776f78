"""What a finished scenario measured, one value per run: at its end, at a place on an axis, or where a level is met.

Values come as a series by seed, so that the difference of two protocols is a difference of runs that met the same
draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...agents.errors import InputError
from ..analysis.aggregate import curves, final_values, resolve
from ..analysis.results import Collection
from ..storage.files import Frame
from ..storage.store import Store

Series = Any
"""A pandas Series by seed, as an annotation."""

Point = Mapping[str, Any]
"""Values of swept parameters, by path."""


@dataclass(frozen=True)
class Runs:
    """The finished runs of one figure.

    Parameters
    ----------
    collection : Collection
    """

    collection: Collection

    def seeds(self) -> int:
        """Number of seeds."""
        return len({manifest["seed"] for manifest in self.collection.manifests})

    def values(self, path: str) -> list[Any]:
        """Values of a swept parameter, sorted.

        Raises
        ------
        InputError
            If it was not swept.
        """
        if path not in self.collection.grid:
            raise InputError(f"the scenario does not sweep {path}")
        return sorted(dict.fromkeys(self.collection.places[path]))

    def final(self, protocol: str, metric: str, statistic: str | None = None, *, point: Point | None = None) -> Series:
        """Last value of every run.

        Parameters
        ----------
        protocol : str
            Key in the scenario.
        metric : str
            What was recorded; ``gap`` is the objective's distance from its minimum.
        statistic : str, optional
        point : mapping, optional
            Where in the grid.

        Raises
        ------
        InputError
            If nothing of the kind was recorded in a run that reached its end.
        """
        rows = final_values(self.collection, *resolve(self.collection, metric, statistic))
        rows = self._chosen(rows, protocol, metric, point)
        return rows.set_index("seed")["value"].sort_index()

    def curve(
        self, protocol: str, metric: str, x: str, *, statistic: str | None = None, point: Point | None = None
    ) -> dict[int, tuple[Any, Any]]:
        """Places on the axis and values there, both (k,) arrays in order of x, by seed."""
        rows = curves(self.collection, *resolve(self.collection, metric, statistic), x)
        rows = self._chosen(rows[rows["run"].isin(self.collection.complete)], protocol, metric, point)
        result = {}
        for seed, group in rows.groupby("seed"):
            group = group.drop_duplicates("x", keep="last").sort_values("x", kind="stable")
            result[seed] = (group["x"].to_numpy(np.float64), group["value"].to_numpy(np.float64))
        return result

    def at(self, place: float, protocol: str, metric: str, x: str, **chosen: Any) -> Series:
        """Last value of every run that was recorded up to a place on the axis x; options as for `curve`."""
        found = {}
        for seed, (places, values) in self.curve(protocol, metric, x, **chosen).items():
            known = np.searchsorted(places, place, side="right") - 1
            found[seed] = values[known] if known >= 0 else np.nan
        return _by_seed(found)

    def first(
        self,
        level: float | Series,
        protocol: str,
        metric: str,
        x: str,
        *,
        rising: bool = True,
        statistic: str | None = None,
        point: Point | None = None,
    ) -> Series:
        """Where on the axis x every run is first recorded to meet a level (one, or one per seed); infinite if never."""
        found = {}
        for seed, (places, values) in self.curve(protocol, metric, x, statistic=statistic, point=point).items():
            wanted = level[seed] if isinstance(level, pd.Series) else level
            met = values >= wanted if rising else values <= wanted
            found[seed] = places[np.argmax(met)] if met.any() else np.inf
        return _by_seed(found)

    def before_first(
        self,
        level: float | Series,
        protocol: str,
        metric: str,
        x: str,
        *,
        rising: bool = True,
        statistic: str | None = None,
        point: Point | None = None,
    ) -> Series:
        """The place of the record before `first`; the same place if there is none."""
        met = self.first(level, protocol, metric, x, rising=rising, statistic=statistic, point=point)
        found = {}
        for seed, (places, _) in self.curve(protocol, metric, x, statistic=statistic, point=point).items():
            earlier = places[places < met[seed]]
            found[seed] = np.inf if np.isinf(met[seed]) else earlier[-1] if len(earlier) else met[seed]
        return _by_seed(found)

    def common_end(self, protocols: list[str], metric: str, x: str, **chosen: Any) -> float:
        """The last place on the axis x that every run of these protocols reached."""
        found = [places for key in protocols for places, _ in self.curve(key, metric, x, **chosen).values()]
        return float(min(places[-1] for places in found))

    def lowest(self, protocol: str, metric: str, x: str, **chosen: Any) -> float:
        """Where on the axis x the mean over runs is smallest; the runs must have been recorded at the same places."""
        found = list(self.curve(protocol, metric, x, **chosen).values())
        length = min(len(values) for _, values in found)
        mean = np.mean([values[:length] for _, values in found], axis=0)
        return float(found[0][0][int(np.argmin(mean))])

    def by_size(self, protocol: str, metric: str, *, share: float = 0.25, point: Point | None = None) -> Frame:
        """Mean over the agents with the least and with the most data.

        Parameters
        ----------
        protocol, metric : str
        share : float
            Share of the agents that counts as least and as most.
        point : mapping, optional

        Returns
        -------
        DataFrame
            By seed, columns ``small`` and ``large``.
        """
        agents = self.collection.agents[self.collection.agents["run"].isin(self.collection.complete)]
        if metric not in agents:
            raise InputError(f"{metric} is not known per agent")
        rows = self._chosen(agents.dropna(subset=[metric]), protocol, metric, point)
        ranks = rows.groupby("seed")["samples"].rank(pct=True, method="average")
        small = rows[ranks <= share].groupby("seed")[metric].mean()
        large = rows[ranks > 1 - share].groupby("seed")[metric].mean()
        return small.to_frame("small").assign(large=large)

    def manifests(self, protocol: str, point: Point | None = None) -> list[dict[str, Any]]:
        """Manifests of a protocol's runs.

        Raises
        ------
        InputError
            If there are none.
        """
        chosen = [
            manifest
            for manifest in self.collection.manifests
            if manifest["protocol"] == protocol
            and all((manifest.get("grid") or {}).get(path) == value for path, value in (point or {}).items())
        ]
        if not chosen:
            raise InputError(f"the scenario has no runs of {protocol}{_at(point)}")
        return chosen

    def of(self, protocol: str) -> list[str]:
        """Ids of a protocol's runs that reached their end."""
        named = zip(self.collection.runs, self.collection.manifests, strict=True)
        return [run for run, manifest in named if manifest["protocol"] == protocol and run in self.collection.complete]

    def ledger(self, run: str) -> Frame:
        """What one run released, counted by agent and charge.

        Raises
        ------
        InputError
            If the runs are nowhere on disk, or a file of this one is damaged.
        """
        if self.collection.root is None:
            raise InputError("ledgers are known of runs on disk alone")
        return Store(self.collection.root).load(run).ledger

    def _chosen(self, rows: Frame, protocol: str, metric: str, point: Point | None) -> Frame:
        """Rows of one protocol at one point of the grid, with their seeds."""
        rows = rows[rows["protocol"] == protocol]
        for path, value in (point or {}).items():
            rows = rows[rows[path] == value]
        if rows.empty:
            raise InputError(f"no finished run of {protocol} recorded {metric}{_at(point)}")
        if open_paths := [path for path in self.collection.grid if rows[path].nunique() > 1]:
            raise InputError(f"{metric} of {protocol} depends on {', '.join(open_paths)}")
        named = zip(self.collection.runs, self.collection.manifests, strict=True)
        return rows.assign(seed=rows["run"].map({run: manifest["seed"] for run, manifest in named}))


def _by_seed(found: dict[int, float]) -> Series:
    return pd.Series(found, dtype=np.float64).sort_index()


def _at(point: Point | None) -> str:
    return "".join(f", {path} = {value}" for path, value in (point or {}).items())
