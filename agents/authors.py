"""Places in a user's own code, a file and a line each, for error messages about it; and guards around such code."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType
from typing import Any

from .errors import INTERRUPTED, words_of

HOUSE = tuple(f"{Path(__file__).parents[1] / storey}{os.sep}" for storey in ("agents", "protocols", "simulator"))
LIBRARIES = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib"))
"""Folders of code that is no author's own."""
INSTALLED = {"site-packages", "dist-packages"}
"""Names of folders with libraries, of whatever environment."""


def place(file: str, line: int) -> str:
    """A file, a line and what is written there."""
    written = linecache.getline(file, line).strip()
    return f"{Path(file).name}:{line}" + (f", `{written}`" if written else "")


def place_of(function: Callable[..., Any]) -> str:
    """Return the file and the line at which a user's function begins, below its decorators."""
    code = function.__code__
    lines = range(code.co_firstlineno, code.co_firstlineno + 10)
    below = (line for line in lines if not linecache.getline(code.co_filename, line).lstrip().startswith("@"))
    return place(code.co_filename, next(below, code.co_firstlineno))


def is_authors(file: str) -> bool:
    """True if a file of code is a user's own, and belongs neither to this package nor to a library."""
    return not file.startswith((*HOUSE, *LIBRARIES, "<")) and not INSTALLED & set(Path(file).parts)


def author_place(error: BaseException) -> str:
    """The last line of an author's own file that an error, or its cause, came from; empty if there is none."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    stacks = (traceback.extract_tb(one.__traceback__) for one in reversed(chain))
    places = (last_place((one.filename, one.lineno or 0) for one in stack) for stack in stacks)
    return next(filter(None, places), "")


def last_place(lines: Iterable[tuple[str, int]]) -> str:
    """The last of these lines that is in an author's own file; empty if there is none."""
    own = [(file, line) for file, line in lines if is_authors(file)]
    return place(*own[-1]) if own else ""


def class_place(kind: type) -> str:
    """Return the file and the line of the first method of a user's class; empty if it has none."""
    codes = [getattr(value, "__code__", None) for value in vars(kind).values()]
    first = next((one for one in codes if isinstance(one, CodeType)), None)
    return place(first.co_filename, first.co_firstlineno) if first else ""


@contextmanager
def contained() -> Iterator[list[tuple[threading.Thread, str]]]:
    """Keep what an author's code does within its run: `os._exit` raises `SystemExit` there, as `sys.exit` does.

    That is so in this thread of this process alone. Gives the threads that are started here and that a process would
    wait for at its end, each with the author's line; those that are over are left out at the end.
    """
    here, leave, begin = (threading.get_ident(), os.getpid()), os._exit, threading.Thread.start
    started: list[tuple[threading.Thread, str]] = []

    def leave_run(status: int) -> Any:
        if (threading.get_ident(), os.getpid()) == here:
            raise SystemExit(status)
        leave(status)

    def begin_noted(self: threading.Thread) -> None:
        if (threading.get_ident(), os.getpid()) == here and not self.daemon:
            stack = traceback.extract_stack()
            started.append((self, last_place((one.filename, one.lineno or 0) for one in stack)))
        begin(self)

    os._exit, threading.Thread.start = leave_run, begin_noted
    try:
        yield started
    finally:
        os._exit, threading.Thread.start = leave, begin
        started[:] = [(thread, line) for thread, line in started if thread.is_alive()]


def complain_plainly() -> None:
    """Report an error that nobody can catch, in a thread, in ``__del__`` or at exit, in one line on standard error.

    For processes of our own, whose streams somebody reads. What has been reported of a line is reported once.
    """
    known: set[str] = set()

    def tell(error: BaseException | None, doing: str) -> None:
        if error is None or isinstance(error, (SystemExit, *INTERRUPTED)) or sys.stderr is None or sys.stderr.closed:
            return
        where = author_place(error)
        said = f"warning: {where}{': ' * bool(where)}{type(error).__name__} {doing}: {words_of(error)}\n"
        with suppress(OSError, ValueError):
            sys.stderr.write("" if said in known else said)
        known.add(said)

    sys.unraisablehook = lambda met: tell(met.exc_value, "that nobody can catch")
    threading.excepthook = lambda met: tell(met.exc_value, "in a thread of its own")
