"""Functions to compile: declared here without numba, made by it at their first use.

Whoever only reads a scenario compiles nothing, and does not wait for numba to be imported. A compiled form of something
stands for its Python. `form_of` is the one place that decides whether it may.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .deferred import Deferred

REASSOCIATED = {"reassoc", "nsz", "contract", "arcp"}
"""What fast arithmetic may do: reorder sums. Infinities and NaN keep their meaning, for divergence must be seen."""
STATED: dict[str, Any] = {
    "fastmath": False,
    "error_model": "python",
    "boundscheck": False,
    "forceinline": False,
    "no_cfunc_wrapper": True,
    "_nrt": True,
}
"""How functions are compiled that do not say otherwise.

All is said, for numba takes what is not said from the caller for whose sake a function is compiled first.
"""
INLINED: dict[str, Any] = {**STATED, "fastmath": REASSOCIATED, "error_model": "numpy", "forceinline": True}
"""How the parts of a step are compiled, which LLVM puts into it."""


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile with numba, unless the code is stored (`CodeStore`); options as in `STATED`."""
    if function is None:
        return partial(compiled, **options)
    return _deferred(function, {**STATED, **options}, stored=True)


def inlined(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a part of a step for LLVM to put into it; its code is stored with the step's, not by itself."""
    return _deferred(function, {**INLINED, **options}, stored=False)


def _deferred(function: Callable[..., Any], options: dict[str, Any], *, stored: bool) -> Any:
    entry = partial(_dispatcher, function, options, stored=stored)
    return Deferred(entry, function, partial(entry, part=True))


def _dispatcher(function: Callable[..., Any], options: dict[str, Any], **how: bool) -> Any:
    from .dispatchers import dispatcher

    return dispatcher(function, options, **how)


def form_of(thing: object, name: str) -> Any:
    """The compiled form that an object has under a name; None unless it vouches for it.

    Only an object of the very class that defines the form in its own body does. A subclass may have changed anything
    that the form was written for, and so has an object on which somebody has put another method.

    Parameters
    ----------
    thing : object
    name : str
        Of a method or property.
    """
    return getattr(thing, name) if name in vars(type(thing)) and not is_patched(thing) else None


def is_patched(thing: object) -> bool:
    """Whether somebody has put another method on an object."""
    return any(callable(getattr(type(thing), key, None)) for key in getattr(thing, "__dict__", ()))
