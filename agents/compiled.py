"""Compiled functions: cached on disk where that is possible, and announced where compiling takes long."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
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
    if function.overloads:
        return
    file = _cache_file(function)
    if file is not None and file._load_index():
        return
    sys.stderr.write(f"compiling {what}, once; this takes half a minute\n")


def _cached(decorator: Callable[..., Any], function: Callable[..., Any], **options: Any) -> Any:
    try:
        made = decorator(cache=True, **options)(function)
    except RuntimeError:
        return decorator(cache=False, **options)(function)
    file = _cache_file(made)
    if file is not None:
        # numba itself looks at a function's own file only, and not at those of what is compiled into it.
        file._source_stamp = file._source_stamp, sources()
    return made


def _cache_file(made: Any) -> Any:
    """numba's index of what it has cached of a function; None without a cache."""
    return getattr(getattr(made, "_cache", None), "_cache_file", None)


@cache
def sources() -> str:
    """A hash of all files of this package that have compiled functions in them: caches are stale once it changes."""
    digest = hashlib.blake2s(digest_size=16)
    for folder in ("agents", "protocols", "simulator"):
        for path in sorted((Path(__file__).parents[1] / folder).rglob("*.py")):
            content = path.read_bytes()
            if b"@compiled" in content:
                digest.update(content)
    return digest.hexdigest()
