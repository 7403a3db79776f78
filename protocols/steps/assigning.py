"""Assignment to blocks and to their rows, compiled.

numba's own ``block[:] = value`` brings along the text of its error message, with all that writes shapes as text, and
does so wherever something is assigned. These say less, and are compiled once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numba.extending import overload

from ...agents.compilation.compiled import INLINED

UNEQUAL = "what is assigned to a block has another length"


def put(block, value):  # noqa: ARG001 - as compiled
    """``block[:] = value`` for a (k,) or (d, k) block, or for (pool, rows, k), which are d rows of a pool of their own.

    Its forms are named here, for what is compiled with it is stored by all that it mentions.
    """
    return _fill, _fill_rows, _copy, _copy_rows, _repeat_row, _tell, _tell_rows, _tell_row, _as_numba, _form_of


def put_at(block, place, value):  # noqa: ARG001 - as compiled
    """``block[place] = value``."""
    return _put_part, _put_as_numba, _form_at


def _form_of(block, value):
    """The form of `put` for these types."""
    plain = types.Number | types.Boolean
    if isinstance(block, types.BaseTuple):
        if isinstance(value, plain):
            return _tell
        return {1: _tell_row, 2: _tell_rows}.get(value.ndim) if isinstance(value, types.Array) else None
    if not isinstance(block, types.Array) or block.layout != "C" or block.ndim > 2:
        return _as_numba
    if isinstance(value, plain):
        return _fill if block.ndim == 1 else _fill_rows
    if not isinstance(value, types.Array) or not isinstance(value.dtype, plain):
        return _as_numba
    forms = {(1, 1): _copy, (2, 1): _repeat_row, (2, 2): _copy_rows}
    return forms.get((block.ndim, value.ndim), _as_numba)


def _form_at(block, place, value):  # noqa: ARG001 - as `put_at`
    """The form of `put_at` for these types."""
    if not isinstance(block, types.Array):
        return _put_as_numba
    several: Any = place if isinstance(place, types.BaseTuple) else (place,)
    places = tuple(several)
    whole = all(isinstance(one, types.Integer | types.SliceType) for one in places)
    number = len(places) == block.ndim and all(isinstance(one, types.Integer) for one in places)
    return _put_part if whole and not number else _put_as_numba


_overload: Any = overload
_overload(put, jit_options=INLINED)(_form_of)
_overload(put_at, jit_options={**INLINED, "boundscheck": True})(_form_at)


def _fill(block, value):  # pragma: no cover - compiled
    for k in range(len(block)):
        block[k] = value


def _fill_rows(block, value):  # pragma: no cover - compiled
    for row in range(block.shape[0]):
        for k in range(block.shape[1]):
            block[row, k] = value


def _copy(block, value):  # pragma: no cover - compiled
    if len(value) != len(block):
        if len(value) != 1:
            raise ValueError(UNEQUAL)
        number = value[0]
        for k in range(len(block)):
            block[k] = number
        return
    shift = np.int64(value.ctypes.data) - np.int64(block.ctypes.data)  # addresses have no sign
    if value.strides[0] != value.itemsize or (shift != 0 and abs(shift) < block.nbytes):
        value = value.copy()
    for k in range(len(block)):
        block[k] = value[k]


def _copy_rows(block, value):  # pragma: no cover - compiled
    rows, width = block.shape
    many, wide = value.shape
    if (many not in (1, rows)) or (wide not in (1, width)):
        raise ValueError(UNEQUAL)
    shift = np.int64(value.ctypes.data) - np.int64(block.ctypes.data)
    whole = value.strides[0] == width * value.itemsize and value.strides[1] == value.itemsize
    if many == rows and wide == width and whole and (shift >= block.nbytes or shift + value.nbytes <= 0):
        for row in range(rows):
            for k in range(width):
                block[row, k] = value[row, k]
        return
    found = value.copy()
    for row in range(rows):
        for k in range(width):
            block[row, k] = found[row if many == rows else 0, k if wide == width else 0]


def _repeat_row(block, value):  # pragma: no cover - compiled
    rows, width = block.shape
    wide = len(value)
    if wide not in (1, width):
        raise ValueError(UNEQUAL)
    found = value.copy()
    for row in range(rows):
        for k in range(width):
            block[row, k] = found[k if wide == width else 0]


def _tell(block, value):  # pragma: no cover - compiled
    pool, rows, width = block
    for rank in range(len(rows)):
        put(pool[rows[rank]][:width], value)


def _tell_row(block, value):  # pragma: no cover - compiled
    pool, rows, width = block
    if len(value) not in (1, width):  # though there may be no row
        raise ValueError(UNEQUAL)
    for rank in range(len(rows)):
        put(pool[rows[rank]][:width], value)


def _tell_rows(block, value):  # pragma: no cover - compiled
    pool, rows, width = block
    many, wide = value.shape
    if (many not in (1, len(rows))) or (wide not in (1, width)):
        raise ValueError(UNEQUAL)
    for rank in range(len(rows)):
        put(pool[rows[rank]][:width], value[rank if many > 1 else 0])


def _as_numba(block, value):  # pragma: no cover - compiled
    block[:] = value


def _put_part(block, place, value):  # pragma: no cover - compiled
    put(block[place], value)


def _put_as_numba(block, place, value):  # pragma: no cover - compiled
    block[place] = value
