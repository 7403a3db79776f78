"""The logistic loss, and its rows for compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .loss import MANY, Labels, Loss, RowForms, register


@final
@dataclass(frozen=True)
class Logistic(Loss):
    """phi(s, y) = log(1 + exp(-y s)) with labels in {-1, +1}."""

    name: str = "logistic"
    lipschitz: float = 1.0
    curvature: float = 0.25
    labels: Labels = "classes"

    @override
    def value(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        margins = labels * scores
        values = np.abs(margins)
        # log(1 + exp(-|z|)) - min(z, 0), in place: np.logaddexp(0, -z) takes several times as long.
        np.exp(np.negative(values, out=values), out=values)
        np.log1p(values, out=values)
        values -= np.minimum(margins, 0.0, out=margins)
        return values

    @override
    def slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        expit = _expit()
        return -labels * expit(-labels * scores)

    @override
    def second_slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        expit = _expit()
        return expit(scores) * expit(-scores)

    @property
    @override
    def rows(self) -> RowForms:
        return RowForms(_slope, _bend, _add)


@cache
def _expit() -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """SciPy's logistic function: found once, for steps ask for it, and not where a loss is only named."""
    from scipy.special import expit

    return expit


def _slope(score, label):  # pragma: no cover - compiled
    return -label / (1.0 + math.exp(label * score))


def _bend(score, _label):  # pragma: no cover - compiled
    return 1.0 / ((1.0 + math.exp(score)) * (1.0 + math.exp(-score)))


def _add(score, label, total, factor):  # pragma: no cover - compiled
    # log(1 + exp(-z)) = log(1 + exp(-|z|)) - min(z, 0); one logarithm of a product serves many rows.
    factor *= 1.0 + math.exp(-abs(label * score))
    total -= min(label * score, 0.0)
    if factor > MANY:
        return total + math.log(factor), 1.0
    return total, factor


register(Logistic())
