"""Sums over agents' own rows at their models, computed anew for those alone whose model has changed since."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..optimisation.compiled_sums import read_only, scores_of_rows
from ..tables import Table

Array = NDArray[np.float64]

MOST_KEPT = 2**25
"""Bytes of models that are kept to be compared with; of larger ones all sums are computed anew."""


@final
class RowSums:
    """Sums over each agent's rows, at one instant after another.

    Parameters
    ----------
    table : Table
    number : callable
        ``number(scores, labels)``: (k,) a number of each of k rows, elementwise.
    """

    def __init__(self, table: Table, number: Callable[[Array, Array], Array]) -> None:
        self.table, self.number = table, number
        self._everybody = np.arange(len(table.counts))
        self._rows = read_only(table.features), read_only(table.offsets)
        self._models: Array | None = None
        self._scores: Callable[..., Array] | None = None
        self._sums = np.zeros(len(table.counts))

    def at(self, models: Array) -> Array:
        """(n,) sums at the (n, p) models, in every bit as if they were computed at once; 0 without rows.

        Raises
        ------
        ValueError
            If the models have another shape.
        """
        table, everybody = self.table, self._everybody
        expected = (len(everybody), table.features.shape[1])
        if models.shape != expected:
            raise ValueError(f"models must have the shape {expected}, got {models.shape}")
        before, self._models = self._models, models.copy() if models.nbytes <= MOST_KEPT else None
        changed = everybody if before is None else (models != before).any(axis=1).nonzero()[0]
        if not len(changed):
            return self._sums.copy()
        if 2 * len(changed) > len(everybody):
            changed, labels = everybody, table.labels
        else:
            labels = table.labels[_rows(table, changed)]
        counts = table.counts[changed]
        inhabited, begins = counts > 0, np.cumsum(counts) - counts
        given = *self._rows, read_only(models), read_only(changed)
        form = self._scores = self._scores or scores_of_rows.form(given)
        scores = form(*given)
        self._sums[changed] = 0.0
        if inhabited.any():
            self._sums[changed[inhabited]] = np.add.reduceat(self.number(scores, labels), begins[inhabited])
        return self._sums.copy()


def _rows(table: Table, agents: NDArray[np.int64]) -> NDArray[np.int64]:
    """(k,) the rows of some agents, one agent after the other."""
    counts = table.counts[agents]
    begins = np.cumsum(counts) - counts
    return np.repeat(table.offsets[agents] - begins, counts) + np.arange(counts.sum())
