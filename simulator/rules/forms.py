"""Rules in two forms: compiled, and as the plain Python that they are written in.

A rule is called by its name, from another rule or from compiled code, and runs compiled there. `plain` gives the same
text as Python, in which every rule that it calls is Python, too; draws, delays and intervals are the same compiled
functions in both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

from ...agents.compiled import compiled

_RULES: set[int] = set()


def rule(function: Callable[..., Any]) -> Any:
    """A transition of tables that compiled code inlines.

    It must not allocate: without ``_nrt=False`` numba would count references to every table at every access, which
    costs ten times the work itself.
    """
    made = compiled(function, forceinline=True, _nrt=False)
    _RULES.add(id(made))
    return made


@cache
def plain(made: Any) -> Callable[..., Any]:
    """A rule in plain Python.

    Parameters
    ----------
    made : rule

    Examples
    --------
    >>> @rule
    ... def double(number):
    ...     return 2 * number
    >>> plain(double)(21)
    42
    """
    function = made.py_func
    return FunctionType(function.__code__, _space(function.__module__), function.__name__, function.__defaults__)


@cache
def _space(module: str) -> dict[str, Any]:
    """The names of a module, with every rule among them in plain Python."""
    space = dict(vars(sys.modules[module]))
    for name, value in list(space.items()):
        if id(value) in _RULES:
            function = value.py_func
            home = space if function.__module__ == module else _space(function.__module__)
            space[name] = FunctionType(function.__code__, home, function.__name__, function.__defaults__)
    return space
