"""Arrays at their addresses, for compiled code that gets an `AddressTable`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.core import cgutils
from numba.extending import intrinsic

from .compiled import compiled


def _as_pointer(_context: Any, _address: Any) -> Any:
    """The address as a pointer."""

    def code(_: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), code


_pointer: Any = intrinsic(_as_pointer)


@compiled(forceinline=True)
def reals(address, begin, length):  # pragma: no cover - compiled
    """(length,) float64 at an address, ``begin`` numbers into the array there."""
    return carray(_pointer(address + 8 * begin), (length,), np.float64)


@compiled(forceinline=True)
def real_rows(address, begin, rows, width):  # pragma: no cover - compiled
    """(rows, width) float64 at an address, ``begin`` numbers into the array there."""
    return carray(_pointer(address + 8 * begin), (rows, width), np.float64)


@compiled(forceinline=True)
def single_rows(address, begin, rows, width):  # pragma: no cover - compiled
    """(rows, width) float32 at an address, ``begin`` numbers into the array there."""
    return carray(_pointer(address + 4 * begin), (rows, width), np.float32)


@compiled(forceinline=True)
def wholes(address, begin, length):  # pragma: no cover - compiled
    """(length,) int64 at an address, ``begin`` numbers into the array there."""
    return carray(_pointer(address + 8 * begin), (length,), np.int64)


@compiled(forceinline=True)
def whole_rows(address, begin, rows, width):  # pragma: no cover - compiled
    """(rows, width) int64 at an address, ``begin`` numbers into the array there."""
    return carray(_pointer(address + 8 * begin), (rows, width), np.int64)


@compiled(forceinline=True)
def words(address, begin, length):  # pragma: no cover - compiled
    """(length,) uint64 at an address, ``begin`` numbers into the array there."""
    return carray(_pointer(address + 8 * begin), (length,), np.uint64)


@compiled(forceinline=True)
def real(address, place):  # pragma: no cover - compiled
    """The float64 at a place of the array at an address."""
    return carray(_pointer(address + 8 * place), (1,), np.float64)[0]


@compiled(forceinline=True)
def whole(address, place):  # pragma: no cover - compiled
    """The int64 at a place of the array at an address."""
    return carray(_pointer(address + 8 * place), (1,), np.int64)[0]
