"""All runs of an experiment as one dataset: ``dataset/trace.parquet`` and ``dataset/agents.parquet``.

Each is a plain file that pandas, polars and duckdb read: the runs' tables one after the other in the order of the
index, with the run's id in the column ``run`` and one column per swept parameter. It is a copy; the runs' own folders
stay what counts. ``dataset.json`` says what it was made of, so that nobody reads a dataset of yesterday's runs, and
under ``names`` the labels and units that the scenario's style gives swept parameters, and users their own metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...agents.errors import InputError
from .documents import DatasetOrigin, read_document
from .files import (
    PARQUET,
    checksum,
    file_checksum,
    json_text,
    no_links,
    open_table,
    put_folder,
    read_arrow,
)  # fmt: skip
from .run_folder import TRACE_SCHEMA

NAMES = ("trace", "agents")
ROWS = 50_000
"""Rows that are held in memory while a dataset is written, and of one row group of its files."""
PIECES = 200
"""Tables that are held before they are copied into one: each costs kilobytes, however few its rows."""


@dataclass(frozen=True)
class Entry:
    """A run's place in an experiment."""

    run: str
    """Its id; where one run stands for several grid points, ``<id>#2`` and so on from the second."""
    folder: Path
    """Its files."""
    manifest: dict[str, Any]
    """Its manifest, with this place's swept values under ``grid``."""
    checksums: Mapping[str, str]
    """Of its tables, by the name of the file."""

    @property
    def grid(self) -> Mapping[str, Any]:
        """Swept values by path."""
        return self.manifest.get("grid") or {}


def grid_table(grids: Sequence[Mapping[str, Any]]) -> pa.Table:
    """One row per run and one column per swept path.

    A column has whole numbers, numbers, truth values or texts, whichever all its values are; numbers among texts, lists
    and mappings appear as JSON text. Where a path is not set for a run, or set to null, it is null.
    """
    paths = list(dict.fromkeys(path for grid in grids for path in grid))
    return pa.table({path: _column([grid.get(path) for grid in grids]) for path in paths})


def tables(name: str, entries: Sequence[Entry]) -> Iterator[pa.Table]:
    """The runs' tables of one name with run and grid columns, all of one schema, read one at a time.

    Raises `InputError` if a file is missing or damaged, or is no trace.
    """
    grid = grid_table([entry.grid for entry in entries])
    schema = _schema(name, entries)
    for row, entry in enumerate(entries):
        path = entry.folder / f"{name}.parquet"
        table = read_arrow(path, entry.checksums.get(path.name))
        absent = [column for column in TRACE_SCHEMA.names if column not in table.column_names]
        if name == "trace" and absent:
            raise InputError(f"{path}: is no trace, it lacks the columns {', '.join(absent)}")
        table = _conformed(table, schema)
        columns = {"run": pa.scalar(entry.run), **{path: grid[path][row] for path in grid.column_names}}
        for column, value in columns.items():
            table = table.append_column(column, pa.repeat(value, len(table)))
        yield table


def word_for(path: str, words: Mapping[str, str] | None) -> str | None:
    """Look up the text for a swept parameter by its path or by the end of it; None if there is none."""
    return next((said for name, said in (words or {}).items() if path == name or path.endswith(f".{name}")), None)


def names(entries: Sequence[Entry], style: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Labels, units and directions of swept parameters and of users' own metrics; of what has neither, nothing."""
    found: dict[str, dict[str, Any]] = {}
    for path in dict.fromkeys(path for entry in entries for path in entry.grid):
        said = {"label": word_for(path, style.get("labels")), "unit": word_for(path, style.get("units"))}
        if any(said.values()):
            found[path] = {name: text for name, text in said.items() if text}
    for entry in entries:
        found |= entry.manifest.get("own_metrics") or {}
    return found


def write(folder: Path, entries: Sequence[Entry], style: Mapping[str, Any] | None = None) -> bool:
    """Write ``results/<scenario>/dataset`` as a whole or not at all; returns False if it was there already.

    Its rows have the order of the entries; the style of the scenario's figures has ``labels`` and ``units``.
    """
    called = names(entries, style or {})
    if not entries or _whole(folder, entries, called):
        return False

    def fill(fresh: Path) -> None:
        checksums = {}
        for name in NAMES:
            path = fresh / f"{name}.parquet"
            _write_table(path, tables(name, entries))
            checksums[path.name] = file_checksum(path)
        about = {"made_of": _key(entries), "checksums": checksums, "names": called}
        (fresh / "dataset.json").write_text(json_text(about))

    put_folder(folder, fill, lambda there: _whole(there, entries, called))
    return True


def read(folder: Path, name: str, entries: Sequence[Entry]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """The columns of the table of all runs: from the dataset if it is one of just these runs, else from their folders.

    They come one by one, so that who converts them needs not hold a wide sweep twice.
    """
    if _whole(folder, entries):
        with open_table(folder / f"{name}.parquet") as file:
            for column in file.schema_arrow.names:
                table = file.read(columns=[column], use_threads=False)
                yield table.column_names[0], table.column(0)
    else:
        table = pa.concat_tables(_groups(tables(name, entries)))
        yield from zip(table.column_names, table.columns, strict=True)


def _column(values: list[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if kinds in ({bool}, {int}, {float}, {int, float}):
        try:
            return pa.array([float(v) if float in kinds and v is not None else v for v in values])
        except OverflowError:
            pass  # a whole number beyond 64 bits
    texts = [v if v is None or isinstance(v, str) else json_text(v, indent=None) for v in values]
    return pa.array(texts, type=pa.string())


def _schema(name: str, entries: Sequence[Entry]) -> pa.Schema:
    if name == "trace":
        return TRACE_SCHEMA
    found = dict.fromkeys(_schema_of(entry.folder / f"{name}.parquet") for entry in entries)
    return pa.unify_schemas(list(found), promote_options="permissive")


def _schema_of(path: Path) -> pa.Schema:
    with open_table(path) as file:
        return file.schema_arrow


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with a schema's columns; those that it has not are null."""
    columns = [
        table[column.name].cast(column.type) if column.name in table.column_names else pa.nulls(len(table), column.type)
        for column in schema
    ]
    return pa.table(columns, schema=schema)


def _write_table(path: Path, pieces: Iterator[pa.Table]) -> None:
    groups = _groups(pieces)
    first = next(groups)
    with path.open("wb") as stream, pq.ParquetWriter(stream, first.schema, **PARQUET) as writer:
        for group in chain([first], groups):
            writer.write_table(group, row_group_size=len(group) or None)


def _groups(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Tables joined to about `ROWS` rows each."""
    held, rows = [], 0
    for piece in pieces:
        held.append(piece)
        rows += len(piece)
        if rows >= ROWS:
            yield pa.concat_tables(held)
            held, rows = [], 0
        elif len(held) == PIECES:
            held = [pa.concat_tables(held).combine_chunks()]
    if held:
        yield pa.concat_tables(held)


def _key(entries: Iterable[Entry]) -> str:
    """A hash of all that a dataset is made of."""
    parts = [[e.run, e.grid, [e.checksums.get(f"{name}.parquet") for name in NAMES]] for e in entries]
    return checksum(json_text(parts, indent=None, sort_keys=False).encode())


def _whole(folder: Path, entries: Sequence[Entry], called: Mapping[str, Any] | None = None) -> bool:
    """True if a dataset is one of just these runs, with these names if it matters."""
    no_links(folder, folder.parent)
    try:
        about = read_document(DatasetOrigin, folder / "dataset.json")
    except InputError:
        return False
    files = {f"{name}.parquet": folder / f"{name}.parquet" for name in NAMES}
    if called is not None and about["names"] != called:
        return False
    return about["made_of"] == _key(entries) and all(
        path.is_file() and file_checksum(path) == about["checksums"].get(name) for name, path in files.items()
    )
