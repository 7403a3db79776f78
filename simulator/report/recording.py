"""The traces of all runs as one dense table, and from it every curve of the page at once.

A curve is what `hushnet.simulator.figures.series.curve` gives for the same axis, at fewer places: means and t
intervals of step functions over what all finished runs cover. It is computed for all metrics together here, since a
page shows every metric on every axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..analysis.aggregate import mean_interval, time_scale
from ..analysis.results import Collection
from ..figures.intervals import FEW, common_places, thinned

Pair = tuple[str, str]
"""Metric and statistic."""

EPSILONS: tuple[Pair, ...] = (("epsilon_verified", "worst"), ("epsilon_claimed", "worst"))
"""What an axis of epsilon shows: the first of these that was recorded."""


@dataclass(frozen=True)
class Curves:
    """The curves of one series on one axis."""

    x: NDArray[np.float64]
    """(k,) array: Places; empty where the axis is infinite or unknown for the series."""
    mean: NDArray[np.float64]
    half: NDArray[np.float64]
    """`mean` and `half`: (k, m) arrays: One column per metric; NaN where a metric is not known, half also where there
    are fewer than two runs."""
    n: NDArray[np.int64]
    """(k, m) int array: Runs behind a point."""
    each: NDArray[np.float64]
    """(r, k, m) array: Every run, of fewer than `hushnet.simulator.figures.intervals.FEW`, which are shown one by one;
    else none."""


class RunRecord:
    """A row per record instant of a run, a column per metric that is kept."""

    def __init__(self, collection: Collection, pairs: Sequence[Pair]) -> None:
        trace, kept = collection.trace, list(pairs)
        self.pairs = kept
        self.epsilon = next((pair for pair in EPSILONS if pair in kept), None)
        names = pd.MultiIndex.from_frame(trace[["metric", "statistic"]])
        column = pd.MultiIndex.from_tuples(kept, names=names.names).get_indexer(names)
        run = pd.Index(collection.runs).get_indexer(trace["run"])
        order = np.argsort(run, kind="stable")
        run, column = run[order], column[order]
        heads = {name: trace[name].to_numpy(np.float64)[order] for name in ("time", "activations", "vectors", "bytes")}
        new = np.ones(len(run), dtype=bool)
        new[1:] = (np.diff(run) != 0) | (np.diff(heads["time"]) != 0) | (np.diff(heads["activations"]) != 0)
        instant = np.cumsum(new) - 1
        self._axes = {name: values[new] for name, values in heads.items()}
        self._axes["time"] = self._axes["time"] * time_scale(collection.index.get("time_unit"))[0]
        self._bounds = np.searchsorted(run[new], np.arange(len(collection.runs) + 1))
        known = np.full((int(new.sum()), len(kept)), -1)
        values = np.full(known.shape, np.nan)
        wanted = column >= 0
        known[instant[wanted], column[wanted]] = instant[wanted]
        values[instant[wanted], column[wanted]] = trace["value"].to_numpy(np.float64)[order][wanted]
        self._values, self._started = self._held(values, known)
        if self.epsilon is not None:
            self._axes["epsilon"] = self._values[:, kept.index(self.epsilon)]
        self._limited = {run for run, name in enumerate(collection.runs) if name in collection.limited}
        self._finished = [manifest.get("status") == "complete" for manifest in collection.manifests]

    def _held(self, values: Any, known: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Every metric's last known value at every instant, and whether there is one yet."""
        starts = np.repeat(self._bounds[:-1], np.diff(self._bounds))[:, None]
        last = np.maximum.accumulate(known, axis=0)
        started = last >= starts
        return np.where(started, np.take_along_axis(values, np.maximum(last, 0), axis=0), np.nan), started

    @property
    def axes(self) -> list[str]:
        """Names of the axes that there are."""
        return list(self._axes)

    def curves(self, runs: Sequence[int], axis: str, places: int) -> Curves:
        """Mean and 95 % t interval of every metric over runs of these ranks, as step functions on a common axis.

        It has `places`, two at least, evenly spaced among those where something was recorded. Runs that were stopped by
        a limit are left out.
        """
        shown = [run for run in runs if run not in self._limited]
        paths = [path for path in (self._path(run, axis) for run in shown) if len(path[0])]
        if not paths or not all(np.isfinite(x).all() for x, _, _ in paths):
            nothing = np.empty((0, self._values.shape[1]))
            return Curves(np.empty(0), nothing, nothing, nothing.astype(np.int64), nothing[None, :0])
        common = thinned(common_places([x for x, *_ in paths], [finished for *_, finished in paths]), places)
        table = np.full((len(paths), len(common), self._values.shape[1]), np.nan)
        begun = np.ones(table.shape[1:], dtype=bool)
        for row, (x, rows, finished) in zip(table, paths, strict=True):
            held = np.searchsorted(x, common, side="right") - 1
            inside = np.ones(len(common), dtype=bool) if finished else common <= x[-1]
            row[inside] = self._values[rows[held[inside]]]
            begun &= self._started[rows[held]]
        mean, half, n = mean_interval(table)
        known = begun & (n > 0)
        each = np.where(known, table, np.nan)[: len(table) if 1 < len(table) < FEW else 0]
        return Curves(common, np.where(known, mean, np.nan), np.where(known, half, np.nan), n, each)

    def _path(self, run: int, axis: str) -> tuple[NDArray[np.float64], NDArray[np.int64], bool]:
        rows = np.arange(self._bounds[run], self._bounds[run + 1])
        rows = rows[~np.isnan(self._axes[axis][rows])]
        rows = rows[np.argsort(self._axes[axis][rows], kind="stable")]
        return self._axes[axis][rows], rows, self._finished[run]
