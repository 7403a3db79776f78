"""The squared loss of real labels, and its rows for compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .loss import Labels, Loss, RowForms, register


@final
@dataclass(frozen=True)
class Squared(Loss):
    """phi(s, y) = (s - y)^2 with real labels."""

    name: str = "squared"
    lipschitz: float = float("inf")
    curvature: float = 2.0
    labels: Labels = "real"

    @override
    def value(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        return (scores - labels) ** 2

    @override
    def slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        return 2.0 * (scores - labels)

    @override
    def second_slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full_like(scores, 2.0)

    @property
    @override
    def rows(self) -> RowForms:
        return RowForms(_slope, _bend, _add)


def _slope(score, label):  # pragma: no cover - compiled
    return 2.0 * (score - label)


def _bend(_score, _label):  # pragma: no cover - compiled
    return 2.0


def _add(score, label, total, factor):  # pragma: no cover - compiled
    return total + (score - label) ** 2, factor


register(Squared())
