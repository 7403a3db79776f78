"""An agent's local problem: its loss between a quadratic and a linear term, solved to a stated tolerance.

Every method of multipliers asks its agents for argmin a L(theta) + (q/2) |theta|^2 - b . theta, where L is the mean
loss over the agent's own rows; an l2 penalty belongs into q.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..losses import Hinge, Loss, local_gradient, local_loss
from ..tables import Shard
from .newton import newton
from .support_vectors import ascend, climb

Array = NDArray[np.float64]

PASSES = 10
"""Passes of coordinate ascent between two looks at which rows are on the hinge's kink."""
LOOKS = 500
"""Bound on the number of looks."""


def check_minimised(loss: Loss) -> None:
    """Raise an `InputError` if nothing here finds exact minima of a loss: it has a kink and is not the hinge."""
    if not (loss.smooth or isinstance(loss, Hinge)):
        raise InputError(
            f"exact minima are found of smooth losses and of the hinge, and {loss.name!r} is another one with a kink; "
            "use a smooth loss",
            field=("task", "loss"),
        )


def minimise_local(
    shard: Shard,
    loss: Loss,
    *,
    weight: float,
    curvature: float,
    linear: Array,
    start: Array,
    tolerance: float,
) -> tuple[Array, float]:
    """The minimiser of F(theta) = weight * mean_k phi(x_k . theta, y_k) + (curvature / 2) |theta|^2 - linear . theta.

    The weight is >= 0, the curvature > 0; without rows the first term is 0. A smooth loss is minimised by Newton's
    method, which is one linear system where the loss is squared; the hinge by coordinate ascent on its dual. Where to
    begin changes the effort, not the result. Raises `InputError` if the loss has a kink and is not the hinge.

    Beside the (p,) model, a new array, stands the norm of F's gradient there, so that it is within residual / curvature
    of the minimiser; for the hinge, a bound on what one more step of each multiplier would change in the gradient. It
    is at most the tolerance, > 0, unless rounding does not allow it.
    """
    if weight == 0.0 or len(shard) == 0:
        return linear / curvature, 0.0
    check_minimised(loss)
    if isinstance(loss, Hinge):
        return _minimise_hinge(shard, weight / len(shard), curvature, linear, start, tolerance)[:2]
    count = len(shard)

    def evaluate(model: Array) -> tuple[float, Array]:
        value = weight * local_loss(model, shard, loss, 0.0) + 0.5 * curvature * float(model @ model)
        gradient = weight * local_gradient(model, shard, loss, 0.0) + curvature * model - linear
        return value - float(linear @ model), gradient

    def direction(model: Array, gradient: Array, _: float) -> Array:
        bends = (weight / count) * loss.second_slope(shard.features @ model, shard.labels)
        return _bent_solve(shard.features, bends, curvature, -gradient)

    model = newton(start.copy(), evaluate, direction, floor=tolerance)
    return model, float(np.linalg.norm(evaluate(model)[1]))


def minimise_within(shard: Shard, loss: Loss, curvature: float, tolerance: float) -> tuple[Array, float]:
    """The minimiser of mean_k phi(x_k . theta, y_k) + (curvature / 2) |theta|^2, and its distance from the exact one.

    The curvature is q > 0, and there is a row at least. A function of strong convexity q lies above its minimum by
    (q/2) |theta - theta*|^2 at least, and its gradient has a norm of q |theta - theta*| at least. The hinge has no
    gradient; there the duality gap bounds the height, a sum of one term a row, none of which is negative or cancels.
    The distance is in l2, up to the rounding of the residual.
    """
    zero = np.zeros(shard.features.shape[1])
    if not isinstance(loss, Hinge):
        model, residual = minimise_local(
            shard, loss, weight=1.0, curvature=curvature, linear=zero, start=zero, tolerance=tolerance
        )
        return model, residual / curvature
    most = 1.0 / len(shard)
    _, _, dual = _minimise_hinge(shard, most, curvature, zero, zero, tolerance)
    rows = shard.labels[:, None] * shard.features
    model = dual @ rows / curvature
    inside = 1.0 - rows @ model
    gap = float(np.where(inside > 0.0, most - dual, dual) @ np.abs(inside))
    return model, float(np.sqrt(2.0 * gap / curvature))


def _bent_solve(features: Array, bends: Array, curvature: float, right: Array) -> Array:
    """Solve (X' diag(bends) X + curvature I) step = right, in as many unknowns as there are rows or columns."""
    count, dimension = features.shape
    # Half of a matrix times its own transpose is enough; with roots a bend of 0 needs no care in Woodbury's identity.
    scaled = np.sqrt(bends)[:, None] * features
    if count >= dimension:
        hessian = scaled.T @ scaled
        hessian[np.diag_indices(dimension)] += curvature
        return np.linalg.solve(hessian, right).astype(np.float64)
    inner = scaled @ scaled.T
    inner[np.diag_indices(count)] += curvature
    return (right - scaled.T @ np.linalg.solve(inner, scaled @ right).astype(np.float64)) / curvature


def _minimise_hinge(
    shard: Shard, most: float, curvature: float, linear: Array, start: Array, tolerance: float
) -> tuple[Array, float, Array]:
    """Dual of the problem: theta = (b + sum_k a_k y_k x_k) / q with multipliers a_k in [0, most].

    A row inside the margin has a_k = most, one outside has 0; coordinate ascent finds out which, and linear
    systems give the multipliers of those on the kink.
    """
    rows = np.ascontiguousarray(shard.labels[:, None] * shard.features)
    squares, bounds, everything = np.einsum("kp,kp->k", rows, rows), np.full(len(rows), most), np.arange(len(rows))
    dual = np.where(rows @ start < 1.0, most, 0.0)
    model = (linear + dual @ rows) / curvature
    residual = np.inf
    for _ in range(LOOKS):
        for _ in range(PASSES):
            ascend(rows, squares, bounds, curvature, dual, model, everything)
        slope = curvature * (1.0 - rows @ model)
        moves = np.clip(dual + slope / np.maximum(squares, 1e-200), 0.0, most) - dual
        residual = float(np.abs(moves) @ np.sqrt(squares))
        if residual <= tolerance:
            break
        climb(rows, bounds, curvature, dual, model)
        model[:] = (linear + dual @ rows) / curvature
    return model, residual, dual
