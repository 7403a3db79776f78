"""The squared loss of real labels, and its rows for compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from .loss import Labels, Loss, RowForms, register


@final
@dataclass(frozen=True)
class Squared(Loss):
    """phi(s, y) = (s - y)^2 with real labels."""

    name: str = "squared"
    lipschitz: float = float("inf")
    curvature: float = 2.0
    labels: Labels = "real"

    def value(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Loss.value`."""
        return (scores - labels) ** 2

    def slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Loss.slope`."""
        return 2.0 * (scores - labels)

    def second_slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Loss.second_slope`."""
        return np.full_like(scores, 2.0)

    @property
    def rows(self) -> RowForms:
        """See `Loss.rows`."""
        return RowForms(_slope, _bend, _add)


def _slope(score, label):  # pragma: no cover - compiled
    return 2.0 * (score - label)


def _bend(_score, _label):  # pragma: no cover - compiled
    return 2.0


def _add(score, label, total, factor):  # pragma: no cover - compiled
    return total + (score - label) ** 2, factor


register(Squared())
