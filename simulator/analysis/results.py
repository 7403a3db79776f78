"""The runs of an experiment, read from their files: what figures, summaries, comparisons and reports start from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ...agents.errors import InputError
from ...agents.input_files import at_home
from ..metrics.own_metrics import show_as
from ..storage import dataset
from ..storage.dataset import grid_table
from ..storage.files import Frame
from ..storage.run_folder import RunResult
from ..storage.store import Store
from .comparability import Kinds

__all__ = ["Collection", "RunResult", "load_all"]


@dataclass
class Collection:
    """The runs of one experiment, read from their files."""

    trace: Frame
    agents: Frame
    """`trace` and `agents`: The runs' tables one after the other, with the columns ``run`` (the run id) and one per
    swept parameter, named by its path (``network.loss``); see `hushnet.simulator.storage.dataset.grid_table`."""
    manifests: list[dict[str, Any]]
    """One per run, in the order of the index; equal parts of them are the same objects, to be read and not changed."""
    runs: list[str]
    """Run ids, in the same order; a run that stands for several grid points reappears as ``<id>#2`` and so on."""
    index: dict[str, Any] = field(default_factory=dict)
    """Contents of ``index.json``; empty if there is none."""
    missing: int = 0
    """Number of runs of the experiment that are not there and have not failed."""
    root: Path | None = None
    """The folder that they were read from, which also holds graphs and logs of messages."""

    @property
    def grid(self) -> list[str]:
        """Paths of the swept parameters."""
        return list(dict.fromkeys(path for manifest in self.manifests for path in manifest.get("grid") or {}))

    @property
    def places(self) -> Frame:
        """One row per run: ``run, protocol`` and the swept parameters."""
        grid = grid_table([manifest.get("grid") or {} for manifest in self.manifests]).to_pandas()
        protocols = [manifest["protocol"] for manifest in self.manifests]
        return pd.concat([pd.DataFrame({"run": self.runs, "protocol": protocols}), grid], axis=1)

    @property
    def labels(self) -> dict[str, str]:
        """Label by protocol key, in drawing order: the index first, the manifests for what it does not name."""
        own = {manifest["protocol"]: manifest.get("label") or manifest["protocol"] for manifest in self.manifests}
        named = {key: label or key for key, label in (self.index.get("labels") or {}).items() if key in own}
        return {**named, **{key: label for key, label in own.items() if key not in named}}

    @cached_property
    def kinds(self) -> Kinds:
        """Quantities that its metrics measure, with the protocols whose numbers are of one kind."""
        return Kinds(self)

    @cached_property
    def start_vectors(self) -> dict[str, float]:
        """Vectors that agents exchanged before their start, which no other count includes, by run; NaN if unknown."""
        totals = [manifest.get("totals") or {} for manifest in self.manifests]
        return {run: float(each.get("start_vectors", math.nan)) for run, each in zip(self.runs, totals, strict=True)}

    @property
    def started_with_vectors(self) -> bool:
        """True if some run exchanged vectors before its start."""
        return any(count > 0 for count in self.start_vectors.values())

    @cached_property
    def by_run(self) -> dict[str, dict[str, Any]]:
        """Manifests by the run's id, in the same order."""
        return dict(zip(self.runs, self.manifests, strict=True))

    @property
    def seeds(self) -> dict[str, int]:
        """Seed of every run."""
        return {run: manifest["seed"] for run, manifest in self.by_run.items()}

    @cached_property
    def complete(self) -> set[str]:
        """Ids of the runs that reached their end, found once."""
        return {run for run, manifest in self.by_run.items() if manifest.get("status") == "complete"}

    @cached_property
    def limited(self) -> set[str]:
        """Ids of the runs that were stopped by a limit: where they stopped says nothing of what they ran."""
        return {run for run, manifest in self.by_run.items() if manifest.get("status") == "limited"}


def load_all(root: Path, index: Mapping[str, Any] | None = None) -> Collection:
    """Read the latest experiment's runs in ``results/<scenario>``, or every run that is there where there is no index.

    Those of another experiment by its ``runs`` and ``grids``, as of `Store.write_index`. Raises `InputError` if there
    is no run, or a file is damaged.
    """
    root = at_home(root)
    store = Store(root)
    index = store.index() if index is None else dict(index)
    entries = store.entries(index=index)
    if not entries:
        raise no_run(root)
    tables = {name: _frame(dataset.read(root / "dataset", name, entries)) for name in dataset.NAMES}
    runs = [entry.run for entry in entries]
    for entry in entries:
        for name, said in (entry.manifest.get("own_metrics") or {}).items():
            show_as(name, said)
    failed, there = len(index.get("failed") or []), set(runs)
    gone = sum(name not in there for name in index.get("runs", []))
    missing = max(gone, (index.get("planned") or 0) - failed - len(runs))
    return Collection(
        **tables, manifests=[e.manifest for e in entries], runs=runs, index=index, missing=missing, root=root
    )


def no_run(root: Path) -> InputError:
    """Error for a folder of results that holds no complete run, is no folder, or does not exist."""
    wrong = "holds no complete run" if root.is_dir() else "is no folder" if root.exists() else "does not exist"
    return InputError(f"{root}: {wrong}; give a folder results/<scenario> of hushnet run")


def _frame(columns: Iterable[tuple[str, pa.ChunkedArray]]) -> Frame:
    """A data frame, made column by column."""
    converted = {}
    for name, column in columns:
        converted[name] = column.to_pandas()
        pa.default_memory_pool().release_unused()
    return pd.DataFrame(converted, copy=False)
