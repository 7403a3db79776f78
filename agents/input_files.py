"""The one gate for files that a user names: regular files of a bounded size, read line by line.

A pipe would wait for ever; a device, a sparse file or a line without an end would fill the memory. So every file is
opened here, without waiting, and refused by what it is before anything of it is read.
"""

from __future__ import annotations

import codecs
import csv
import errno
import io
import math
import os
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from .errors import InputError, LimitReached, OutOfResources
from .packed import unpacked

Field = tuple[str | int, ...]

MOST_BYTES = 2**30
"""Bytes of a file that is read as a whole."""
MOST_STREAMED = 2**36
"""Bytes of a file of which only a part is kept at a time."""
LONGEST_LINE = 2**20
"""Characters of a line of a table or list."""
UNPACKED = 2**22
"""Bytes that a compressed file may hold whatever its own size."""
RATIO = 250
"""Bytes that it may hold beyond that, for each of its own: texts are packed to a tenth, zeros to a hundredth."""
BETWEEN = 4096
"""Lines between two looks at the clock."""
SHOWN = 60
"""Characters of a cell that a sentence shows."""

_TROUBLE = (
    "EIO", "ESTALE", "ENODEV", "ENXIO", "EREMOTEIO", "ENOLINK", "ENOTCONN", "ETIMEDOUT", "EHOSTDOWN", "ENOMEM",
    "ENOBUFS", "ENFILE", "EMFILE", "EBUSY", "ENOLCK",
)  # fmt: skip
AILING = tuple(getattr(errno, name) for name in _TROUBLE if hasattr(errno, name))
"""What a disk, a file server or a machine says that is in trouble: the file may be whole all the same."""

KINDS = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}


def paths_named(value: object) -> Iterator[str]:
    """Every text under the key ``path`` in a scenario's fields, at whatever depth."""
    if isinstance(value, dict):
        for key, item in cast(dict[str, object], value).items():
            if key == "path" and isinstance(item, str):
                yield item
            else:
                yield from paths_named(item)
    elif isinstance(value, list):
        for item in cast(list[object], value):
            yield from paths_named(item)


def beside(base: Path | None, path: str) -> Path:
    """The file that a scenario names: relative to the scenario's folder, and ``~`` is the user's home."""
    return (base or Path()) / at_home(Path(path))


def at_home(path: Path) -> Path:
    """A path with the user's home in place of a ``~`` that no shell has expanded, as in ``--out='~/r'``.

    Raises `InputError` if there is no such user, or no home; or if the name is no text in UTF-8, which no file could
    hold, or has letters that names of files lack here, as where the locale is POSIX.
    """
    try:
        str(path).encode()
        os.fsencode(path)
        return path.expanduser()
    except UnicodeEncodeError:
        shown = str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")
        encoding = sys.getfilesystemencoding().upper()
        how = "" if encoding == "UTF-8" else ", or a locale of UTF-8, as with LC_ALL=C.UTF-8"
        raise InputError(f"{shown}: is no name in {encoding}; choose or give it another one{how}") from None
    except RuntimeError:
        raise InputError(f"{path}: there is no home folder of that name; write ./{path} if it begins so") from None


_READING: ContextVar[tuple[float, float] | None] = ContextVar("reading", default=None)


@contextmanager
def read_within(seconds: float) -> Iterator[None]:
    """Bound the processor time in which the block reads lines of files; beyond, they raise a `LimitReached`."""
    token = _READING.set((time.thread_time() + seconds, seconds))
    try:
        yield
    finally:
        _READING.reset(token)


def _in_time(path: Path) -> None:
    until, seconds = _READING.get() or (math.inf, math.inf)
    if time.thread_time() > until:
        raise LimitReached(
            f"{path}: could not be read within {seconds:g} s of processor time, which limits.seconds admits; raise it, "
            "or give a smaller file",
            limit="seconds",
            most=seconds,
        )


def reason_of(error: Exception) -> str:
    """Return the reason why a file could not be read, without its path, which the sentence around it names."""
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def open_regular(
    path: Path, *, field: Field = (), what: str = "", most: int = MOST_BYTES, links: bool = True
) -> Iterator[io.BufferedReader]:
    """Open a regular file of so many bytes at most for reading; no more is read even if it grows or seems to be empty.

    Raises `InputError`, with the field of the scenario that names the file, and what it has to be in words such as ``as
    a CSV file``, if there is no such file, it may not be read, is a folder, pipe, device or socket, or is larger; or if
    the block that reads it meets an `OSError` or text that is not UTF-8, and `OutOfResources` if the disk or the
    machine is in trouble (`AILING`): nobody knows then what the file has. A link in a folder that somebody else may
    have made could point at anything, and is followed only if said so.
    """
    cannot = f"{path}: cannot be read" + (f" {what}" if what else "")
    try:
        if not links and path.is_symlink():
            raise _NoFileError("a link")
        with open(path, "rb", opener=_at_once) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > most:
                raise InputError(f"{cannot} (it has {size:,} bytes); at most {most:,} are read", field=field)
            yield io.BufferedReader(_Limited(stream, most, cannot, field))
    except _NoFileError as error:
        raise InputError(f"{cannot} (it is {error}); a regular file is needed", field=field) from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, ValueError) and not isinstance(error, UnicodeDecodeError) and "null" not in str(error):
            raise  # but for a name with a NUL in it, values are the reader's own business
        if isinstance(error, OSError) and error.errno in AILING:
            raise OutOfResources(f"{cannot} ({reason_of(error)}); see to that disk or machine and run again") from error
        raise InputError(f"{cannot} ({reason_of(error)})", field=field) from error


def read_bytes(path: Path, *, field: Field = (), what: str = "", most: int = MOST_BYTES, links: bool = True) -> bytes:
    """The content of a regular file; arguments and errors are those of `open_regular`."""
    with open_regular(path, field=field, what=what, most=most, links=links) as stream:
        return stream.read()


class OpenText(NamedTuple):
    """A text that is being read."""

    stream: BinaryIO
    """Its bytes, unpacked."""
    share: Callable[[], float]
    """Share of the file, in [0, 1], that was taken from the disk so far."""


@contextmanager
def open_text(path: Path, *, field: Field = (), what: str = "as text", most: int = MOST_BYTES) -> Iterator[OpenText]:
    """Open a regular file for reading what it holds, decompressed as it goes where its name says that it is compressed.

    Parameters and errors are those of `open_regular` and of `hushnet.agents.packed.unpacked`; neither the file nor what
    it holds may have more than ``most`` bytes.
    """
    with open_regular(path, field=field, what=what, most=most) as stream:
        raw = cast(_Limited, stream.raw)
        with unpacked(stream, path, field) as content:
            limited = io.BufferedReader(_Limited(content, most, f"{path}: cannot be read {what}", field, packed=raw))
            size = max(path.stat().st_size, 1)
            yield OpenText(stream if content is stream else limited, lambda: min(raw.taken / size, 1.0))


def read_lines(
    path: Path,
    *,
    field: Field = (),
    what: str = "as text",
    most: int = MOST_BYTES,
    longest: int = LONGEST_LINE,
) -> Generator[tuple[int, str], None, None]:
    """The numbered lines of a text in UTF-8, compressed or not, with their ends, one at a time.

    Raises `InputError` as `open_text` does, or if a line has more than ``longest`` characters or is not UTF-8; then
    with the line.
    """
    with open_text(path, field=field, what=what, most=most) as (stream, _):
        for number in range(1, most + 2):
            raw = stream.readline(4 * longest + 1)
            if not raw:
                return
            if number % BETWEEN == 0:
                _in_time(path)
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                if len(raw) > longest:  # cut inside of a character, perhaps; too long in any case
                    raise _too_long(path, number, longest, field) from None
                wide = number == 1 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
                encoding = "UTF-16" if wide else "WINDOWS-1252"
                mend = f"save it as UTF-8, as by: iconv -f {encoding} -t UTF-8 {path.name} > utf8-{path.name}"
                said = f"{path}:{number}: is not UTF-8 text (byte 0x{raw[error.start]:02x}); {mend}"
                raise InputError(said, field=field) from error
            if len(line) > longest:
                raise _too_long(path, number, longest, field)
            yield number, line


def csv_rows(path: Path, field: Field) -> list[tuple[str, list[str]]]:
    """Rows of a small CSV file as ``path:line`` and their cells; blank lines are left out.

    Raises `InputError` if the file cannot be read as CSV, with the line.
    """
    with closing(read_lines(path, field=field, what="as a CSV file")) as lines:
        reader = csv.reader(line for _, line in lines)
        try:
            return [(f"{path}:{reader.line_num}", [cell.strip() for cell in row]) for row in reader if row]
        except csv.Error as error:
            raise InputError(
                f"{path}:{reader.line_num}: cannot be read as a CSV file ({csv_problem(error)})", field=field
            ) from error


def csv_problem(error: csv.Error) -> str:
    """Describe the fault of a row in terms of the CSV file, where Python's message is about how a program opens it."""
    if "new-line character" in str(error):
        return "lines end in a carriage return alone; save the file with usual line ends"
    return str(error)


def parse_number(text: str) -> float:
    """The number that a cell holds, NaN if it holds none: Python's ``1_000`` is none of a data file's.

    >>> parse_number(" 1e-3 "), parse_number("1_000")
    (0.001, nan)
    """
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def shown(value: object) -> str:
    """A value as a sentence shows it: its `repr`, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


class _NoFileError(Exception):
    """Raised if a path that is to be opened is no regular file; the message says what it is."""


def _at_once(path: str, flags: int) -> int:
    """Open a regular file without waiting for anybody."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    raise _NoFileError(next((name for test, name in KINDS.items() if test(mode)), "no regular file"))


def _too_long(path: Path, number: int, longest: int, field: Field) -> InputError:
    return InputError(f"{path}:{number}: has more than {longest:,} characters; lines must be shorter", field=field)


class _Limited(io.RawIOBase):
    """A stream that gives no more than so many bytes, or so many for each that was `packed`; it complains of more."""

    def __init__(
        self, stream: BinaryIO, most: int, cannot: str, field: Field, *, packed: _Limited | None = None
    ) -> None:
        self._stream, self._left, self._cannot, self._most, self._field = stream, most, cannot, most, field
        self._packed = packed

    @property
    def taken(self) -> int:
        """Bytes up to where it is."""
        return self._most - self._left

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return isinstance(self._stream, io.BufferedReader)  # a file, and nothing that would be unpacked again

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place = self._stream.seek(offset, whence)
        self._left = self._most - place
        return place

    def readinto(self, buffer: bytearray | memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        chunk = self._stream.read(min(len(buffer), self._left + 1))
        if len(chunk) > self._left:
            raise InputError(f"{self._cannot} (it has more than {self._most:,} bytes)", field=self._field)
        self._left -= len(chunk)
        if self._packed is not None and self.taken > max(UNPACKED, RATIO * self._packed.taken):
            raise InputError(
                f"{self._cannot} (its {self._packed.taken:,} bytes hold more than {self.taken:,}, which no table is "
                "packed to); unpack it if this is meant",
                field=self._field,
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)
