"""The losses of `hushnet.agents.losses` row by row, for compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from .compilation.compiled import inlined

MANY = 1e100
"""A product of factors between 1 and 2 that can take some more without overflow."""


class CompiledLoss(NamedTuple):
    """One loss, compiled for inlining.

    Attributes
    ----------
    slope, bend : callable
        ``slope(score, label)`` and ``bend(score, label)``: first and second derivative with respect to the score.
    summed : callable
        ``summed(scores, labels, rows)``: the sum of the losses of the first rows.
    """

    slope: Callable[..., Any]
    bend: Callable[..., Any]
    summed: Callable[..., Any]

    @classmethod
    def of(cls, name: str) -> CompiledLoss:
        """The loss of a name."""
        return _made(name)


@cache
def _made(name: str) -> CompiledLoss:
    slope, bend, add = _LOSSES[name]
    add = inlined(add)

    def summed(scores, labels, rows):  # pragma: no cover - compiled
        total, factor = 0.0, 1.0
        for row in range(rows):
            total, factor = add(scores[row], labels[row], total, factor)
        return total + math.log(factor)

    return CompiledLoss(inlined(slope), inlined(bend), inlined(summed))


def _logistic_slope(score, label):  # pragma: no cover - compiled
    return -label / (1.0 + math.exp(label * score))


def _logistic_bend(score, _label):  # pragma: no cover - compiled
    return 1.0 / ((1.0 + math.exp(score)) * (1.0 + math.exp(-score)))


def _add_logistic(score, label, total, factor):  # pragma: no cover - compiled
    # log(1 + exp(-z)) = log(1 + exp(-|z|)) - min(z, 0); one logarithm of a product serves many rows.
    factor *= 1.0 + math.exp(-abs(label * score))
    total -= min(label * score, 0.0)
    if factor > MANY:
        return total + math.log(factor), 1.0
    return total, factor


def _squared_slope(score, label):  # pragma: no cover - compiled
    return 2.0 * (score - label)


def _squared_bend(_score, _label):  # pragma: no cover - compiled
    return 2.0


def _add_squared(score, label, total, factor):  # pragma: no cover - compiled
    return total + (score - label) ** 2, factor


def _smoothed_hinge_slope(score, label):  # pragma: no cover - compiled
    return -label * min(max(1.0 - label * score, 0.0), 1.0)


def _smoothed_hinge_bend(score, label):  # pragma: no cover - compiled
    return 1.0 if 0.0 <= label * score < 1.0 else 0.0


def _add_smoothed_hinge(score, label, total, factor):  # pragma: no cover - compiled
    gap = 1.0 - label * score
    within = min(max(gap, 0.0), 1.0)
    return total + within * (gap - 0.5 * within), factor


def _hinge_slope(score, label):  # pragma: no cover - compiled
    return -label if label * score < 1.0 else 0.0


def _hinge_bend(_score, _label):  # pragma: no cover - compiled
    return 0.0


def _add_hinge(score, label, total, factor):  # pragma: no cover - compiled
    return total + max(0.0, 1.0 - label * score), factor


_LOSSES = {
    "logistic": (_logistic_slope, _logistic_bend, _add_logistic),
    "squared": (_squared_slope, _squared_bend, _add_squared),
    "smoothed_hinge": (_smoothed_hinge_slope, _smoothed_hinge_bend, _add_smoothed_hinge),
    "hinge": (_hinge_slope, _hinge_bend, _add_hinge),
}
