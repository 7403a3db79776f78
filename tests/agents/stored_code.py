"""Something to put into a store of compiled code."""

from __future__ import annotations

from hushnet.agents.compilation.compiled import compiled
from numba import types

ONE = types.int64(types.int64)


def doubled():
    """A function that is not compiled yet, of the same text each time."""

    def double(number):
        return 2 * number

    return compiled(double)


def looked_up(made):
    """How often code was found, and how often it was made."""
    return made._cache.hits, made._cache.misses
