"""The quadratically smoothed hinge, and its rows for compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .loss import Labels, Loss, RowForms, register


@final
@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """Quadratically smoothed hinge of z = y s: 0 from z = 1 on, (1 - z)^2 / 2 on [0, 1], 1/2 - z below 0."""

    name: str = "smoothed_hinge"
    lipschitz: float = 1.0
    curvature: float = 1.0
    labels: Labels = "classes"

    @override
    def value(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        gap = 1.0 - labels * scores
        within = np.clip(gap, 0.0, 1.0)
        return within * (gap - 0.5 * within)

    @override
    def slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        return -labels * np.clip(1.0 - labels * scores, 0.0, 1.0)

    @override
    def second_slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        margins = labels * scores
        return ((margins >= 0.0) & (margins < 1.0)).astype(np.float64)

    @property
    @override
    def rows(self) -> RowForms:
        return RowForms(_slope, _bend, _add)


def _slope(score, label):  # pragma: no cover - compiled
    return -label * min(max(1.0 - label * score, 0.0), 1.0)


def _bend(score, label):  # pragma: no cover - compiled
    return 1.0 if 0.0 <= label * score < 1.0 else 0.0


def _add(score, label, total, factor):  # pragma: no cover - compiled
    gap = 1.0 - label * score
    within = min(max(gap, 0.0), 1.0)
    return total + within * (gap - 0.5 * within), factor


register(SmoothedHinge())
