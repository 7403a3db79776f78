"""Files that are whole, durable and the same for the same content: parquet tables, strict JSON and plain YAML."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ...agents.errors import InputError, OutOfResources
from ...agents.files import AILING, MOST_STREAMED, open_regular, read_bytes
from ...agents.scratch import scratch
from .plain_text import CONTROLS, visible

Frame = Any
"""A pandas DataFrame in an annotation: pandas' own annotations are unions that type checkers cannot follow."""

PARQUET: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
"""How every table is written."""

MOST_TABLE = MOST_STREAMED
"""Bytes of a table; declared sizes are compared with what is there before anything is read."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REFUSING = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What a disk says that may not be written, or not any more."""
IMPOSSIBLE = (errno.EISDIR, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP)
"""What a path says where nothing can be put."""


def out_of_order(error: OSError, place: object) -> OutOfResources | None:
    """An error of the disk, or of the machine, in one sentence; None if it is another one.

    Parameters
    ----------
    error : OSError
    place : object
        Where it happened, unless the error knows better.
    """
    kinds = {FULL: "make room there", REFUSING: "see that it may be written", AILING: "see to that disk or machine"}
    for numbers, remedy in kinds.items():
        if error.errno in numbers:
            return OutOfResources(
                f"{place}: could not be {'read or ' * (numbers is AILING)}written ({error.strerror}); what was "
                f"complete is kept, so {remedy} and run again to go on"
            )
    return None


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Say in one sentence that a folder cannot be written.

    Raises
    ------
    OutOfResources
        If the disk is full, may not be written or is in trouble; see `out_of_order`.
    InputError
        If nothing can be put there: a part of the path is a file, for instance.
    """
    try:
        yield
    except OSError as error:
        said = out_of_order(error, place)
        if said is not None:
            raise said from error
        if error.errno in IMPOSSIBLE:
            raise InputError(f"{place}: cannot be written ({error.strerror}); choose another place") from error
        raise


def put_folder(folder: Path, fill: Callable[[Path], None], whole: Callable[[Path], bool]) -> None:
    """Make a folder so that it is there as a whole or not at all; an older one is replaced at the end.

    Parameters
    ----------
    folder : Path
        Parents are made.
    fill : callable
        Writes the files into the folder that it is given; they need not be on the disk yet.
    whole : callable
        Whether a folder has everything; asked where somebody else has put the same one there in the meantime.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = scratch(folder)
    stale = fresh.with_name(f"{fresh.name}.old")
    try:
        fresh.mkdir()
        fill(fresh)
        with ThreadPoolExecutor(len(files := [*fresh.iterdir()]) + 1) as pool:  # one commit of the disk's, not many
            list(pool.map(sync, [*files, fresh]))
        with suppress(FileNotFoundError):
            folder.rename(stale)
        try:
            fresh.rename(folder)
        except OSError:
            if not whole(folder):
                if stale.exists():
                    stale.rename(folder)
                raise
        sync(folder.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(stale, ignore_errors=True)


def put_file(content: bytes, path: Path) -> None:
    """Write a file so that it is there as a whole or not at all; an older one is replaced. Parents are made.

    A link is followed, so that what it points at is replaced and not the link.

    Raises
    ------
    InputError
        If something stands there that is not a file, such as a folder, a device, a pipe, or links in a circle.
    """
    path = Path(os.path.realpath(path))
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError(f"{path}: is not a regular file, and cannot be replaced by one; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = scratch(path)
    try:
        with fresh.open("xb") as stream:
            stream.write(content)
        sync(fresh)
        os.replace(fresh, path)
        sync(path.parent)
    finally:
        fresh.unlink(missing_ok=True)


@contextmanager
def _ours() -> Iterator[None]:
    """Read a file that hushnet wrote; one that may not be read is not damaged, and never to be written anew.

    Raises
    ------
    OutOfResources
        If it may not be read.
    """
    try:
        yield
    except InputError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in REFUSING:
            raise OutOfResources(f"{error}; what is there is kept, so see that it may be read and run again") from error
        raise


def file_checksum(path: Path) -> str:
    """The `checksum` of a file of hushnet's, of any size; an `InputError` if it is no regular one.

    Raises
    ------
    OutOfResources
        If nobody knows what it has: it may not be read, or the disk is in trouble.
    """
    with _ours(), open_regular(path, most=MOST_TABLE) as stream:
        digest = hashlib.sha256()
        while chunk := stream.read(2**20):
            digest.update(chunk)
        return digest.hexdigest()


def checksum(content: bytes | memoryview) -> str:
    """SHA-256 in hexadecimal digits, as ``sha256sum`` prints it."""
    return hashlib.sha256(content).hexdigest()


def json_text(value: Any, *, indent: int | None = 1, sort_keys: bool = True) -> str:
    """Strict JSON; non-finite numbers become the texts "inf", "-inf" and "nan", floats keep every bit."""
    text = json.dumps(_plain(value), indent=indent, sort_keys=sort_keys, ensure_ascii=False, allow_nan=False)
    return text if indent is None else text + "\n"


def yaml_text(resolved: Mapping[str, Any]) -> str:
    """A scenario as YAML that ``hushnet run`` reads."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.width = 110
    yaml.sort_base_mapping_type_on_output = False  # pyright: ignore[reportAttributeAccessIssue]
    stream = io.StringIO()
    yaml.dump(resolved, stream)
    return stream.getvalue()


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


def parquet(table: pd.DataFrame, schema: pa.Schema | None = None) -> bytes:
    """A table as parquet with nothing in it that depends on how the frame was made: no index, no pandas metadata."""
    if schema is None:
        columns = {str(name): pa.array(column, from_pandas=True) for name, column in table.items()}
        packed = pa.table({name: column.cast(_storage_type(column.type)) for name, column in columns.items()})
    else:
        columns = [pa.array(table[name], from_pandas=True) for name in schema.names]
        packed = pa.table([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema)
    sink = pa.BufferOutputStream()
    pq.write_table(packed, sink, **PARQUET)
    return sink.getvalue().to_pybytes()


def _storage_type(given: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(given) or pa.types.is_dictionary(given):
        return pa.string()
    return pa.float64() if pa.types.is_null(given) else given


def read_arrow(path: Path, expected: str | None = None) -> pa.Table:
    """A parquet table, or an `InputError` that names the file.

    Parameters
    ----------
    path : Path
    expected : str, optional
        Its `checksum`; without one the pages' own are verified.
    """
    try:
        with _ours():
            content = read_bytes(path, most=MOST_TABLE)
        if expected is not None and checksum(content) != expected:
            raise OSError("its checksum is not the one in the manifest")
        unchecked = expected is None
        with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=unchecked, pre_buffer=False) as file:
            return file.read(use_threads=False)
    except (OSError, InputError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].removeprefix(f"{path}: ").rstrip(".")
        raise InputError(f"{path}: is damaged or missing ({reason}); run the scenario again") from error


def read_table(path: Path, expected: str | None = None) -> pd.DataFrame:
    """A parquet table as pandas has it; see `read_arrow`."""
    return read_arrow(path, expected).to_pandas()


def write_text(text: str, path: Path) -> None:
    """Write a text and wait until it is on the disk."""
    path.write_bytes(text.encode())
    sync(path)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or an `InputError` that names the file."""
    try:
        with _ours():
            text = read_bytes(path).decode()
        content = json.loads(text)
        if "\\u" in text:
            json_text(content).encode()  # half of a pair of surrogates is no text that could be printed
    except (OSError, ValueError, InputError, RecursionError) as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise InputError(f"{path}: is damaged or missing ({reason}); run the scenario again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: is damaged, it holds no JSON object; run the scenario again")
    return visible(content) if CONTROLS.search(text) else content


def sync(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk (Windows cannot do folders)."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
