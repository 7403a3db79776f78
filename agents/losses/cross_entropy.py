"""The logistic loss of K classes, cross-entropy, of as many scores; for two classes it is the logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .loss import Labels, Loss

Array = NDArray[np.float64]


@final
@dataclass(frozen=True)
class CrossEntropy(Loss):
    """phi(s, y) = log(sum_c exp(s_c)) - s_y of K scores s, in natural units.

    Scores are (..., K) and labels (...): 0 to K - 1, or -1 and +1 where there are two classes.
    """

    name: str = "log"
    lipschitz: float = 2.0**0.5
    curvature: float = 0.5
    labels: Labels = "classes"

    @override
    def value(self, scores: Array, labels: Array) -> Array:
        top = scores.max(axis=-1)
        total = np.log(np.exp(scores - top[..., None]).sum(axis=-1)) + top
        return total - np.take_along_axis(scores, _places(scores, labels), axis=-1)[..., 0]

    @override
    def slope(self, scores: Array, labels: Array) -> Array:
        """(..., K) probabilities, less 1 for the label's class."""
        slopes = probabilities(scores)
        places = _places(scores, labels)
        np.put_along_axis(slopes, places, np.take_along_axis(slopes, places, axis=-1) - 1.0, axis=-1)
        return slopes

    @override
    def second_slope(self, scores: Array, labels: Array) -> Array:
        """(..., K) second derivatives by each score alone."""
        shares = probabilities(scores)
        return shares * (1.0 - shares)


def probabilities(scores: Array) -> Array:
    """(..., K) probabilities of classes, exp(s_c) / sum_c exp(s_c)."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def class_of(labels: Array, classes: int) -> NDArray[np.int64]:
    """(...) classes from 0 to K - 1 of labels, which are -1 and +1 where there are two."""
    return (labels > 0).astype(np.int64) if classes == 2 else labels.astype(np.int64)


def class_names(classes: int) -> tuple[str, ...]:
    """Labels of K classes as texts, in the order of `class_of`."""
    return ("-1", "+1") if classes == 2 else tuple(map(str, range(classes)))


def _places(scores: Array, labels: Array) -> NDArray[np.int64]:
    return class_of(labels, scores.shape[-1])[..., None]
