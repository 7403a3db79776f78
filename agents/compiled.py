"""Compiled functions: cached on disk where that is possible, and announced where compiling takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

REASSOCIATED = {"reassoc", "nsz", "contract", "arcp"}
"""What fast arithmetic may do: reorder sums. Infinities and NaN keep their meaning, for divergence must be seen."""


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile with numba, cached on disk; without a writable place for the cache, compile in every process."""
    if function is None:
        return lambda wrapped: compiled(wrapped, **options)
    return _cached(numba.njit, function, **options)


def compiled_callback(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile for one signature, as a function that other compiled functions take as an argument."""

    def wrap(function: Callable[..., Any]) -> Any:
        inner = _cached(numba.njit, function, **options)
        return _cached(lambda cache: numba.cfunc(signature, cache=cache, **options), inner.py_func)

    return wrap


def announce(function: Any, what: str) -> None:
    """Say on stderr that something is about to be compiled, unless it is compiled or cached already."""
    cache = function.stats.cache_path
    if function.signatures or (cache and any(Path(cache).glob(f"*{function.py_func.__name__}-*.nbi"))):
        return
    sys.stderr.write(f"compiling {what}, once; this takes half a minute\n")


def _cached(decorator: Callable[..., Any], function: Callable[..., Any], **options: Any) -> Any:
    try:
        return decorator(cache=True, **options)(function)
    except RuntimeError:
        return decorator(cache=False, **options)(function)
