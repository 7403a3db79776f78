"""Room in tables: columns whose records lie together in memory, and more of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    words = LINE // 8
    width = next(width for width in (1, 2, 4, words) if width >= len(dtypes))
    block = np.zeros(length * width + words, dtype=np.int64)
    first = -(block.ctypes.data // 8) % words
    rows = block[first : first + length * width].reshape(length, width)
    return {name: rows.view(dtype)[:, column] for column, (name, dtype) in enumerate(dtypes.items())}


def extended(array: NDArray[Any], more: int) -> NDArray[Any]:
    """An array with room for so many more entries."""
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), dtype=array.dtype)])


def extended_columns(tables: Any, names: Sequence[str], more: int) -> dict[str, NDArray[Any]]:
    """Columns of tables that were made by `columns`, with room for so many more rows."""
    old = {name: getattr(tables, name) for name in names}
    length = len(old[names[0]])
    made = columns(length + more, {name: array.dtype.type for name, array in old.items()})
    for name, array in old.items():
        made[name][:length] = array
    return made
