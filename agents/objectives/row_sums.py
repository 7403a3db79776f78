"""Sums over agents' own rows at their models, computed anew for those alone whose model has changed since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """Sums over each agent's rows, at one instant after another, of ``number(scores, labels)``, row by row.

    The model gives scores; by default the linear one.
    """

    def __init__(self, table: Table, number: Callable[[Array, Array], Array], model: Predictor | None = None) -> None:
        self.table, self.number, self.model = table, number, model
        self._everybody = np.arange(len(table.counts))
        self._rows = read_only(table.features), read_only(table.offsets)
        self._models: Array | None = None
        self._scores: Callable[..., Array] | None = None
        self._sums = np.zeros(len(table.counts))

    def at(self, models: Array) -> Array:
        """(n,) sums at the (n, p) models; see `over`."""
        return self.over([models])[0]

    def over(self, instants: Sequence[Array]) -> Array:
        """(k, n) sums at the (n, p) models of k instants, in every bit as if each were computed at once.

        Sums of an agent without rows are 0. Raises `ValueError` if the models have another shape.
        """
        table, everybody = self.table, self._everybody
        expected = (len(everybody), table.features.shape[1] if self.model is None else self.model.width)
        models = instants[0] if len(instants) == 1 else np.concatenate(instants)
        if models.shape != (len(instants) * len(everybody), expected[1]):
            raise ValueError(f"models must have the shape {expected}, got {instants[0].shape}")
        before, self._models = self._models, instants[-1].copy() if instants[-1].nbytes <= MOST_KEPT else None
        changed = np.ones((len(instants), len(everybody)), dtype=bool)
        for rank, own in enumerate(instants):
            if before is not None:
                changed[rank] = (own != before).any(axis=1)
            before = own
        sums = np.zeros(changed.shape)
        if len(instants) == 1 and 2 * np.count_nonzero(changed) > changed.size:
            changed[:] = True
        agents, ranks = changed.T.nonzero()  # an agent's rows are read once for all instants
        if len(agents):
            sums[ranks, agents] = self._of_changed(models, ranks * len(everybody) + agents)
        latest = self._sums
        for own, moved in zip(sums, changed, strict=True):
            own[~moved] = latest[~moved]
            latest = own
        self._sums = latest
        return sums

    def _of_changed(self, models: Array, changed: NDArray[np.int64]) -> Array:
        """(c,) sums at those of the (k n, p) models that have changed, by their ranks."""
        table = self.table
        features, labels, agents = table.features, table.labels, changed % len(self._everybody)
        if not len(changed) == len(models) == len(self._everybody):
            rows = _rows(table, agents)
            labels = labels[rows]
            features = features if self.model is None else features[rows]
        counts = table.counts[agents]
        inhabited, begins = counts > 0, np.cumsum(counts) - counts
        if self.model is not None:
            scores = self.model.scores(models[changed], features, np.append(begins, len(labels)))
        else:
            given = *self._rows, read_only(models), read_only(changed)
            form = self._scores = self._scores or scores_of_rows.form(given)
            scores = form(*given)
        sums = np.zeros(len(changed))
        if inhabited.any():
            sums[inhabited] = np.add.reduceat(self.number(scores, labels), begins[inhabited])
        return sums


def _rows(table: Table, agents: NDArray[np.int64]) -> NDArray[np.int64]:
    """(k,) the rows of some agents, one agent after the other."""
    counts = table.counts[agents]
    begins = np.cumsum(counts) - counts
    return np.repeat(table.offsets[agents] - begins, counts) + np.arange(counts.sum())
