"""Runs on disk: one folder per run, written as a whole or not at all, and an index of the latest experiment.

A run's folder holds ``manifest.json``, ``trace.parquet``, ``agents.parquet`` and ``ledger.parquet``. Identical tables
give identical bytes; only the manifest, which carries timings, differs between two runs of the same scenario.
"""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..agents.errors import InputError
from .provenance import code_version, commit, libraries, run_id
from .storage import Frame, json_text, read_json, read_table, sync, write_table, write_text

__all__ = [
    "Collection",
    "RunResult",
    "code_version",
    "commit",
    "is_complete",
    "libraries",
    "load",
    "load_all",
    "run_id",
    "save",
    "write_index",
]

TABLES = ("trace", "agents", "ledger")
TRACE_SCHEMA = pa.schema(
    [
        ("protocol", pa.string()),
        ("seed", pa.uint64()),
        ("time", pa.float64()),
        ("activations", pa.int64()),
        ("messages", pa.int64()),
        ("vectors", pa.int64()),
        ("bytes", pa.int64()),
        ("metric", pa.string()),
        ("statistic", pa.string()),
        ("value", pa.float64()),
    ]
)


@dataclass
class RunResult:
    """Everything that one run leaves behind.

    Parameters
    ----------
    manifest : dict
        Resolved scenario, protocol, label, seeds, grid point, status, versions, hashes, timings, privacy.
    trace : DataFrame
        Tidy measurements with the columns of `TRACE_SCHEMA`, in order of time.
    agents : DataFrame
        One final row per agent.
    ledger : DataFrame
        What was released; may be empty.
    """

    manifest: dict[str, Any]
    trace: pd.DataFrame
    agents: pd.DataFrame
    ledger: pd.DataFrame


@dataclass
class Collection:
    """The runs of one experiment, read from their files.

    Parameters
    ----------
    trace, agents : DataFrame
        The runs' tables one after the other, with the columns ``run`` (the run id) and one per swept parameter, named
        by its path (``network.loss``); a swept list or mapping appears as JSON text.
    manifests : list of dict
        One per run, in the order of the index.
    runs : list of str
        Run ids, in the same order; a run that stands for several grid points reappears as ``<id>#2`` and so on.
    index : dict
        Contents of ``index.json``; empty if there is none.
    missing : list of str
        Run ids of the index without a complete folder.
    """

    trace: Frame
    agents: Frame
    manifests: list[dict[str, Any]]
    runs: list[str]
    index: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    @property
    def grid(self) -> list[str]:
        """Paths of the swept parameters."""
        return list(dict.fromkeys(path for manifest in self.manifests for path in manifest.get("grid") or {}))

    @property
    def places(self) -> Frame:
        """One row per run: ``run, protocol`` and the swept parameters."""
        pairs = zip(self.runs, self.manifests, strict=True)
        rows = [{"run": run, "protocol": m["protocol"], **_grid_values(m)} for run, m in pairs]
        return pd.DataFrame(rows)

    @property
    def labels(self) -> dict[str, str]:
        """Label by protocol key, in drawing order: the index first, the manifests for what it does not name."""
        own = {manifest["protocol"]: manifest.get("label") or manifest["protocol"] for manifest in self.manifests}
        named = {key: label or key for key, label in (self.index.get("labels") or {}).items() if key in own}
        return {**named, **{key: label for key, label in own.items() if key not in named}}

    @property
    def complete(self) -> set[str]:
        """Ids of the runs that reached their end."""
        runs = zip(self.runs, self.manifests, strict=True)
        return {run for run, manifest in runs if manifest.get("status") == "complete"}


def save(result: RunResult, folder: Path) -> None:
    """Write a run's folder so that it is there as a whole or not at all; an older one is replaced at the end.

    Parameters
    ----------
    result : RunResult
    folder : Path
        ``results/<scenario>/<run id>``; parents are made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    token = uuid.uuid4().hex[:8]
    fresh = folder.with_name(f".{folder.name}.{token}")
    stale = folder.with_name(f".{folder.name}.{token}.old")
    try:
        fresh.mkdir()
        for name in TABLES:
            write_table(getattr(result, name), fresh / f"{name}.parquet", TRACE_SCHEMA if name == "trace" else None)
        write_text(json_text(result.manifest), fresh / "manifest.json")
        sync(fresh)
        if folder.exists():
            folder.rename(stale)
        try:
            fresh.rename(folder)
        except OSError:
            if stale.exists():
                stale.rename(folder)
            raise
        sync(folder.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(stale, ignore_errors=True)


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a whole run, whatever the run's status."""
    return all((folder / name).is_file() for name in ("manifest.json", *(f"{name}.parquet" for name in TABLES)))


def load(folder: Path) -> RunResult:
    """Read a run back.

    Raises
    ------
    InputError
        If a file is missing or damaged; the sentence names it.
    """
    manifest = read_json(folder / "manifest.json")
    if isinstance(manifest.get("privacy"), dict):
        manifest["privacy"] = {key: _finite_or_not(value) for key, value in manifest["privacy"].items()}
    tables = {name: read_table(folder / f"{name}.parquet") for name in TABLES}
    absent = [name for name in TRACE_SCHEMA.names if name not in tables["trace"].columns]
    if absent:
        raise InputError(f"{folder / 'trace.parquet'}: is no trace, it lacks the columns {', '.join(absent)}")
    return RunResult(manifest, **tables)


def load_all(root: Path) -> Collection:
    """Read the latest experiment's runs, or every complete run where there is no index.

    Parameters
    ----------
    root : Path
        ``results/<scenario>``.

    Raises
    ------
    InputError
        If there is no complete run, or a file is damaged.
    """
    index = read_json(root / "index.json") if (root / "index.json").exists() else {}
    folders = sorted(path.name for path in root.glob("*") if path.is_dir() and not path.name.startswith("."))
    wanted = index.get("runs", [name for name in folders if is_complete(root / name)])
    grids = index.get("grids") or [None] * len(wanted)
    kept = {name: load(root / name) for name in dict.fromkeys(wanted) if is_complete(root / name)}
    if not kept:
        raise InputError(f"{root}: holds no complete run; give a folder results/<scenario> of hushnet run")
    runs, results = [], []
    for name, grid in zip(wanted, grids, strict=True):
        if name in kept:
            result, again = kept[name], sum(run.split("#")[0] == name for run in runs)
            runs.append(f"{name}#{again + 1}" if again else name)
            results.append(result if grid is None else replace(result, manifest={**result.manifest, "grid": grid}))
    joined = {}
    for name in ("trace", "agents"):
        tables = [
            getattr(result, name).assign(run=run, **_grid_values(result.manifest))
            for run, result in zip(runs, results, strict=True)
        ]
        joined[name] = pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)
    missing = [name for name in wanted if name not in kept]
    return Collection(**joined, manifests=[r.manifest for r in results], runs=runs, index=index, missing=missing)


def write_index(
    root: Path,
    *,
    scenario: str,
    runs: list[str],
    figures: list[dict[str, Any]],
    labels: dict[str, str],
    time_unit: str | None = None,
    grids: list[dict[str, Any]] | None = None,
) -> None:
    """Say which runs make up the latest experiment and how to draw them, in ``index.json``, atomically.

    Parameters
    ----------
    root : Path
        ``results/<scenario>``.
    scenario : str
        Name of the scenario.
    runs : list of str
        Run ids, in order.
    figures : list of dict
        Figure specifications, see `hushnet.simulator.figures`.
    labels : dict of str
        Label by protocol key, in the order of the scenario, which is the drawing order.
    time_unit : str, optional
        Length of one expected wake-up, such as ``30 s``.
    grids : list of dict, optional
        Swept values by path, one for each of ``runs``; by default those of the manifests. A run whose protocol does not
        depend on what is swept is kept once and listed at every grid point.

    Raises
    ------
    ValueError
        If a run is listed twice without saying where in the grid.
    """
    if grids is None and len(set(runs)) < len(runs):
        raise ValueError("a run that stands for several grid points needs grids")
    index = {"scenario": scenario, "runs": runs, "labels": labels, "figures": figures, "time_unit": time_unit}
    index["grids"] = grids
    root.mkdir(parents=True, exist_ok=True)
    fresh = root / f".index.{uuid.uuid4().hex[:8]}.json"
    try:
        write_text(json_text(index, sort_keys=False), fresh)
        os.replace(fresh, root / "index.json")
        sync(root)
    finally:
        fresh.unlink(missing_ok=True)


def _grid_values(manifest: dict[str, Any]) -> dict[str, Any]:
    plain = (str, int, float, bool)
    grid = manifest.get("grid") or {}
    return {path: value if isinstance(value, plain) else json_text(value, indent=None) for path, value in grid.items()}


def _finite_or_not(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf", "nan") else value
