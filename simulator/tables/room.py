"""Room in tables: columns whose records lie together in memory, and more of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

LINE = 64
"""Bytes that a processor fetches together."""


def columns(length: int, dtypes: Mapping[str, type]) -> dict[str, NDArray[Any]]:
    """Columns of zeros by name, whose entries of one row share a line of memory.

    Rules meet versions and copies in no order: with an array for each column, every one of their numbers had to be
    fetched on its own.

    Parameters
    ----------
    length : int
        Rows.
    dtypes : mapping of str to type
        Of numbers of eight bytes each; at most eight columns.

    Returns
    -------
    dict of (length,) arrays
        Views, not contiguous, of one block of memory.
    """
    width = next(width for width in (1, 2, 4, LINE // 8) if width >= len(dtypes))
    rows = zeros((length, width), np.int64)
    return {name: rows.view(dtype)[:, column] for column, (name, dtype) in enumerate(dtypes.items())}


def lines(length: int, dtypes: Mapping[str, type], width: int) -> dict[str, NDArray[Any]]:
    """Columns as `columns` makes them, each as one contiguous array whose entries are found by where a line begins.

    The k-th line begins at ``k * width``, and so does its entry of every column: compiled code, which knows the width,
    finds it as it finds an entry of any array. What lies between belongs to the other columns.

    Parameters
    ----------
    length : int
        Lines.
    dtypes : mapping of str to type
        Of numbers of eight bytes each.
    width : int
        Numbers of a line; at least as many as columns.

    Returns
    -------
    dict of (length * width,) arrays
        Views of one block of memory, each a number further.
    """
    size = length * width
    block = zeros(size + width, np.int64)
    return {name: block[k : k + size].view(dtype) for k, (name, dtype) in enumerate(dtypes.items())}


def zeros(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Zeros that begin where a line of memory does: rows of a few numbers then lie in as few lines as they can."""
    size = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
    block = np.zeros(size + LINE, dtype=np.uint8)
    first = -block.ctypes.data % LINE
    return block[first : first + size].view(dtype).reshape(shape)


def extended(array: NDArray[Any], more: int) -> NDArray[Any]:
    """An array with room for so many more entries."""
    made = zeros((len(array) + more, *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made


def extended_lines(tables: Any, dtypes: Mapping[str, type], width: int, more: int) -> dict[str, NDArray[Any]]:
    """Columns of tables that were made by `lines`, with room for so many more of them."""
    first = next(iter(dtypes))
    old = getattr(tables, first)
    made = lines(len(old) // width + more, dtypes, width)
    made[first].view(np.int64)[: len(old)] = old.view(np.int64)
    return made
