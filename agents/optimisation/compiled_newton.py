"""An agent's local problem, compiled: `minimise_local` of `solvers.py` by the method of `newton.py`.

The same steps, backtracking and stopping rules; sums are rounded otherwise, and the linear systems are solved by
Cholesky's factorisation, which their positive definite matrices allow, in place of LAPACK's elimination.
"""

from __future__ import annotations

import math

import numpy as np

from ..compilation import REASSOCIATED, part
from ..loss_codes import bend_of, slope_of, summed
from .newton import FLAT, LEAST_LENGTH

MOST_STEPS = 100


@part(fastmath=REASSOCIATED, error_model="numpy")
def scale_row(row, right, i):  # pragma: no cover - compiled
    """Divide a row of the factor, from its diagonal on, and the right side by the root of the diagonal."""
    pivot = 1.0 / math.sqrt(row[0])
    for j in range(len(row)):
        row[j] *= pivot
    right[i] *= pivot


@part(fastmath=REASSOCIATED, error_model="numpy")
def subtract_row(row, factor, other):  # pragma: no cover - compiled
    """Subtract a multiple of another row."""
    for j in range(len(row)):
        row[j] -= factor * other[j]


@part(fastmath=REASSOCIATED, error_model="numpy")
def solve_positive(matrix, right):  # pragma: no cover - compiled
    """Solve a (k, k) positive definite system in place, by Cholesky's factorisation U'U, two rows of U at a time.

    Only the upper triangle of the matrix is read, which becomes U; the right-hand side becomes the solution, NaN where
    the matrix is not positive definite. Loops run over parts of rows from their beginning: of those that begin
    elsewhere numba looks at every index for being negative, and none is vectorised.
    """
    size = len(right)
    for half in range((size + 1) // 2):
        i = 2 * half
        upper = matrix[i, i:]
        scale_row(upper, right, i)
        if i + 1 == size:
            break
        lower = matrix[i + 1, i + 1 :]
        subtract_row(lower, upper[1], upper[1:])
        right[i + 1] -= upper[1] * right[i]
        scale_row(lower, right, i + 1)
        for k in range(2, size - i):
            one, other = upper[k], lower[k - 1]
            row, above, below = matrix[i + k, i + k :], upper[k:], lower[k - 1 :]
            for j in range(size - i - k):
                row[j] -= one * above[j] + other * below[j]
            right[i + k] -= one * right[i] + other * right[i + 1]
    for known in range(size):
        i = size - 1 - known
        upper, solved = matrix[i, i + 1 :], right[i + 1 :]
        total = right[i]
        for j in range(known):
            total -= upper[j] * solved[j]
        right[i] = total / matrix[i, i]


@part(fastmath=REASSOCIATED, error_model="numpy")
def add_squares(features, bends, matrix):  # pragma: no cover - compiled
    """Add X' diag(bends) X to the upper triangle of a (p, p) matrix, four rows and two columns at a time.

    What lies just below the diagonal is written, too.
    """
    rows, width = features.shape
    whole = rows - rows % 4
    for quarter in range(whole // 4):
        row = 4 * quarter
        one, two, three, four = features[row], features[row + 1], features[row + 2], features[row + 3]
        bend = bends[row : row + 4]
        for half in range(width // 2):
            i = 2 * half
            a, e = bend[0] * one[i], bend[0] * one[i + 1]
            b, f = bend[1] * two[i], bend[1] * two[i + 1]
            c, g = bend[2] * three[i], bend[2] * three[i + 1]
            d, h = bend[3] * four[i], bend[3] * four[i + 1]
            upper, lower = matrix[i, i:], matrix[i + 1, i:]
            first, second, third, fourth = one[i:], two[i:], three[i:], four[i:]
            for j in range(width - i):
                w, x, y, z = first[j], second[j], third[j], fourth[j]
                upper[j] += a * w + b * x + c * y + d * z
                lower[j] += e * w + f * x + g * y + h * z
        if width % 2 == 1:
            for k in range(4):
                last = features[row + k, width - 1]
                matrix[width - 1, width - 1] += bend[k] * last * last
    for row in range(whole, rows):
        for i in range(width):
            factor, upper, values = bends[row] * features[row, i], matrix[i, i:], features[row, i:]
            for j in range(width - i):
                upper[j] += factor * values[j]


@part(fastmath=REASSOCIATED, error_model="numpy")
def bent_solve(features, bends, curvature, right):  # pragma: no cover - compiled
    """Solve (X' diag(bends) X + curvature I) step = right, in as many unknowns as (m, p) features have rows or columns.

    Bends are >= 0, the curvature > 0.
    """
    rows, width = features.shape
    few = rows < width
    size = rows if few else width
    matrix, solution, roots, step = np.zeros((size, size)), np.empty(size), np.empty(rows), np.empty(width)
    for i in range(size):
        matrix[i, i] = curvature
    for k in range(width):
        step[k] = right[k]
    if few:  # Woodbury's identity; with roots a bend of 0 needs no care.
        for row in range(rows):
            roots[row] = math.sqrt(bends[row])
        for row in range(rows):
            for other in range(row, rows):
                total = 0.0
                for k in range(width):  # a product of two float32 has no more digits
                    total += np.float64(features[row, k]) * features[other, k]
                matrix[row, other] += roots[row] * roots[other] * total
            total = 0.0
            for k in range(width):
                total += features[row, k] * step[k]
            solution[row] = roots[row] * total
    else:
        add_squares(features, bends, matrix)
        for k in range(width):
            solution[k] = step[k]
    solve_positive(matrix, solution)
    if not few:
        return solution
    for row in range(rows):
        factor = roots[row] * solution[row]
        for k in range(width):
            step[k] -= factor * features[row, k]
    for k in range(width):
        step[k] /= curvature
    return step


@part(fastmath=REASSOCIATED, error_model="numpy")
def evaluate(features, labels, weight, curvature, linear, model, loss, scores, gradient):  # pragma: no cover - compiled
    """The value at a model; fills scores and gradient."""
    rows, width = features.shape
    for k in range(width):
        gradient[k] = curvature * model[k] - linear[k]
    for row in range(rows):
        score = 0.0
        for k in range(width):
            score += features[row, k] * model[k]
        scores[row] = score
        share = weight / rows * slope_of(loss, score, labels[row])
        for k in range(width):
            gradient[k] += share * features[row, k]
    square, product = 0.0, 0.0
    for k in range(width):
        square += model[k] * model[k]
        product += linear[k] * model[k]
    return weight * (summed(loss, scores, labels, rows) / rows) + 0.5 * curvature * square - product


@part(fastmath=REASSOCIATED, error_model="numpy")
def size_of(vector):  # pragma: no cover - compiled
    """Euclidean norm."""
    total = 0.0
    for k in range(len(vector)):
        total += vector[k] * vector[k]
    return math.sqrt(total)


@part(fastmath=REASSOCIATED, error_model="numpy")
def minimise(features, labels, weight, curvature, linear, start, tolerance, loss):  # pragma: no cover - compiled
    """The (p,) minimiser of `minimise_local`, for one of hushnet's smooth losses by its number."""
    rows, width = features.shape
    point, trial, step = np.empty(width), np.empty(width), np.zeros(width)
    scores, trial_scores, bends = np.empty(rows), np.empty(rows), np.empty(rows)
    gradient, trial_gradient = np.empty(width), np.empty(width)
    for k in range(width):
        point[k] = linear[k] / curvature if weight == 0.0 or rows == 0 else start[k]
    if weight == 0.0 or rows == 0:
        return point
    value = size = first = decrease = length = 0.0
    steps = 0
    while True:
        for k in range(width):
            trial[k] = point[k] - length * step[k]
        trial_value = evaluate(features, labels, weight, curvature, linear, trial, loss, trial_scores, trial_gradient)
        trial_size = size_of(trial_gradient)
        if steps == 0:
            first = trial_size
        else:
            # As in `newton`: near the minimum only the gradient can tell progress.
            flat = not trial_value > value + FLAT * abs(value)
            less = trial_value <= value - 1e-4 * length * decrease or (flat and trial_size < 0.5 * size)
            if not less and length >= LEAST_LENGTH:
                length *= 0.5
                continue
            if length < LEAST_LENGTH or (trial_size >= size and value - trial_value <= 1e-14 * abs(value)):
                return point
        value, size = trial_value, trial_size
        point, trial = trial, point
        scores, trial_scores = trial_scores, scores
        gradient, trial_gradient = trial_gradient, gradient
        if steps == MOST_STEPS or size <= max(tolerance, 1e-13 * first):
            return point
        for row in range(rows):
            bends[row] = weight / rows * bend_of(loss, scores[row], labels[row])
        step = bent_solve(features, bends, curvature, gradient)
        decrease = 0.0
        for k in range(width):
            decrease += gradient[k] * step[k]
        length = 1.0
        steps += 1
