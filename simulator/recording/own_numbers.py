"""Numbers that an author's metric gives, and the sentence about one that is none."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...agents.authors import place


def number_of(value: Any, metric: str, statistic: str, made_by: Callable[..., Any]) -> float:
    """A metric's value as a float; an author's mistake ends one run, as what an author's code raises does.

    Raises a `TypeError` that names the author's function by file and line if it is no number, nor an array with one, or
    the statistic's name is no text.

    >>> number_of(2, "norm", "mean", len)
    2.0
    """
    if type(value) is float and type(statistic) is str:  # as a rule
        return value
    if not isinstance(statistic, str):
        raise TypeError(f"{_place(made_by)}metric {metric!r}: {statistic!r} names a statistic; a name is text")
    if not isinstance(value, str | bytes | bool | np.bool_):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    text = repr(value)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    raise TypeError(
        f"{_place(made_by)}metric {metric!r}, statistic {statistic!r}: is {shown} ({type(value).__name__}); "
        f"must be a number{', such as float(...) of it' * isinstance(value, bool | np.bool_)}"
    )


def _place(function: Callable[..., Any]) -> str:
    """File and line of a function's source, with a colon; empty where it has none, such as that of a function in C."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f"{place(code.co_filename, code.co_firstlineno)}: "
