"""Printed statements of Hu et al. (2019) that are decided by small problems: lemma 1, theorems 1 and 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .claims import Finding, Number, Statement

ITERATIONS = 200
RHO, RIDGE, SLOPE = 3.0, 0.01, 2.0
"""rho, lambda, and the Lipschitz constant L of the loss's gradient."""
WIDTHS = (66, 500)
"""Columns of a party: the first of a9a, and many."""


@dataclass(frozen=True)
class Residuals:
    """What an iteration of Algorithm 1 leaves: distance of scores from z, and the potential V of (13).

    Parameters
    ----------
    residuals, potentials : (t,) float64
    """

    residuals: NDArray[np.float64]
    potentials: NDArray[np.float64]


def jacobi(parties: int, *, iterations: int = ITERATIONS) -> Residuals:
    """Algorithm 1 on one row and parties of one column each, the same one: (6) at once, then (7) and (8).

    The loss is (SLOPE / 2) (z - 1)^2, regularisers are (RIDGE / 2) x^2 and every D_m is 1. Assumption 1.2 asks for
    RIDGE + RHO > 2, RHO (SLOPE + RHO) > 2 SLOPE^2 and RHO > SLOPE; it holds even with RHO alone as the modulus of z.

    Parameters
    ----------
    parties : int
    iterations : int
    """
    x, z, y = np.zeros(parties), 0.0, 0.0
    residuals, potentials = [], []
    for _ in range(iterations):
        x = (RHO * (z - (x.sum() - x)) - y) / (RIDGE + RHO)
        scores = float(x.sum())
        z = (RHO * scores + y + SLOPE) / (SLOPE + RHO)
        y = y + RHO * (scores - z)
        residuals.append(abs(scores - z))
        to_x = RIDGE * x + y + RHO * (scores - z)
        to_z = SLOPE * (z - 1) - y - RHO * (scores - z)
        potentials.append(float(np.sum(to_x**2) + to_z**2 + (scores - z) ** 2))
    return Residuals(np.array(residuals), np.array(potentials))


def theorem_1() -> Finding:
    """Parties whose columns are alike, under the printed assumption."""
    numbers = []
    for parties in (2, 3, 4):
        last = jacobi(parties).residuals[-1]
        numbers.append(Number(f"residual after {ITERATIONS} iterations, {parties} parties", float(last), high=1e-3))
    return Finding(
        tuple(numbers),
        f"Counterexample: parties that hold the same column of norm 1, a quadratic loss with L = {SLOPE:g}, "
        f"rho = {RHO:g} and lambda = {RIDGE:g}, which meets assumption 1. All parties correct the same error at once, "
        "each by the whole of it. The assumption asks for a modulus above a constant, where the coupling of parties "
        "grows with rho and with their number.",
    )


def theorem_2() -> Finding:
    """The potential of the same iterations; (14) has some V below C (L - f) / t within t iterations."""
    numbers = []
    for parties in (2, 3, 4):
        potentials = jacobi(parties).potentials
        ratio = float(potentials[len(potentials) // 2 :].min() / potentials[0])
        name = f"smallest V of the second half of {ITERATIONS} iterations / the first V, {parties} parties"
        numbers.append(Number(name, ratio, high=1.0))
    return Finding(
        tuple(numbers),
        "The counterexample of theorem 1: V grows, so that no constant C bounds t V.",
    )


def largest_change(width: int) -> float:
    """Change of D x after one step of (16) without noise, between neighbouring data that meet assumption 2.

    Column 1 is (a, a, 0, ...) or (a, -a, 0, ...), which is at distance 2 a < 1; every row has norm 1, as the remaining
    columns fill it. z, y and x have l1 norms of at most b1 = 1, and the other party's x is 0.

    Parameters
    ----------
    width : int
        Columns of the party, at least 3.
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


def lemma_1() -> Finding:
    """What one column moves in a message, beside the printed bound C at rho = b1 = c1 = 1 and two parties."""
    numbers = []
    for width in WIDTHS:
        printed = 3 / width * (RIDGE + 3)
        name = f"sensitivity found / C = {printed:.3g}, {width} columns"
        numbers.append(Number(name, largest_change(width) / printed, high=1.0))
    return Finding(
        tuple(numbers),
        "The proof bounds the inverse of D'D by 1 / d, d being the number of columns. A short column that other "
        "columns do not replace has an inverse of order 1 whatever d is: counterexample of rows of norm 1, a column "
        f"that moves by 0.98, and vectors of l1 norm at most b1 = 1 (lambda = {RIDGE:g}).",
    )


STATEMENTS = (
    Statement("Theorem 1", "under assumption 1, |sum_m D_m x_m - z| tends to 0.", theorem_1),
    Statement("Theorem 2", "under assumption 1, V is below e within O(1 / e) iterations.", theorem_2),
    Statement(
        "Lemma 1",
        "the sensitivity of D_m x_m is at most C = 3 / (d_m rho) (lambda c1 + (1 + M rho) b1).",
        lemma_1,
    ),
)
