"""Arrays by their addresses: one table of whole numbers stands for everything that a compiled step reads and writes.

A compiled function that takes many arrays pays for each of them whenever it is called, and is compiled anew for every
other list of types. A step gets one (k,) int64 array instead, in which `AddressTable` has put where things are;
`hushnet.agents.compilation.addresses` takes them from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

READ_AT, READ_STEP, READ_BEGINS, READ_BYTES, READ_COLUMNS = range(5)
"""Columns of `AddressTable.read`."""


class AddressTable:
    """Whole numbers and addresses of arrays, each with its place in a table.

    The arrays live as long as the table does.
    """

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._read: dict[int, tuple[int, ...]] = {}
        self._arrays: list[NDArray[Any]] = []
        self._places: dict[tuple[int, np.dtype[Any]], int] = {}

    def array(self, array: NDArray[Any], dtype: Any = np.float64, *, written: bool = False) -> int:
        """The place of an array's address; of a copy, where it is not contiguous or of another type.

        Parameters
        ----------
        array : array
        dtype : data-type
            What the step takes its numbers for.
        written : bool
            Whether the step or anybody else writes into it as long as the table is used.

        Raises
        ------
        ValueError
            If it is written, and would be copied, or is read-only.
        """
        kind = np.dtype(dtype)
        if written:
            _check_writable(array, kind)
        known = self._places.get((id(array), kind))
        if known is not None:
            return known
        kept = self.hold(np.ascontiguousarray(self.hold(array), dtype=kind))
        self._places[id(array), kind] = place = self.number(kept.ctypes.data)
        return place

    def hold(self, array: NDArray[Any]) -> NDArray[Any]:
        """Keep an array alive as long as the table; the array."""
        self._arrays.append(array)
        return array

    def number(self, value: int) -> int:
        """The place of a whole number."""
        self._entries.append(int(value))
        return len(self._entries) - 1

    def note_read(self, place: int, step: int, size: int, begins: NDArray[np.int64] | None = None) -> None:
        """Note that steps of an agent read an array from the agent's own place on.

        Parameters
        ----------
        place : int
            Of the array's address.
        step : int
            Bytes from an agent's place to the next one's, or of one of the parts that are counted.
        size : int
            Bytes that are read there, about.
        begins : (n,) int64, optional
            Of each agent, how many parts come before its own; by default as many as agents.
        """
        begin = 0 if begins is None else self._entries[self.array(begins, np.int64)]
        self._read[place] = self._entries[place], step, begin, size

    @property
    def read(self) -> NDArray[np.int64]:
        """(k, READ_COLUMNS) what was noted: address, step, address of ``begins`` (0: none), size."""
        return np.array(list(self._read.values()), dtype=np.int64).reshape(-1, READ_COLUMNS)

    @property
    def values(self) -> NDArray[np.int64]:
        """(k,) the table."""
        return np.array(self._entries, dtype=np.int64)


def _check_writable(array: NDArray[Any], kind: np.dtype[Any]) -> None:
    """Refuse to write into a copy that nobody reads."""
    why = "" if array.flags.c_contiguous else "not contiguous"
    if array.dtype != kind:
        why = f"of {array.dtype}, and written as {kind}"
    elif not array.flags.writeable:
        why = "read-only"
    if why:
        raise ValueError(f"an array that steps write into is {why}")
