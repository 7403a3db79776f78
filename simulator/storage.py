"""Files that are whole, durable and the same for the same content: parquet tables and strict JSON."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..agents.errors import InputError

Frame = Any
"""A pandas DataFrame in an annotation: pandas' own annotations are unions that type checkers cannot follow."""


def json_text(value: Any, *, indent: int | None = 1, sort_keys: bool = True) -> str:
    """Strict JSON; non-finite numbers become the texts "inf", "-inf" and "nan", floats keep every bit."""
    text = json.dumps(_plain(value), indent=indent, sort_keys=sort_keys, ensure_ascii=False, allow_nan=False)
    return text if indent is None else text + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=str)
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def write_table(table: pd.DataFrame, path: Path, schema: pa.Schema | None) -> None:
    """Parquet with nothing in it that depends on how the frame was made: no index, no pandas metadata."""
    if schema is not None:
        packed = pa.Table.from_pandas(table, schema=schema, preserve_index=False)
    else:
        packed = pa.Table.from_pandas(table, preserve_index=False)
        packed = packed.cast(pa.schema([(column.name, _storage_type(column.type)) for column in packed.schema]))
    with path.open("wb") as stream:
        pq.write_table(packed.replace_schema_metadata(None), stream, compression="zstd", write_page_checksum=True)
        stream.flush()
        os.fsync(stream.fileno())


def _storage_type(given: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(given) or pa.types.is_dictionary(given):
        return pa.string()
    return pa.float64() if pa.types.is_null(given) else given


def read_table(path: Path) -> pd.DataFrame:
    """A parquet table, checked page by page, or an `InputError` that names the file."""
    try:
        return pq.read_table(path, page_checksum_verification=True).to_pandas()
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{path}: is damaged or missing ({reason}); delete its folder and run again") from error


def write_text(text: str, path: Path) -> None:
    """Write a text and wait until it is on the disk."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or an `InputError` that names the file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is damaged or missing ({error}); run the scenario again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: is damaged, it holds no JSON object; run the scenario again")
    return content


def sync(folder: Path) -> None:
    """Make renames and new names in a folder last, where the system can (Windows cannot open folders)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
