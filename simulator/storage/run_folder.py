"""One run on disk: its tables, and a manifest with the checksums of everything, itself included.

A folder holds ``manifest.json``, ``trace.parquet``, ``agents.parquet``, ``ledger.parquet`` and, where a run has further
tables, one ``<name>.parquet`` each. Identical tables give identical bytes; only the manifest, which carries timings,
differs between two runs of the same scenario. Under ``checksums`` it has the SHA-256 of every table; ``manifest`` among
them is that of its own text with this one entry empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa

from ...agents.errors import InputError
from .documents import Manifest, checked, read_document
from .files import checksum, file_checksum, json_text, own_bytes, parquet, put_folders, read_arrow

State = Literal["absent", "damaged", "complete"]

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
_OWN = re.compile(r'("manifest": )"([0-9a-f]{64})"')


@dataclass
class RunResult:
    """Everything that one run leaves behind."""

    manifest: dict[str, Any]
    """Resolved scenario, protocol, label, seeds, grid point, status, versions, hashes, timings, privacy."""
    trace: pd.DataFrame
    """Tidy measurements with the columns of `TRACE_SCHEMA`, in order of time."""
    agents: pd.DataFrame
    """One final row per agent."""
    ledger: pd.DataFrame
    """What was released; may be empty."""
    extras: dict[str, pd.DataFrame] = field(default_factory=dict)
    """Further tables by name, in lower case letters and ``_``."""


def write_runs(results: Mapping[Path, RunResult]) -> None:
    """Write runs by their folders so that each is there as a whole or not at all; older ones are replaced at the end.

    Raises `ValueError` if a further table has a name that is none or is taken, or a manifest could not be read again.
    """
    fill = {folder: partial(_fill, result) for folder, result in results.items()}
    put_folders(fill, lambda there: state(there) == "complete")


def _fill(result: RunResult, fresh: Path) -> None:
    for name in result.extras:
        if name in TABLES or not re.fullmatch("[a-z_]+", name):
            raise ValueError(f"{name!r} cannot be the name of a further table")
    tables, checksums = {name: getattr(result, name) for name in TABLES} | result.extras, {}
    for name, table in tables.items():
        content = parquet(table, TRACE_SCHEMA if name == "trace" else None)
        (fresh / f"{name}.parquet").write_bytes(content)
        checksums[f"{name}.parquet"] = checksum(content)
    manifest = {**result.manifest, "checksums": {**checksums, "manifest": "0" * 64}}
    parts = (f' "{name}": {_indented(json_text(part, indent=None))}' for name, part in sorted(manifest.items()))
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    try:
        checked(Manifest, json.loads(text), fresh / "manifest.json")
    except InputError as error:
        raise ValueError(f"its manifest could not be read again: {error.__cause__ or error}") from error
    (fresh / "manifest.json").write_bytes(_signed(text).encode())


def state(folder: Path) -> State:
    """State of a run's folder: absent, complete with every byte, or damaged, whatever the run's own status."""
    if not folder.is_dir():
        return "absent"
    try:
        _, checksums = read_manifest(folder)
        whole = {f"{name}.parquet" for name in TABLES} <= set(checksums)
        whole = whole and all(file_checksum(folder / name) == value for name, value in checksums.items())
    except (InputError, OSError):
        return "damaged"
    return "complete" if whole else "damaged"


def read_manifest(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The manifest as it was given, and the checksums of the tables' files by name.

    Raises `InputError` if it is missing, unreadable or not as it was written.
    """
    path = folder / "manifest.json"
    manifest = read_document(Manifest, path)
    checksums, text = manifest.pop("checksums", {}), own_bytes(path).decode()
    if checksums.pop("manifest", None) is not None and _signed(text) != text:
        raise InputError(f"{path}: is damaged, its checksum is not its own; run the scenario again")
    return manifest, checksums


def read_run(folder: Path) -> RunResult:
    """Read a run back; raises an `InputError` that names the file if one is missing or damaged."""
    manifest, checksums = read_manifest(folder)
    names = dict.fromkeys([*TABLES, *(name.removesuffix(".parquet") for name in checksums)])
    files = {name: f"{name}.parquet" for name in names}
    tables = {name: read_arrow(folder / file, checksums.get(file)).to_pandas() for name, file in files.items()}
    return RunResult(manifest, *(tables.pop(name) for name in TABLES), extras=tables)


@lru_cache(maxsize=256)
def _indented(text: str) -> str:
    """JSON as it stands in a manifest, most parts of which are those of others, too."""
    return json_text(json.loads(text), sort_keys=False).rstrip("\n").replace("\n", "\n ")


def _signed(text: str) -> str:
    """A manifest's text with its own checksum in its place; keys are sorted, so ``checksums`` come first."""
    bare = _OWN.sub(r'\1""', text, count=1)
    return bare.replace('"manifest": ""', f'"manifest": "{checksum(bare.encode())}"', 1)
