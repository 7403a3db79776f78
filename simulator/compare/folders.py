"""Results of one folder, or of several side by side, to be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ..analysis.results import Collection, load_all


def gather(folders: Sequence[Path]) -> Collection:
    """The runs of one results folder, or of several, whose protocols are then called ``<folder>:<protocol>``.

    Raises `InputError` if a folder holds no runs.
    """
    collections = [load_all(Path(folder)) for folder in folders]
    if len(collections) == 1:
        return collections[0]
    names = [Path(folder).resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    parts = [_prefixed(collection, name) for collection, name in zip(collections, names, strict=True)]
    labels = {key: label for part in parts for key, label in part.labels.items()}
    return Collection(
        trace=pd.concat([part.trace for part in parts], ignore_index=True),
        agents=pd.concat([part.agents for part in parts], ignore_index=True),
        manifests=[manifest for part in parts for manifest in part.manifests],
        runs=[run for part in parts for run in part.runs],
        index={**parts[0].index, "labels": labels},
        missing=sum(part.missing for part in parts),
    )


def _prefixed(collection: Collection, name: str) -> Collection:
    manifests = [
        {**m, "protocol": f"{name}:{m['protocol']}", "label": f"{name}: {m.get('label') or m['protocol']}"}
        for m in collection.manifests
    ]
    tables = {
        part: table.assign(run=f"{name}:" + table["run"].astype(str), protocol=f"{name}:" + table["protocol"])
        for part, table in (("trace", collection.trace), ("agents", collection.agents))
    }
    labels = {f"{name}:{key}": f"{name}: {label}" for key, label in collection.labels.items()}
    runs = [f"{name}:{run}" for run in collection.runs]
    return replace(collection, **tables, manifests=manifests, runs=runs, index={**collection.index, "labels": labels})
