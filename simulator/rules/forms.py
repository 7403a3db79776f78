"""Rules: transitions of tables, as plain Python and as parts of compiled code, from the same text.

In Python a rule is the function that it is written as; compiled code that calls it has a compiled form of it. Both read
and write the same tables, plain rules best through `PlainTables`, whose elements are Python's own numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from ...agents.compilation import part
from ..tables.effects import EFFECTS, PRIORITY, SERIAL, SUBJECT, WHAT
from ..tables.round_table import RoundTables
from ..tables.session_table import SessionTables

_RULES: set[Callable[..., Any]] = set()


def rule(function: Callable[..., Any] | None = None, *, inlined: bool = True) -> Any:
    """A transition of tables that compiled code inlines, unless it says otherwise.

    It must not allocate: without ``_nrt=False`` numba would count references to every table at every access, which
    costs ten times the work itself.
    """
    if function is None:
        return partial(rule, inlined=inlined)
    _RULES.add(function)
    return part(function, forceinline=inlined, _nrt=False)


class PlainRules:
    """Rules in plain Python that call some functions in the place of other rules.

    Parameters
    ----------
    **functions : callable
        What stands in the place of rules of these names: draws of delays or intervals that have no compiled form.

    Examples
    --------
    >>> @rule
    ... def double(number):
    ...     return 2 * number
    >>> PlainRules()(double)(21)
    42
    """

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self._functions = functions
        self._spaces: dict[str, dict[str, Any]] = {}
        self._forms: dict[Any, Callable[..., Any]] = {}

    def __call__(self, function: Any) -> Callable[..., Any]:
        """A rule that calls the functions, and so do all rules that it calls."""
        form = self._forms.get(function)
        if form is None:
            form = self._functions.get(function.__name__)
            if form is None:
                space = self._space(function.__module__)
                form = FunctionType(function.__code__, space, function.__name__, function.__defaults__)
            self._forms[function] = form
        return form

    def _space(self, module: str) -> dict[str, Any]:
        """The names of a module, with every rule among them in this form."""
        if module not in self._spaces:
            space = self._spaces[module] = dict(vars(sys.modules[module]))
            rules = {name: value for name, value in space.items() if isinstance(value, FunctionType)}
            space.update({name: self(value) for name, value in rules.items() if value in _RULES})
        return self._spaces[module]


@rule
def schedule(
    tables: RoundTables | SessionTables,
    time: float,
    priority: int,
    what: int,
    subject: int,
    serial: int,
):
    """Ask the driver for an event."""
    k = tables.counts[EFFECTS]
    tables.counts[EFFECTS] = k + 1
    tables.due[k] = time
    effect = tables.effects[k]
    effect[PRIORITY], effect[WHAT], effect[SUBJECT], effect[SERIAL] = priority, what, subject, serial
