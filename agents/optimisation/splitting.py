"""The centre's step of an alternating direction method: every row's own scalar problem, solved by safe Newton steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss

TOLERANCE = 1e-9
"""Residual |phi'(z) + curvature z - linear| that is small enough."""
STEPS = 200


def minimise_rows(
    loss: Loss, labels: NDArray[np.float64], *, curvature: float, linear: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The (M,) minimisers of phi(z, y) + (curvature / 2) z^2 - linear z, one scalar problem a row.

    The curvature is > 0. Newton's method within a bracket: phi' is bounded, so z is within lipschitz / curvature of
    linear / curvature. A step that leaves the bracket, or follows one that did not halve the residual, is replaced by
    the bracket's middle; without the second rule the iteration can cycle. Residuals |phi'(z) + curvature z - linear|
    are at most 1e-9, or rounding if that is more. Raises `ValueError` if the loss is not smooth, or its slope is
    unbounded.
    """
    if not (loss.smooth and np.isfinite(loss.lipschitz)):
        raise ValueError(f"the rows of the loss {loss.name!r} have no bracket: it must be smooth, with bounded slope")
    low, high = (linear - loss.lipschitz) / curvature, (linear + loss.lipschitz) / curvature
    points = linear / curvature
    limit = TOLERANCE + 1e-14 * np.abs(linear)
    last = np.full_like(points, np.inf)
    for _ in range(STEPS):
        residual = loss.slope(points, labels) + curvature * points - linear
        if (np.abs(residual) <= limit).all():
            break
        low, high = np.where(residual < 0, points, low), np.where(residual > 0, points, high)
        trial = points - residual / (loss.second_slope(points, labels) + curvature)
        slow = (np.abs(residual) > 0.5 * last) | (trial < low) | (trial > high)
        last = np.abs(residual)
        points = np.where(last <= limit, points, np.where(slow, 0.5 * (low + high), trial))
    return points
