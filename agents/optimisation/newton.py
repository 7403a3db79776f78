"""Newton's method for smooth convex functions, down to rounding, and the linear solver that its large steps need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FLAT = 1e-9
"""Relative change of a value that may be rounding."""
LEAST_LENGTH = 1e-6
"""Backtracking below this share of a Newton step gains nothing: rounding has been reached."""


MOST_STEPS = 100


def newton(
    start: Array,
    evaluate: Callable[[Array], tuple[float, Array]],
    direction: Callable[[Array, Array, float], Array],
    *,
    floor: float = 0.0,
) -> Array:
    """Newton steps with backtracking, until the gradient no longer shrinks.

    A function gives value and gradient at a point; ``direction(point, gradient, relative tolerance)`` an approximate
    solution of Hessian @ step = -gradient. The floor is a gradient norm that is enough; 1e-13 of the first one always
    is.
    """
    point = start
    value, gradient = evaluate(point)
    first = size = float(np.linalg.norm(gradient))
    for _ in range(MOST_STEPS):
        if size <= max(floor, 1e-13 * first):
            break
        step = direction(point, gradient, max(1e-10, min(0.1, size / first)))
        decrease = float(np.vdot(gradient, step))
        length = 1.0
        while True:
            trial_value, trial_gradient = evaluate(point + length * step)
            trial_size = float(np.linalg.norm(trial_gradient))
            # Near the minimum the value is flat to rounding, and only the gradient can tell progress; elsewhere a
            # smaller gradient at a larger value would let steps between two pieces of a loss go on for ever.
            flat = not trial_value > value + FLAT * abs(value)
            enough = trial_value <= value + 1e-4 * length * decrease or (flat and trial_size < 0.5 * size)
            if enough or length < LEAST_LENGTH:
                break
            length *= 0.5
        if length < LEAST_LENGTH or (trial_size >= size and value - trial_value <= 1e-14 * abs(value)):
            break
        point = point + length * step
        value, gradient, size = trial_value, trial_gradient, trial_size
    return point


def conjugate_gradients(apply: Callable[[Array], Array], right: Array, diagonal: Array, *, tolerance: float) -> Array:
    """Solve A x = right by conjugate gradients, for a positive semidefinite A, applied by a function, with a solution.

    A's diagonal preconditions; where it is 0, x stays 0. The norm of the residual is to reach the tolerance, relative
    to the right-hand side's.
    """
    inverse = np.where(diagonal > 0, 1.0 / np.where(diagonal > 0, diagonal, 1.0), 0.0)
    solution = np.zeros_like(right)
    residual = right.copy()
    target = tolerance * float(np.linalg.norm(right))
    scaled = inverse * residual
    direction = scaled.copy()
    product = float(np.vdot(residual, scaled))
    for _ in range(20 * right.size):
        if np.linalg.norm(residual) <= target:
            break
        image = apply(direction)
        bend = float(np.vdot(direction, image))
        if not 0.0 < bend < np.inf:
            break
        solution += (product / bend) * direction
        residual -= (product / bend) * image
        scaled = inverse * residual
        product, previous = float(np.vdot(residual, scaled)), product
        direction = scaled + (product / previous) * direction
    return solution
