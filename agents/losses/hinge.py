"""The hinge, and its rows for compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .loss import Labels, Loss, RowForms, register


@final
@dataclass(frozen=True)
class Hinge(Loss):
    """phi(s, y) = max(0, 1 - y s) with labels in {-1, +1}; at the kink y s = 1 its slope is 0, the flat side's."""

    name: str = "hinge"
    lipschitz: float = 1.0
    curvature: float = float("inf")
    labels: Labels = "classes"

    @override
    def value(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(0.0, 1.0 - labels * scores)

    @override
    def slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(labels * scores < 1.0, -labels, 0.0)

    @override
    def second_slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """The second derivative of the hinge, which is 0 off the kink."""
        return np.zeros_like(scores)

    @property
    @override
    def rows(self) -> RowForms:
        return RowForms(_slope, _bend, _add)


def _slope(score, label):  # pragma: no cover - compiled
    return -label if label * score < 1.0 else 0.0


def _bend(_score, _label):  # pragma: no cover - compiled
    return 0.0


def _add(score, label, total, factor):  # pragma: no cover - compiled
    return total + max(0.0, 1.0 - label * score), factor


register(Hinge())
