"""Sums over agents' own rows at their models, computed anew for those alone whose model has changed since."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..models.predictor import Predictor
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
        ``number(scores, labels)``: (k,) a number of each of k rows, row by row.
    model : Predictor, optional
        What gives scores; by default the linear model.
    """

    def __init__(self, table: Table, number: Callable[[Array, Array], Array], model: Predictor | None = None) -> None:
        self.table, self.number, self.model = table, number, model
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
        expected = (len(everybody), table.features.shape[1] if self.model is None else self.model.width)
        if models.shape != expected:
            raise ValueError(f"models must have the shape {expected}, got {models.shape}")
        before, self._models = self._models, models.copy() if models.nbytes <= MOST_KEPT else None
        changed = everybody if before is None else (models != before).any(axis=1).nonzero()[0]
        if not len(changed):
            return self._sums.copy()
        features, labels = table.features, table.labels
        if 2 * len(changed) > len(everybody):
            changed = everybody
        else:
            rows = _rows(table, changed)
            labels = labels[rows]
            features = features if self.model is None else features[rows]
        counts = table.counts[changed]
        inhabited, begins = counts > 0, np.cumsum(counts) - counts
        if self.model is not None:
            scores = self.model.scores(models[changed], features, np.append(begins, len(labels)))
        else:
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
