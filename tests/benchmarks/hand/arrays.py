"""Arrays by their rank: how steps that are compiled by hand find theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hushnet.agents.compilation.address_table import AddressTable
from hushnet.agents.compilation.addresses import reals, wholes
from hushnet.agents.compilation.compiled import compiled
from numpy.typing import NDArray


def table_of(arrays: Sequence[NDArray[Any]]) -> AddressTable:
    """Addresses and lengths of float64 and int64 arrays."""
    table = AddressTable()
    for array in arrays:
        kept = table.hold(np.ascontiguousarray(array).reshape(-1))
        table.number(kept.ctypes.data)
        table.number(len(kept))
    return table


@compiled(forceinline=True)
def vector(table, rank):  # pragma: no cover - compiled
    """The float64 array of a rank."""
    return reals(table[2 * rank], 0, table[2 * rank + 1])


@compiled(forceinline=True)
def ranks(table, rank):  # pragma: no cover - compiled
    """The int64 array of a rank."""
    return wholes(table[2 * rank], 0, table[2 * rank + 1])
