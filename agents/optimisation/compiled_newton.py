"""An agent's local problem, compiled: `minimise_local` of `solvers.py` by the method of `newton.py`.

The same steps, backtracking and stopping rules; sums are rounded otherwise, and the linear systems are solved by
Cholesky's factorisation, which their positive definite matrices allow, in place of LAPACK's elimination.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np
from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numba.extending import intrinsic

from ..compilation.callbacks import Callback, called_at
from ..compilation.compiled import REASSOCIATED, compiled, inlined
from ..compiled_losses import CompiledLoss
from .newton import LEAST_LENGTH

MOST_STEPS = 100


@compiled(fastmath=REASSOCIATED, error_model="numpy")
def solve_positive(matrix, right):  # pragma: no cover - compiled
    """Solve a positive definite system in place, by Cholesky's factorisation U'U.

    Parameters
    ----------
    matrix : (k, k) float64
        Only its upper triangle is read; becomes U.
    right : (k,) float64
        Becomes the solution; NaN where the matrix is not positive definite.
    """
    size = len(right)
    for i in range(size):
        pivot = 1.0 / math.sqrt(matrix[i, i])
        for j in range(i, size):
            matrix[i, j] *= pivot
        right[i] *= pivot
        for row in range(i + 1, size):
            factor = matrix[i, row]
            for j in range(row, size):
                matrix[row, j] -= factor * matrix[i, j]
            right[row] -= factor * right[i]
    for i in range(size - 1, -1, -1):
        total = right[i]
        for j in range(i + 1, size):
            total -= matrix[i, j] * right[j]
        right[i] = total / matrix[i, i]


@compiled(fastmath=REASSOCIATED, error_model="numpy")
def add_squares(features, bends, matrix):  # pragma: no cover - compiled
    """Add X' diag(bends) X to the upper triangle of a (p, p) matrix, four rows and two columns at a time.

    What lies just below the diagonal is written, too.
    """
    rows, width = features.shape
    whole, even = rows - rows % 4, width - width % 2
    for row in range(0, whole, 4):
        for i in range(0, even, 2):
            a, e = bends[row] * features[row, i], bends[row] * features[row, i + 1]
            b, f = bends[row + 1] * features[row + 1, i], bends[row + 1] * features[row + 1, i + 1]
            c, g = bends[row + 2] * features[row + 2, i], bends[row + 2] * features[row + 2, i + 1]
            d, h = bends[row + 3] * features[row + 3, i], bends[row + 3] * features[row + 3, i + 1]
            upper, lower = matrix[i], matrix[i + 1]
            for j in range(i, width):
                w, x, y, z = features[row, j], features[row + 1, j], features[row + 2, j], features[row + 3, j]
                upper[j] += a * w + b * x + c * y + d * z
                lower[j] += e * w + f * x + g * y + h * z
        if even < width:
            for k in range(row, row + 4):
                matrix[even, even] += bends[k] * features[k, even] * features[k, even]
    for row in range(whole, rows):
        for i in range(width):
            a = bends[row] * features[row, i]
            for j in range(i, width):
                matrix[i, j] += a * features[row, j]


@compiled(fastmath=REASSOCIATED, error_model="numpy")
def bent_solve(features, bends, curvature, right):  # pragma: no cover - compiled
    """Solve (X' diag(bends) X + curvature I) step = right, in as many unknowns as there are rows or columns.

    Parameters
    ----------
    features : (m, p) float
    bends : (m,) float64
        >= 0.
    curvature : float
        > 0.
    right : (p,) float64

    Returns
    -------
    (p,) float64
    """
    rows, width = features.shape
    step = right.copy()
    if rows >= width:
        matrix = np.zeros((width, width))
        for i in range(width):
            matrix[i, i] = curvature
        add_squares(features, bends, matrix)
        solve_positive(matrix, step)
        return step
    # Woodbury's identity; with roots a bend of 0 needs no care.
    inner, roots, reduced = np.empty((rows, rows)), np.sqrt(bends), np.empty(rows)
    for row in range(rows):
        for other in range(row, rows):
            total = 0.0
            for k in range(width):
                total += (
                    np.float64(features[row, k]) * features[other, k]
                )  # a product of two float32 has no more digits
            inner[row, other] = roots[row] * roots[other] * total
        inner[row, row] += curvature
        total = 0.0
        for k in range(width):
            total += features[row, k] * right[k]
        reduced[row] = roots[row] * total
    solve_positive(inner, reduced)
    for row in range(rows):
        factor = roots[row] * reduced[row]
        for k in range(width):
            step[k] -= factor * features[row, k]
    for k in range(width):
        step[k] /= curvature
    return step


def signature_of(rows: types.Type) -> Any:
    """The signature of `minimiser_of` for features of a type."""
    vector, number = types.float64[::1], types.float64
    return vector(rows[:, ::1], vector, number, number, vector, vector, number)


def _minimised_at(_context, _address, features, _labels, _weight, _curvature, _linear, _start, _tolerance):
    return called_at(signature_of(features.dtype))


minimised_at: Any = intrinsic(_minimised_at)
"""``minimised_at(address, features, ...)`` calls a `minimiser_of` where it is, so that it is no part of the caller."""


@cache
def minimiser_of(loss: str, *, single: bool) -> Callback:
    """The compiled form of `minimise_local` for one of hushnet's smooth losses, by its name.

    It is compiled by itself, once for all steps, which call it at its address.

    Parameters
    ----------
    loss : str
    single : bool
        Whether features are float32.

    Returns
    -------
    Callback
        ``minimise(features, labels, weight, curvature, linear, start, tolerance)`` gives the (p,) minimiser.
    """
    slope, bend, summed = CompiledLoss.of(loss)
    part = partial(inlined, forceinline=False)  # too long to be put into steps

    @part
    def evaluate(features, labels, weight, curvature, linear, model, scores, gradient):  # pragma: no cover - compiled
        """The value at a model; fills scores and gradient."""
        rows, width = features.shape
        for k in range(width):
            gradient[k] = curvature * model[k] - linear[k]
        for row in range(rows):
            score = 0.0
            for k in range(width):
                score += features[row, k] * model[k]
            scores[row] = score
            share = weight / rows * slope(score, labels[row])
            for k in range(width):
                gradient[k] += share * features[row, k]
        square, product = 0.0, 0.0
        for k in range(width):
            square += model[k] * model[k]
            product += linear[k] * model[k]
        return weight * (summed(scores, labels, rows) / rows) + 0.5 * curvature * square - product

    @part
    def size_of(vector):  # pragma: no cover - compiled
        total = 0.0
        for k in range(len(vector)):
            total += vector[k] * vector[k]
        return math.sqrt(total)

    def minimise(features, labels, weight, curvature, linear, start, tolerance):  # pragma: no cover - compiled
        rows, width = features.shape
        if weight == 0.0 or rows == 0:
            return linear / curvature
        point, trial = start.copy(), np.empty(width)
        scores, trial_scores, bends = np.empty(rows), np.empty(rows), np.empty(rows)
        gradient, trial_gradient = np.empty(width), np.empty(width)
        value = evaluate(features, labels, weight, curvature, linear, point, scores, gradient)
        first = size = size_of(gradient)
        for _ in range(MOST_STEPS):
            if size <= max(tolerance, 1e-13 * first):
                break
            for row in range(rows):
                bends[row] = weight / rows * bend(scores[row], labels[row])
            step = bent_solve(features, bends, curvature, -gradient)
            decrease = 0.0
            for k in range(width):
                decrease += gradient[k] * step[k]
            length = 1.0
            while True:
                for k in range(width):
                    trial[k] = point[k] + length * step[k]
                trial_value = evaluate(features, labels, weight, curvature, linear, trial, trial_scores, trial_gradient)
                trial_size = size_of(trial_gradient)
                # Near the minimum the value is flat to rounding, and only the gradient can tell progress.
                if trial_value <= value + 1e-4 * length * decrease or trial_size < 0.5 * size or length < LEAST_LENGTH:
                    break
                length *= 0.5
            if length < LEAST_LENGTH or (trial_size >= size and value - trial_value <= 1e-14 * abs(value)):
                break
            value, size = trial_value, trial_size
            point, trial = trial, point
            scores, trial_scores = trial_scores, scores
            gradient, trial_gradient = trial_gradient, gradient
        return point

    rows = types.float32 if single else types.float64
    options: dict[str, Any] = {"fastmath": REASSOCIATED, "error_model": "numpy", "boundscheck": False}
    what = f"Newton's method for the {loss.replace('_', ' ')} loss"
    return Callback(signature_of(rows), minimise, what=what, **options)
