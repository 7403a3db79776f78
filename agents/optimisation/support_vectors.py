"""Linear support vector machine without intercept, to a certified duality gap.

Dual coordinate ascent (Hsieh, Chang, Lin, Keerthi, Sundararajan 2008, algorithm 1) on

    min_x sum_k w_k max(0, 1 - y_k x_k . x) + (ridge / 2) |x|^2
    max_a sum_k a_k - (1 / (2 ridge)) |sum_k a_k y_k x_k|^2   with 0 <= a_k <= w_k.

Rows whose dual variable is stuck at a bound are skipped while the others settle, and looked at again every tenth pass
(their section 3.2, shrinking). Where that is slow, it still finds out which rows are at the kink, and a linear system
settles those.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compilation import compiled

GAP = 1e-10
"""Duality gap, relative to the value, that is always enough."""
ENOUGH = 1e-8
"""Duality gap, relative to the value, that is enough once `PASSES` are over."""
PASSES = 20_000
SLOW = 100
"""After so many passes, a linear system settles the rows at the kink every tenth pass."""
MOST_FREE = 2000
"""Rows at the kink that a linear system is worth solving for."""


def minimise_hinge(
    features: NDArray[np.float64], labels: NDArray[np.float64], weights: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """The (p,) minimiser of sum_k w_k max(0, 1 - y_k x_k . x) + (ridge / 2) |x|^2, w_k >= 0, ridge > 0.

    Its value exceeds the minimum by at most 1e-10 of it. Raises `ArithmeticError` if the duality gap is still above
    1e-8 of the value after 20,000 passes, or overflows.
    """
    signed = np.ascontiguousarray(features * labels[:, None])
    squares = np.einsum("kp,kp->k", signed, signed)
    duals, model = np.zeros(len(labels)), np.zeros(features.shape[1])
    generator = np.random.default_rng(0)  # the order of coordinates changes the effort, not the result
    gap = np.inf
    for number in range(PASSES):
        if number % 10 == 0:
            if number >= SLOW:
                climb(signed, weights, ridge, duals, duals @ signed / ridge)
            model = duals @ signed / ridge
            gap = _relative_gap(signed, weights, ridge, duals, model)
            if gap <= GAP:
                return model
            if not np.isfinite(gap):
                raise ArithmeticError("the rows of the support vector machine are too large: their squares overflow")
            active = np.arange(len(labels))
        active = generator.permutation(active)
        kept = ascend(signed, squares, weights, ridge, duals, model, active)
        active = active[kept]
    if gap > ENOUGH:
        raise ArithmeticError(
            f"the support vector machine has a relative duality gap of {gap:.3g} after {PASSES} passes"
        )
    return model


def _relative_gap(
    signed: NDArray[np.float64],
    weights: NDArray[np.float64],
    ridge: float,
    duals: NDArray[np.float64],
    model: NDArray[np.float64],
) -> float:
    square = ridge * float(model @ model)
    primal = float(weights @ np.maximum(0.0, 1.0 - signed @ model)) + square / 2
    dual = float(duals.sum()) - square / 2
    return (primal - dual) / max(primal, 1e-300)


def climb(
    signed: NDArray[np.float64],
    weights: NDArray[np.float64],
    ridge: float,
    duals: NDArray[np.float64],
    model: NDArray[np.float64],
) -> None:
    """Move the dual variables inside their bounds to their joint optimum, or towards it until one meets a bound.

    With Z their rows, ridge times the dual has slope s = ridge (1 - Z x) and second derivative -Z Z' in them: it rises
    up to the step with Z Z' step = s, or without end along the part of s that no step reaches. Works in place.
    """
    free = (duals > 0.0) & (duals < weights)
    if not 0 < free.sum() <= MOST_FREE:
        return
    rows, inside = signed[free], duals[free]
    slope = ridge * (1.0 - rows @ model)
    step, length = np.linalg.lstsq(rows @ rows.T, slope, rcond=None)[0], 1.0
    rest = slope - rows @ (rows.T @ step)
    if np.linalg.norm(rest) > 1e-9 * np.linalg.norm(slope):
        step, length = rest, np.inf
    room = np.where(step > 0.0, weights[free] - inside, inside)
    lengths = room / np.maximum(np.abs(step), 1e-200)
    duals[free] = np.clip(inside + min(length, float(lengths.min())) * step, 0.0, weights[free])


@compiled(fastmath=True)
def ascend(signed, squares, weights, ridge, duals, model, active):  # pragma: no cover - compiled
    """One pass over the active rows, in their order; True for those that were not stuck at a bound."""
    kept = np.ones(len(active), dtype=np.bool_)
    for rank in range(len(active)):
        row = active[rank]
        slope = 0.0
        for j in range(len(model)):
            slope += signed[row, j] * model[j]
        slope = 1.0 - slope
        old = duals[row]
        if (old <= 0.0 and slope < 0.0) or (old >= weights[row] and slope > 0.0):
            kept[rank] = False
            continue
        if squares[row] > 0.0:
            new = min(max(old + ridge * slope / squares[row], 0.0), weights[row])
        else:
            new = weights[row]
        change = (new - old) / ridge
        if change != 0.0:
            duals[row] = new
            for j in range(len(model)):
                model[j] += change * signed[row, j]
    return kept
