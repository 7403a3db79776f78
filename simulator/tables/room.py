"""Room in tables, and more of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

LINE = 64
"""Bytes that a processor fetches together."""


def zeros(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Zeros that begin where a line of memory does: rows of a few numbers then lie in as few lines as they can."""
    dtype = np.dtype(dtype)
    size = math.prod(np.atleast_1d(shape).tolist()) * dtype.itemsize
    block = np.zeros(size + LINE, dtype=np.uint8)
    first = -block.ctypes.data % LINE
    made = block[first : first + size].view(dtype).reshape(shape)
    return made if dtype.names is None else made.view(np.recarray)


def extended(array: NDArray[Any], more: int) -> NDArray[Any]:
    """An array with room for so many more entries."""
    made = zeros((len(array) + more, *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made
