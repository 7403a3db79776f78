"""Adapters to the program that calls hushnet: streams that take any text, and a backend that draws to files.

Another program's environment is no reason to fail: letters that an output cannot hold are replaced by plain forms, a
closed output takes nothing, and what a notebook asks of matplotlib concerns its own windows.
"""

from __future__ import annotations

import codecs
import faulthandler
import io
import os
import sys
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BACKEND = "MPLBACKEND", "agg"
"""Environment variable by which other programs choose how matplotlib shows windows; here nothing is shown."""

PLAIN = {
    "\N{WARNING SIGN}": "!",
    "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{PLUS-MINUS SIGN}": "+-",
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{INFINITY}": "inf",
    "\N{GREEK SMALL LETTER EPSILON}": "epsilon",
    "\N{GREEK SMALL LETTER DELTA}": "delta",
    "\N{RIGHTWARDS ARROW}": "->",
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{BULLET}": "*",
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{NO-BREAK SPACE}": " ",
}
"""What stands for letters that an output cannot hold."""

HANDLER = "hushnet.plain"


def in_plain_forms(error: UnicodeError) -> tuple[str, int]:
    """Replace letters that an encoding lacks: by `PLAIN`, by the letter without its accent, or by a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(map(_plain, letters)), error.end


def _plain(letter: str) -> str:
    if letter in PLAIN:
        return PLAIN[letter]
    if "\N{BOX DRAWINGS LIGHT HORIZONTAL}" <= letter <= "\N{BOX DRAWINGS HEAVY LEFT AND LIGHT RIGHT}":
        return "-" if "HORIZONTAL" in unicodedata.name(letter) else "|"
    bare = unicodedata.normalize("NFKD", letter)[0]
    return bare if bare.isascii() else "?"


class _Heedless(io.FileIO):
    """A standard error to which whatever is written counts as written: there is nobody else to tell."""

    @override
    def write(self, content: ReadableBuffer, /) -> int:
        try:
            return super().write(content) or 0
        except OSError:
            return memoryview(content).nbytes


def prepare() -> None:
    """Make the standard streams take whatever is written to them, and matplotlib draw to files alone."""
    os.environ[BACKEND[0]] = BACKEND[1]
    codecs.register_error(HANDLER, in_plain_forms)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as the process
        elif name == "stderr" and stream is sys.__stderr__:
            heedless = io.BufferedWriter(_Heedless(stream.fileno(), "w", closefd=False))
            sys.stderr = io.TextIOWrapper(heedless, encoding=stream.encoding, errors=HANDLER, line_buffering=True)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)
    with suppress(OSError, ValueError, AttributeError):  # a standard error that is no file
        faulthandler.enable()  # so that a crash in native code says where it was


def flushed() -> None:
    """Write out what standard output still holds; raises the `OSError` that Python would otherwise meet at its end."""
    if sys.stdout is None or sys.stdout.closed:  # by a protocol
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        discard()
        error.filename = error.filename or "standard output"
        raise


def discard() -> None:
    """Have what is still buffered for a standard output that cannot take it go nowhere."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # no file at all, as in a test
        return
