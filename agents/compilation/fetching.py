"""Asking the processor for memory before it is needed, in compiled code; declared without numba."""

from __future__ import annotations

from typing import Any

from .address_table import READ_AT, READ_BEGINS, READ_BYTES, READ_STEP
from .compiled import compiled
from .deferred import Deferred

LINE, FIRST = 8, 32
"""Numbers of a line of memory, and how many of a row are asked for; what follows comes by itself."""


def _made() -> Any:
    from .fetching_forms import prefetch

    return prefetch


def _reals() -> Any:
    from .addresses import reals

    return reals


def _whole() -> Any:
    from .addresses import whole

    return whole


prefetch: Any = Deferred(_made)
"""`hushnet.agents.compilation.fetching_forms.prefetch`."""
_numbers_at: Any = Deferred(_reals)
_whole_at: Any = Deferred(_whole)


@compiled(forceinline=True, _nrt=False)
def prefetch_vector(values):  # pragma: no cover - compiled
    """Ask the processor for the beginning of a vector."""
    first = min(len(values), FIRST)
    for part in range(0, first, LINE):
        prefetch(values, part)
    prefetch(values, first - 1)


@compiled(forceinline=True, _nrt=False)
def prefetch_read(read, agent, placed):  # pragma: no cover - compiled
    """Ask for what an agent's step reads (`hushnet.agents.compilation.address_table.AddressTable.read`).

    Either of arrays in which its place is to be read from another one, or of the others, at a time: what says where has
    to be there first.
    """
    for k in range(len(read)):
        if (read[k, READ_BEGINS] != 0) == placed:
            first = _whole_at(read[k, READ_BEGINS], agent) if placed else agent
            there = _numbers_at(read[k, READ_AT] + first * read[k, READ_STEP], 0, 1)
            for part in range(0, read[k, READ_BYTES], 8 * LINE):
                prefetch(there, part // 8)


@compiled(forceinline=True, _nrt=False)
def prefetch_row(table, row):  # pragma: no cover - compiled
    """Ask the processor for the beginning of a row that is there, of a table of two dimensions."""
    prefetch_vector(table[row])
