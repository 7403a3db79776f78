"""Places in a user's own code, a file and a line each, for error messages about it; and guards around such code."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from math import inf
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import INTERRUPTED, InputError, words_of

HOUSE = tuple(f"{Path(__file__).parents[1] / storey}{os.sep}" for storey in ("agents", "protocols", "simulator"))
OURS = f"{__name__.partition('.')[0]}."
LIBRARIES = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib"))
"""Folders of code that is no author's own."""
COMPILED = (".pyx", ".pxi", ".pxd")
"""Ends of files of code that libraries were compiled from."""
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
    return not (file.startswith((*HOUSE, *LIBRARIES, "<")) or file.endswith(COMPILED)) and not INSTALLED & set(
        Path(file).parts
    )


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
    codes = sorted(_codes(kind), key=lambda code: not is_authors(code.co_filename))  # pydantic's come after
    return place(codes[0].co_filename, codes[0].co_firstlineno) if codes else ""


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


def check_call(function: Callable[..., Any], name: str, wanted: Sequence[str]) -> None:
    """Refuse an author's function that cannot be called with positional arguments of these names.

    Raises `InputError` with its line, if it has one.
    """
    try:
        taken = inspect.signature(function)
    except ValueError:  # some of those in C tell nothing
        return
    try:
        taken.bind(*wanted)
    except TypeError:
        where = f"{place_of(function)}: " if hasattr(function, "__code__") else ""
        shown = str(taken).partition(" ->")[0]
        raise InputError(f"{where}{name} takes {shown}; admissible: ({', '.join(wanted)})") from None


def check_overrides(kind: type) -> None:
    """Refuse an author's class with a method that cannot be called as the one that it replaces, or that it lacks.

    Raises `InputError` with the line of the method, and how it is called.
    """
    own = [one for one in kind.__mro__ if is_authors_class(one)]
    for one in own:
        above = kind.__mro__[kind.__mro__.index(one) + 1 :]
        for name, theirs in dict(vars(one)).items():
            ours = next((vars(base)[name] for base in above if name in vars(base) and base not in own), None)
            if ours is not None and not (name.startswith("_") and name != "__init__"):
                _check_override(f"{kind.__name__}.{name}", ours, theirs)
    if missing := sorted(getattr(kind, "__abstractmethods__", ())):
        raise InputError(f"{class_place(kind)}: {kind.__name__} is abstract; it has yet to define {', '.join(missing)}")


def is_authors_class(kind: type) -> bool:
    """True if a method or property that a class defines itself is in an author's own file."""
    return not kind.__module__.startswith(OURS) and any(is_authors(code.co_filename) for code in _codes(kind))


def _codes(kind: type) -> list[CodeType]:
    """Code of the methods and properties that a class defines itself; whatever else it has is not touched."""
    values = dict(vars(kind)).values()
    plain = (value.fget if isinstance(value, property) else value for value in values)
    functions = (value.__func__ if isinstance(value, classmethod | staticmethod) else value for value in plain)
    return [function.__code__ for function in functions if inspect.isfunction(function)]


def _check_override(name: str, ours: Any, theirs: Any) -> None:
    """Refuse what does not fit in place of a method or a property of ours."""
    if isinstance(ours, property | cached_property):
        if inspect.isfunction(theirs):
            raise InputError(f"{place_of(theirs)}: {name} is a property; write @property above it")
        return
    no_self, ours = isinstance(ours, staticmethod), getattr(ours, "__func__", ours)
    if not inspect.isfunction(ours):
        return
    plain = getattr(theirs, "__func__", theirs)
    if not callable(plain):
        raise InputError(f"{name} is {type(theirs).__name__}; it must be a function")
    if not inspect.isfunction(plain):
        return
    wanted = inspect.signature(ours).parameters
    given = [one for one in wanted.values() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    given = given[isinstance(theirs, staticmethod) and not no_self :]
    placed = [one.name for one in given if one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty]
    named = [one.name for one in given if one.kind is one.KEYWORD_ONLY]
    if no_self and len(inspect.signature(plain).parameters) > len(wanted):
        placed.insert(0, "self")  # a step is a function or a method
    try:
        inspect.signature(plain).bind(*placed, **dict.fromkeys(named))
    except TypeError:
        admissible = str(inspect.signature(ours)).partition(" ->")[0]
        taken = str(inspect.signature(plain)).partition(" ->")[0]
        raise InputError(f"{place_of(plain)}: {name} takes {taken}; admissible: {admissible}") from None


def returned_numbers(
    value: Any, shape: tuple[int, ...], function: Callable[..., Any], low: float = -inf, high: float = inf
) -> NDArray[np.float64]:
    """Return numbers that an author's function has given, if they have a shape and are in [low, high].

    Raises `InputError` with the function's line, if they are something else.
    """
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(())
    if numbers.shape != shape:
        given = f"{type(value).__name__} of shape {np.shape(value)}" if np.ndim(value) else type(value).__name__
        raise InputError(f"{place_of(function)}: must return numbers of shape {shape}, not {given}")
    if len(wrong := numbers[~((numbers >= low) & (numbers <= high))]):  # nor NaN
        raise InputError(f"{place_of(function)}: must return numbers in [{low:g}, {high:g}], not {wrong.flat[0]:g}")
    return numbers


def returned(value: Any, wanted: Any, function: Callable[..., Any]) -> Any:
    """Return what an author's function has given, if it is of a type.

    Raises `InputError` with the function's line, if it is something else.
    """
    if not isinstance(value, wanted):
        names = " or ".join(one.__name__ for one in (wanted if isinstance(wanted, tuple) else (wanted,)))
        raise InputError(f"{place_of(function)}: must return {names}, not {type(value).__name__}")
    return value
