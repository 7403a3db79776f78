"""Compressed texts: read as what they hold where their name says so, and refused in one sentence where it does not.

Nothing is unpacked to a disk or as a whole: what a reader takes is decompressed as it goes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .errors import InputError


class Format(NamedTuple):
    """A way of compressing files."""

    name: str
    begins: bytes
    """How every such file begins."""
    unpack: Callable[[Any], Any] | None = None
    """From a stream of packed bytes to one of unpacked bytes; None for what is not read."""


FORMATS: dict[str, Format] = {
    ".bz2": Format("bzip2", b"BZh", bz2.BZ2File),
    ".gz": Format("gzip", b"\x1f\x8b", lambda packed: gzip.GzipFile(fileobj=packed)),
    ".xz": Format("xz", b"\xfd7zXZ\x00", lzma.LZMAFile),
    ".zip": Format("zip", b"PK\x03\x04"),
    ".zst": Format("zstandard", b"\x28\xb5\x2f\xfd"),
}
"""Ways of unpacking, by the ending of names."""

ZIP, WORKBOOK, BEGINNING = b"PK\x03\x04", b"[Content_Types].xml", 4096
"""How a workbook of Excel begins, what its list of parts is called there, and within how many bytes."""

OTHERS: dict[bytes, tuple[str, str]] = {
    ZIP: ("a workbook (xlsx)", "read_excel"),
    b"\xd0\xcf\x11\xe0": ("a workbook or document of an old Office (xls)", "read_excel"),
    b"PAR1": ("a parquet file", "read_parquet"),
    b"ARROW1": ("a feather or Arrow file", "read_feather"),
    b"SQLite format 3": ("an SQLite database", ""),
    b"\x89HDF": ("an HDF5 file", ""),
    b"\x93NUMPY": ("an array of numpy (npy)", ""),
    b"MATLAB 5": ("a file of MATLAB (mat)", ""),
    **dict.fromkeys((b"<stata_dta>", b"r\x01\x01\x00", b"r\x02\x01\x00"), ("a file of Stata (dta)", "read_stata")),
}
"""Other programs' files, by how they begin, with the function of pandas that reads them, or none; a zip is one of a
workbook if it names its parts."""

READ = tuple(ending for ending, known in FORMATS.items() if known.unpack is not None)
"""Endings of compressed files that are read as they are."""


def located(folder: Path, name: str) -> Path | None:
    """The file of a name in a folder, or its compressed form there; None if neither is."""
    return next((file for ending in ("", *READ) if (file := folder / f"{name}{ending}").is_file()), None)


def plain_name(file: Path) -> str:
    """A file's name without what says that it is compressed.

    >>> plain_name(Path("a9a.t.bz2")), plain_name(Path("a9a.t"))
    ('a9a.t', 'a9a.t')
    """
    return file.stem if file.suffix.lower() in READ else file.name


@contextmanager
def unpacked(stream: io.BufferedReader, path: Path, field: tuple[str | int, ...]) -> Iterator[Any]:
    """Open the content of a file's stream of bytes, decompressed if the file's name ends in one of `READ`.

    Raises `InputError`, with the field that names the file, if it is compressed and its name does not say so, or the
    other way round; or if what is compressed turns out to be damaged or cut off, inside the block.
    """
    for begins, (what, reader) in OTHERS.items():
        if stream.peek(BEGINNING)[:BEGINNING].startswith(begins) and (
            begins != ZIP or WORKBOOK in stream.peek(BEGINNING)
        ):
            line = f"import pandas; pandas.{reader}({str(path)!r}).to_csv('{path.stem}.csv', index=False)"
            how = f', as by: python3 -c "{line}"' if reader else ""
            raise InputError(f"{path}: is {what}; a text is needed, so save it as CSV{how}", field=field)
    begin, named = stream.peek(8)[:8], FORMATS.get(path.suffix.lower())
    ending, found = next((item for item in FORMATS.items() if begin.startswith(item[1].begins)), ("", None))
    if found is None and named is not None and named.unpack is not None:
        raise InputError(f"{path}: is not compressed by {named.name}, as its name says; rename it", field=field)
    if found is not None and (found is not named or found.unpack is None):
        remedy = "unpack it" if found.unpack is None else f"unpack it, or name it {plain_name(path)}{ending}"
        raise InputError(f"{path}: is compressed ({found.name}); {remedy}", field=field)
    if found is None or found.unpack is None:
        yield stream
        return
    try:
        with found.unpack(stream) as content:
            yield content
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: is damaged or cut off, as {found.name} ({error})", field=field) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise InputError(f"{path}: is damaged or cut off, as {found.name} ({error})", field=field) from error
