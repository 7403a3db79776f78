"""Criteria for predictions on test samples, one registration each, from which metrics of the same name are made.

A criterion takes the mean of a number per sample over an agent's test samples, and may transform this mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .registry import Registry

Array = NDArray[np.float64]


def _as_it_is(mean: Array) -> Array:
    return mean


@dataclass(frozen=True)
class Criterion:
    """A criterion for predictions on test samples, such as accuracy."""

    name: str
    """What a task and ``record.metrics`` call it."""
    label: str
    """For axes and tables."""
    per_row: Callable[[Array, Array], Array]
    """``per_row(predictions, labels)``: a number per row, in float64."""
    predicts: Callable[[Array], Array] = _as_it_is
    """``predicts(scores)``: the predictions that scores stand for."""
    of_mean: Callable[[Array], Array] = _as_it_is
    """``of_mean(means)``: the criterion from the means of these numbers."""
    more_is_better: bool = False
    high: float = float("inf")
    """Its largest value; the smallest is 0."""
    classes: bool = False
    """Whether labels are classes, so that trivial predictions are majorities and no means."""
    formula: str = ""
    """The criterion of agent i and its m_i samples, in LaTeX, for the documentation."""

    def number(self, scores: Array, labels: Array) -> Array:
        """(k,) the number of each of k rows with these scores."""
        return self.per_row(self.predicts(scores), labels)


CRITERIA: Registry[Criterion] = Registry("criterion")
"""Criteria by name; `hushnet.agents.tasks.task.Task.metric` is one of these names."""


def register(criterion: Criterion) -> Criterion:
    """Make a criterion known by its name; see `Registry.add`."""
    return CRITERIA.add(criterion.name, criterion, maker=criterion.per_row)


def _classes(scores: Array) -> Array:
    """The class of the highest score: -1 or +1 of (k,) or (k, 2) scores, 0 to K - 1 of (k, K)."""
    if scores.ndim == 2:
        top = scores.argmax(axis=1).astype(np.float64)
        return top if scores.shape[1] > 2 else 2.0 * top - 1.0
    return 2.0 * (scores >= 0).astype(np.float64) - 1.0


def _hits(predictions: Array, labels: Array) -> Array:
    return (predictions == labels).astype(np.float64)


def _squared_errors(predictions: Array, labels: Array) -> Array:
    return (predictions - labels) ** 2


MEAN_ERROR = r"\frac{1}{m_i} \sum_{k=1}^{m_i} ({\hat{y}{}}_{ik} - y_{ik})^2"
register(
    Criterion(
        "accuracy",
        "accuracy",
        _hits,
        _classes,
        more_is_better=True,
        high=1.0,
        classes=True,
        formula=r"\frac{1}{m_i} \sum_{k=1}^{m_i} [{\hat{y}{}}_{ik} = y_{ik}]",
    )
)
register(Criterion("rmse", "RMSE", _squared_errors, of_mean=np.sqrt, formula=rf"\left( {MEAN_ERROR} \right)^{{1/2}}"))
register(Criterion("mse", "mean squared error", _squared_errors, formula=MEAN_ERROR))
