"""Small problems that decide printed statements of Hu et al. (2019): lemma 1, theorems 1, 2 and 3."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...protocols.algorithms.feature_noise import range_root

ITERATIONS = 200
RHO, RIDGE, SLOPE = 3.0, 0.01, 2.0
"""rho, lambda, and the Lipschitz constant L of the loss's gradient."""
DRAWS = 200
"""Messages of which an observer asks whether they are in a range."""

Array = NDArray[np.float64]


def jacobi(parties: int) -> tuple[Array, Array]:
    """What iterations of Algorithm 1 leave: (t,) distances of scores from z, and (t,) potentials V of (13).

    There is one row, and parties have one column each, the same one: (6) at once, then (7) and (8). The loss is
    (SLOPE / 2) (z - 1)^2, regularisers are (RIDGE / 2) x^2 and every D_m is 1. Assumption 1.2 asks for RIDGE + RHO > 2,
    RHO (SLOPE + RHO) > 2 SLOPE^2 and RHO > SLOPE; it holds even with RHO alone as the modulus of z.
    """
    x, z, y = np.zeros(parties), 0.0, 0.0
    residuals, potentials = [], []
    for _ in range(ITERATIONS):
        x = (RHO * (z - (x.sum() - x)) - y) / (RIDGE + RHO)
        scores = float(x.sum())
        z = (RHO * scores + y + SLOPE) / (SLOPE + RHO)
        y = y + RHO * (scores - z)
        residuals.append(abs(scores - z))
        to_x = RIDGE * x + y + RHO * (scores - z)
        to_z = SLOPE * (z - 1) - y - RHO * (scores - z)
        potentials.append(float(np.sum(to_x**2) + to_z**2 + (scores - z) ** 2))
    return np.array(residuals), np.array(potentials)


def largest_change(width: int) -> float:
    """Change of D x after one step of (16) without noise, between neighbouring data that meet assumption 2.

    Column 1 is (a, a, 0, ...) or (a, -a, 0, ...), which is at distance 2 a < 1; every row has norm 1, as the remaining
    columns fill it; the party has ``width`` columns, at least 3. z, y and x have l1 norms of at most b1 = 1, and the
    other party's x is 0.
    """
    a, copies = 0.49, 40
    rows = 2 + copies * (width - 1)
    data = np.zeros((rows, width))
    data[np.arange(2, rows), 1 + np.arange(rows - 2) % (width - 1)] = 1.0
    data[0, 1] = data[1, 2] = np.sqrt(1 - a * a)
    given = np.zeros(rows)
    given[:2] = 0.25
    seen = []
    for sign in (1.0, -1.0):
        data[0, 0], data[1, 0] = a, sign * a
        # y = given and z = -given: x minimises ridge/2 |x|^2 + y'D x + 1/2 |D x - z|^2 at rho = 1.
        x = np.linalg.solve(data.T @ data + RIDGE * np.eye(width), data.T @ (-2 * given))
        assert np.abs(x).sum() <= 1.0 + 1e-9, "assumption 2 bounds x as well"
        seen.append(data @ x)
    return float(np.linalg.norm(seen[0] - seen[1]))


def told_apart(scale: float) -> float:
    """Epsilon, at least, of noise (16): infinite if all messages are known not to be of a neighbour, else 0.

    The printed noise D xi lies in the range of D, and so does the message D x + D xi; ranges differ in one column.
    """
    rng = np.random.default_rng(0)
    data = rng.normal(size=(50, 5))
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    neighbour, change = data.copy(), rng.normal(size=len(data))
    neighbour[:, 0] += change / (2 * np.linalg.norm(change))
    root = range_root(data)
    scores = data @ (rng.normal(size=(data.shape[1], 1)) + scale * root @ rng.normal(size=(root.shape[1], DRAWS)))
    ranks = [[np.linalg.matrix_rank(np.column_stack([d, each])) for each in scores.T] for d in (data, neighbour)]
    width = data.shape[1]
    return np.inf if set(ranks[0]) == {width} and set(ranks[1]) == {width + 1} else 0.0
