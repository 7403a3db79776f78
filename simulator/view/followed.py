"""The runs of an experiment as they come: each is read once, a little at a time, and nothing is written."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from ..console.status import status
from ..metrics.metric import METRICS, OWN
from ..metrics.own_metrics import show_as
from ..report.naming import metric_name
from ..storage.files import json_text, no_links, read_arrow
from ..storage.run_folder import read_manifest
from ..storage.store import Store

PATIENCE = 0.25
"""Seconds of reading before an answer goes out with what is there; the next one has more."""


def experiments(root: Path) -> dict[str, Path]:
    """Folders of results by name: those in a folder, or the folder itself if it is one."""
    if _is_one(root):
        return {root.resolve().name: root}
    return {path.name: path for path in sorted(root.iterdir()) if not path.is_symlink() and _is_one(path)}


def _is_one(path: Path) -> bool:
    return (path / "index.json").is_file() or (path / ".lock").is_file() or any(path.glob("*/manifest.json"))


def listed(name: str, folder: Path) -> dict[str, Any]:
    """An experiment's name, its state in a word, and sentences about it."""
    try:
        first, *more = (line.removeprefix(f"{folder}: ") for line in status(folder))
    except InputError as error:
        return {"name": name, "state": "empty", "words": [str(error).removeprefix(f"{folder}: ")]}
    state = first.partition(",")[0].partition(" ")[0]
    return {
        "name": name,
        "state": state if state in ("running", "done", "stopped") else "there",
        "words": [first, *more],
    }


class FollowedRuns:
    """Rows about the runs of an experiment's folder, in the order in which they were found.

    They have ``id, run, protocol, seed, grid, status, error, seconds`` and ``finals``, the last number of each metric,
    of which ``metrics`` has names and directions by ``metric:statistic``. The ``era`` changes when rows that were given
    are none any more: another experiment has been run there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, Store(folder)
        self.era, self.rows, self.metrics, self.left = "", list[dict[str, Any]](), dict[str, dict[str, Any]](), 0
        self._index: Mapping[str, Any] = {}
        self._met: set[str] = set()
        self._kept: dict[str, tuple[dict[str, Any], Mapping[str, Any]]] = {}

    def follow(self, seconds: float = PATIENCE) -> None:
        """Read what has come since, for so long at most; ``left`` is the number of runs that are still to be read.

        Raises `InputError` if the index is damaged.
        """
        self._begin()
        until = time.monotonic() + seconds
        waiting = [name for name in self._names() if name not in self._met]
        for name in waiting:
            self._met.add(name)
            self.rows.extend(self._read(name))
            if time.monotonic() > until:
                break
        self.left = sum(name not in self._met for name in waiting)

    def _begin(self) -> None:
        """Start again where there is another index."""
        path = self.folder / "index.json"
        about = path.stat() if path.is_file() else None
        era = "" if about is None else f"{about.st_mtime_ns}-{about.st_size}"
        if era != self.era or not self.rows:
            self.era, self.rows, self._met, self._index = era, [], set(), self.store.index()
            self._kept = {name: kept for name, kept in self._kept.items() if kept[0]["status"] == "complete"}
            self.rows += [_failed(entry, self._index) for entry in self._index.get("failed") or []]

    def _names(self) -> list[str]:
        """Runs of the index, and while somebody is writing all that are there."""
        there = sorted(path.parent.name for path in self.folder.glob("*/manifest.json"))
        named = self._index.get("runs")
        if named is None:
            return there
        present = set(there)
        known = [name for name in dict.fromkeys(named) if name in present]
        return known if self.store.holder() is None else [*known, *sorted(present - set(known))]

    def _read(self, name: str) -> list[dict[str, Any]]:
        """Rows of a run: one for each grid point at which it stands."""
        if name not in self._kept:
            self._kept[name] = self._row(name)
        row, grid = self._kept[name]
        runs, grids = self._index.get("runs") or [], self._index.get("grids") or []
        places = [place for run, place in zip(runs, grids, strict=False) if run == name and place is not None]
        return [
            {**row, "id": name if rank == 0 else f"{name}#{rank + 1}", "grid": _plain_grid(place)}
            for rank, place in enumerate(places or [grid])
        ]

    def _row(self, name: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Row of a run, and its place in the grid."""
        folder = self.folder / name
        try:
            no_links(folder, self.folder)
            manifest, checksums = read_manifest(folder)
            finals = self._finals(manifest, folder, checksums)
        except InputError as error:
            return {**_NOTHING, "run": name, "status": "damaged", "error": str(error)}, {}
        return {
            "run": name,
            "protocol": manifest.get("label") or manifest["protocol"],
            "seed": str(manifest["seed"]),
            "status": manifest["status"],
            "error": manifest.get("error") or "",
            "seconds": (manifest.get("timings") or {}).get("seconds"),
            "finals": finals,
        }, manifest.get("grid") or {}

    def _finals(
        self, manifest: Mapping[str, Any], folder: Path, checksums: Mapping[str, str]
    ) -> dict[str, float | str]:
        for name, said in (manifest.get("own_metrics") or {}).items():
            show_as(name, said)
        trace = read_arrow(folder / "trace.parquet", checksums.get("trace.parquet"))
        last = trace.group_by(["metric", "statistic"], use_threads=False).aggregate([("value", "last")])
        found: dict[str, float | str] = {}
        for metric, statistic, value in zip(*(last[name].to_pylist() for name in last.column_names), strict=True):
            if statistic.startswith("samples ") or value is None or math.isnan(value):
                continue
            key = f"{metric}:{statistic}"
            found[key] = float(f"{value:.6g}") if math.isfinite(value) else "\N{INFINITY}"
            known = METRICS.get(metric) or OWN.get(metric)
            self.metrics.setdefault(key, {"name": metric_name(metric, statistic), "better": known and known.better})
        return found


_NOTHING: dict[str, Any] = {
    "protocol": "", "seed": "", "grid": {}, "status": "failed", "error": "", "seconds": None, "finals": {}
}  # fmt: skip


def _failed(entry: Mapping[str, Any], index: Mapping[str, Any]) -> dict[str, Any]:
    grid = _plain_grid(entry.get("grid") or {})
    place = json_text([entry["protocol"], entry.get("seed"), grid], indent=None)
    label = (index.get("labels") or {}).get(entry["protocol"]) or entry["protocol"]
    error = str(entry.get("error") or "")
    return {
        **_NOTHING,
        "id": place,
        "run": "",
        "protocol": label,
        "seed": str(entry["seed"]),
        "grid": grid,
        "error": error,
    }


def _plain_grid(grid: Mapping[str, Any]) -> dict[str, float | str]:
    """Swept values as numbers and texts."""
    return {path: value if _is_number(value) else _text(value) for path, value in grid.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def details(folder: Path, name: str) -> dict[str, Any]:
    """A run's scenario, field by field, and its curves over time.

    Raises `InputError` if it is not there, or damaged.
    """
    no_links(folder / name, folder)
    manifest, checksums = read_manifest(folder / name)
    trace = read_arrow(folder / name / "trace.parquet", checksums.get("trace.parquet"))
    curves: dict[str, list[tuple[float, float]]] = {}
    columns = (trace[column].to_pylist() for column in ("metric", "statistic", "time", "value"))
    for metric, statistic, at, value in zip(*columns, strict=True):
        if value is not None and math.isfinite(value) and not statistic.startswith("samples "):
            curves.setdefault(f"{metric}:{statistic}", []).append((at, value))
    own = (manifest["scenario"].get("protocols") or {}).get(manifest["protocol"]) or {}
    scenario = {**manifest["scenario"], "protocols": {manifest["protocol"]: own}, **(manifest.get("grid") or {})}
    fields = {"protocol": manifest["protocol"], "seed": manifest["seed"], "code": manifest.get("code")}
    fields |= {
        "data": manifest.get("data"),
        **dict(_fields(scenario)),
        **dict(_fields(manifest.get("totals") or {}, "total ")),
    }
    return {"fields": {key: _text(value) for key, value in fields.items() if value is not None}, "curves": curves}


def _fields(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _fields(item, f"{path}.{key}" if path and not path.endswith(" ") else f"{path}{key}")
    else:
        yield path, value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value, indent=None)
