"""What writes the tape of a watched step: compiled once, and called by its address."""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numba.extending import intrinsic

from ...agents.compilation.callbacks import Callback, called_at
from .tape_places import DRAWS, HEAD, LED, MOST, PLACES, USED


def _signature() -> Any:
    """The signature of `writer`; a function, as signatures have no stamp (`hushnet.agents.compilation.stamps`)."""
    vector, number = types.float64[::1], types.float64
    whole = types.int64[::1]
    return vector(vector, whole, vector, vector, number, number, number, number, vector, vector)


@cache
def writer() -> Callback:
    """What writes a draw down and gives what the step is to go on with: compiled once, for all watched steps."""

    def write(
        tape, taped, led, lately, kind, weight, curvature, influence, exact, found
    ):  # pragma: no cover - compiled
        width, place, rank = len(found), taped[USED], taped[DRAWS]
        if rank >= MOST:
            raise ValueError("a watched step draws noise more often than there is room for")
        used = found
        begin, end = taped[PLACES + rank], taped[PLACES + rank + 1]
        if rank < taped[LED] and end - begin == width:
            used = led[begin:end].copy()
        tape[place], tape[place + 1] = kind, width
        tape[place + 2], tape[place + 3], tape[place + 4] = weight, curvature, influence
        place += HEAD
        for k in range(width):
            tape[place + k] = exact[k]
            tape[place + width + k] = lately[k]
            tape[place + 2 * width + k] = found[k]
            tape[place + 3 * width + k] = used[k]
        taped[USED], taped[DRAWS] = place + 4 * width, rank + 1
        return used

    return Callback(_signature(), write)


def _called_writer(
    _context, _address, _tape, _taped, _led, _lately, _kind, _weight, _curvature, _influence, _exact, _found
):
    return called_at(_signature())


called_writer: Any = intrinsic(_called_writer)
"""``called_writer(address, tape, ...)`` calls the `writer` where it is."""
