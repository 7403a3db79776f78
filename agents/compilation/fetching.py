"""Asking the processor for memory before it is needed, in compiled code; declared without numba."""

from __future__ import annotations

from typing import Any

from .compiled import compiled
from .deferred import Deferred

LINE, FIRST = 8, 32
"""Numbers of a line of memory, and how many of a row are asked for; what follows comes by itself."""


def _made() -> Any:
    from .fetching_forms import prefetch

    return prefetch


prefetch: Any = Deferred(_made)
"""`hushnet.agents.compilation.fetching_forms.prefetch`."""


@compiled(forceinline=True, _nrt=False)
def prefetch_vector(values):  # pragma: no cover - compiled
    """Ask the processor for the beginning of a vector."""
    first = min(len(values), FIRST)
    for part in range(0, first, LINE):
        prefetch(values, part)
    prefetch(values, first - 1)


@compiled(forceinline=True, _nrt=False)
def prefetch_row(table, row):  # pragma: no cover - compiled
    """Ask the processor for the beginning of a row that is there, of a table of two dimensions."""
    prefetch_vector(table[row])
