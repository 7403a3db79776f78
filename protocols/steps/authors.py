"""Where an author's own code is: a file and a line for the sentences that say what is wrong with it."""

from __future__ import annotations

import linecache
import os
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOUSE = tuple(f"{Path(__file__).parents[2] / storey}{os.sep}" for storey in ("agents", "protocols", "simulator"))
LIBRARIES = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib"))
"""Folders of code that is no author's own."""


def place(file: str, line: int) -> str:
    """A file, a line and what is written there."""
    written = linecache.getline(file, line).strip()
    return f"{Path(file).name}:{line}" + (f", `{written}`" if written else "")


def place_of(function: Callable[..., Any]) -> str:
    """Where a function of an author's begins, below its decorators."""
    code = function.__code__
    lines = range(code.co_firstlineno, code.co_firstlineno + 10)
    below = (line for line in lines if not linecache.getline(code.co_filename, line).lstrip().startswith("@"))
    return place(code.co_filename, next(below, code.co_firstlineno))


def author_place(error: BaseException) -> str:
    """The last line of an author's own file that an error, or its cause, came from; empty if there is none."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = traceback.extract_tb(error.__traceback__)
    own = [one for one in lines if not one.filename.startswith((*HOUSE, *LIBRARIES, "<"))]
    return place(own[-1].filename, own[-1].lineno or 0) if own else ""
