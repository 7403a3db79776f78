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

from ...agents.errors import HushnetError, InputError, OutOfResources
from ...agents.input_files import AILING, MOST_BYTES, MOST_STREAMED, open_regular, read_bytes
from ...agents.scratch import scratch, write_new
from .declared import check_declared
from .plain_text import CONTROLS, visible

Frame = Any
"""A pandas DataFrame in an annotation: pandas' own annotations are unions that type checkers cannot follow."""

PARQUET: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
"""How every table is written."""

SYNCING = 16
"""Files at most that wait for the disk at once."""

MOST_TABLE = MOST_STREAMED
"""Bytes of a table; declared sizes are compared with what is there before anything is read."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REFUSING = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What a disk says that may not be written, or not any more."""
IMPOSSIBLE = (errno.EISDIR, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP)
"""What a path says where nothing can be put."""


def out_of_order(error: OSError, place: object) -> OutOfResources | None:
    """An error of the disk, or of the machine, in one sentence with its place; None if it is another one."""
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
    """Say in one sentence that a folder cannot be written; see `in_a_sentence`."""
    try:
        yield
    except OSError as error:
        raise in_a_sentence(error, place) from error


def in_a_sentence(error: OSError, place: object) -> HushnetError:
    """Whatever a system says of a file or a name, in one sentence: known numbers choose words, and none is left out.

    It is an `InputError` if nothing can be put there: a part of the path is a file, or a name is too long, for
    instance.
    """
    found = out_of_order(error, place)
    if found is not None:
        return found
    reason = error.strerror or str(error) or type(error).__name__
    named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if error.errno == errno.EEXIST and named is not None and named.is_symlink():
        reason = f"{named} is a link to what is not there"
    if error.errno in IMPOSSIBLE:
        return InputError(f"{place}: cannot be written ({reason}); choose another place")
    return OutOfResources(f"{place}: could not be read or written ({reason}); what was complete is kept")


def put_folder(folder: Path, fill: Callable[[Path], None], whole: Callable[[Path], bool]) -> None:
    """`put_folders` of one."""
    put_folders({folder: fill}, whole)


def put_folders(folders: Mapping[Path, Callable[[Path], None]], whole: Callable[[Path], bool]) -> None:
    """Make folders so that each is there as a whole or not at all; older ones are replaced at the end.

    Parents are made. What writes a folder's files into the one that it is given need not wait for the disk; `whole` is
    asked where somebody else has put the same folder there in the meantime.
    """
    fresh = {folder: scratch(folder) for folder in folders}
    stale = {folder: path.with_name(f"{path.name}.old") for folder, path in fresh.items()}
    try:
        for folder, fill in folders.items():
            folder.parent.mkdir(parents=True, exist_ok=True)
            fresh[folder].mkdir()
            fill(fresh[folder])
        written = [path for one in fresh.values() for path in (*one.iterdir(), one)]
        with ThreadPoolExecutor(min(len(written), SYNCING)) as pool:  # few commits of the disk's, not many
            list(pool.map(sync, written))
        for folder, path in fresh.items():
            with suppress(FileNotFoundError):
                folder.rename(stale[folder])
            try:
                path.rename(folder)
            except OSError:
                if not whole(folder):
                    if stale[folder].exists():
                        stale[folder].rename(folder)
                    raise
        for parent in {folder.parent for folder in folders}:
            sync(parent)
    finally:
        for folder, path in fresh.items():
            remove(path)
            if folder.exists():
                remove(stale[folder])


def remove(path: Path) -> None:
    """Remove a folder with all that is in it, or whatever else stands there: a pipe would be waited for as a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def put_file(content: bytes, path: Path, *, within: Path | None = None) -> None:
    """Write a file so that it is there as a whole or not at all; an older one is replaced. Parents are made.

    A link that a user names is followed, so that what it points at is replaced and not the link; `within` a folder of
    results none is, for whoever made it may have it point at anything. Raises `InputError` if something stands there
    that is not a file, such as a folder, a device, a pipe, or links in a circle.
    """
    named, path = path, Path(os.path.realpath(path))
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError(f"{path}: is not a regular file, and cannot be replaced by one; choose another name")
    if within is not None:
        no_links(named, within)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = scratch(path)
    try:
        write_new(content, fresh)
        os.replace(fresh, path)
        sync(path.parent)
    finally:
        fresh.unlink(missing_ok=True)


def no_links(path: Path, within: Path) -> None:
    """Refuse a path, by an `InputError`, that has a link below a folder of results; the folder itself may be one."""
    below = path.relative_to(within).parts if path.is_relative_to(within) else ()
    for count in range(len(below)):
        part = within.joinpath(*below[: count + 1])
        if part.is_symlink():
            raise InputError(f"{part}: is a link, and results have none; put what it points at there, or remove it")


@contextmanager
def _ours() -> Iterator[None]:
    """Read a file that hushnet wrote: one that may not be read is not damaged, and never to be written anew."""
    try:
        yield
    except InputError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in REFUSING:
            raise OutOfResources(f"{error}; what is there is kept, so see that it may be read and run again") from error
        raise


def own_bytes(path: Path, *, most: int = MOST_BYTES) -> bytes:
    """The content of a file of hushnet's, which is no link; raises like `read_json`."""
    with _ours():
        return read_bytes(path, most=most, links=False)


def file_checksum(path: Path, *, links: bool = False) -> str:
    """The `checksum` of a file of any size; an `InputError` if it is no regular one.

    Links of users are followed, and hushnet's own files are none. Raises `OutOfResources` if nobody knows what it has:
    it may not be read, or the disk is in trouble.
    """
    with _ours(), open_regular(path, most=MOST_TABLE, links=links) as stream:
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
    columns = {str(name): pa.array(column, from_pandas=True) for name, column in table.items()}
    own = pa.schema([(name, _storage_type(column.type)) for name, column in columns.items()])
    wanted = own if schema is None else schema
    given = ((columns[field.name], field.type) for field in wanted)
    packed = pa.table([one if one.type == kind else one.cast(kind) for one, kind in given], wanted)
    sink = pa.BufferOutputStream()
    # Texts, categories among them, are written as dictionaries and read as texts; their extremes are of no use.
    kept = packed.schema
    texts: Any = [one.name for one in kept if pa.types.is_string(one.type) or pa.types.is_dictionary(one.type)]
    others: Any = [name for name in kept.names if name not in texts]
    pq.write_table(packed, sink, use_dictionary=texts, write_statistics=others, store_schema=False, **PARQUET)
    return sink.getvalue().to_pybytes()


def _storage_type(given: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(given):
        return pa.string()
    return pa.float64() if pa.types.is_null(given) else given


def read_arrow(path: Path, expected: str | None = None) -> pa.Table:
    """A parquet table with the expected `checksum`, or else those of its pages, or an `InputError` with the file."""
    try:
        content = own_bytes(path, most=MOST_TABLE)
        if expected is not None and checksum(content) != expected:
            raise OSError("its checksum is not the one in the manifest")
        unchecked = expected is None
        with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=unchecked, pre_buffer=False) as file:
            check_declared(file.metadata, len(content))
            return file.read(use_threads=False)
    except (OSError, InputError, pa.ArrowException) as error:
        raise _damaged(path, error) from error


@contextmanager
def open_table(path: Path) -> Iterator[pq.ParquetFile]:
    """A parquet table of hushnet's of which a part is read at a time; raises like `read_arrow`.

    Arrow is given a stream and never the path, in which it would see a scheme (``s3:x``) or a ``~``.
    """
    try:
        with (
            _ours(),
            open_regular(path, most=MOST_TABLE, links=False) as stream,
            pq.ParquetFile(stream, page_checksum_verification=True, pre_buffer=False) as file,
        ):
            check_declared(file.metadata, path.stat().st_size)
            yield file
    except (OSError, InputError, pa.ArrowException) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    reason = (str(error).splitlines() or [type(error).__name__])[0].removeprefix(f"{path}: ").rstrip(".")
    return InputError(f"{path}: is damaged or missing ({reason}); run the scenario again")


def read_table(path: Path) -> pd.DataFrame:
    """A parquet table as pandas has it; see `read_arrow`."""
    return read_arrow(path).to_pandas()


def write_text(text: str, path: Path) -> None:
    """Write a text and wait until it is on the disk."""
    path.write_bytes(text.encode())
    sync(path)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or an `InputError` that names the file."""
    try:
        text = own_bytes(path).decode()
        content = json.loads(text)
        if "\\u" in text:
            json_text(content).encode()  # half of a pair of surrogates is no text that could be printed
    except (OSError, ValueError, InputError, RecursionError) as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise InputError(f"{path}: is damaged or missing ({reason}); run the scenario again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: is damaged, it holds no JSON object; run the scenario again")
    return visible(content) if CONTROLS.search(text) else content


def put_bound(found: Mapping[str, Any], of: str, path: Path, *, within: Path) -> None:
    """Keep what was found out about something, with a checksum that is bound to what it is of; see `put_file`."""
    text = json_text(found, indent=None)
    kept = {"of": of, "found": found, "checksum": checksum(f"{of} {text}".encode())}
    put_file(json_text(kept).encode(), path, within=within)


def read_bound(path: Path, of: str) -> dict[str, Any] | None:
    """Read what `put_bound` has kept; None if nothing is there, it is damaged, or it is of something else."""
    try:
        kept = read_json(path)
    except HushnetError:  # finding it out again costs time alone
        return None
    found = kept.get("found")
    if not isinstance(found, dict) or kept.get("of") != of:
        return None
    return found if kept.get("checksum") == checksum(f"{of} {json_text(found, indent=None)}".encode()) else None


def sync(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk (Windows cannot do folders)."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
