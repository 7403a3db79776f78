"""Loss, gradient and smoothness of a single agent, computed from its own shard.

An agent's local objective is L_i(theta) = (1/m_i) sum_k phi(x_k . theta, y_k) + lambda_i |theta|^2 (Bellet et al.
2018, equation 1), so its gradient carries 2 lambda_i theta and its strong convexity is 2 lambda_i. An agent without
data has L_i = 0: value 0, gradient 0, smoothness 0.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..clipping import Norm, clipped_terms
from ..tables import Shard
from .loss import Loss

Number = TypeVar("Number", float, NDArray[np.float64])


def local_loss(model: NDArray[np.float64], shard: Shard, loss: Loss, regularisation: float) -> float:
    """L_i(theta), the mean loss over a shard, 0 without rows, plus lambda |theta|^2 for regularisation lambda >= 0."""
    if len(shard) == 0:
        return 0.0
    values = loss.value(shard.features @ model, shard.labels)
    return float(values.mean() + regularisation * (model @ model))


def local_gradient(model: NDArray[np.float64], shard: Shard, loss: Loss, regularisation: float) -> NDArray[np.float64]:
    """(p,) gradient of `local_loss`: (1/m) sum_k phi'(x_k . theta, y_k) x_k + 2 lambda theta; 0 without rows."""
    count = len(shard.labels)
    if count == 0:
        return np.zeros_like(model)
    slopes = loss.slope(shard.features @ model, shard.labels)
    return slopes @ shard.features / count + (2.0 * regularisation) * model


def clipped_gradient(
    model: NDArray[np.float64], shard: Shard, loss: Loss, regularisation: float, norm: Norm, bound: float
) -> NDArray[np.float64]:
    """`local_gradient` with every example's gradient phi'(s, y) x scaled down to a norm of at most `bound`, > 0.

    Replacing one of the m examples moves the result by at most 2 bound / m in that norm, l1 for Laplace noise and l2
    for Gaussian, whatever the data: rows and labels may be as large as float64 has them, and an example whose slope is
    not finite counts as zero. The regulariser's part, lambda >= 0, is not clipped, for it does not depend on them. This
    is algorithm 1 of Abadi et al. 2016, "Deep learning with differential privacy".
    """
    count = len(shard.labels)
    if count == 0:
        return np.zeros_like(model)
    features = shard.features
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = loss.slope(features @ model, shard.labels)
        coefficients, rows = clipped_terms(slopes, features, norm, bound)
        return coefficients @ rows / count + (2.0 * regularisation) * model


def spectral_smoothness(features: NDArray[np.float64], loss: Loss, regularisation: float) -> float:
    """Smoothness curvature * lambda_max(X'X / m) + 2 lambda of a local objective, from its own data; may be infinite.

    Without rows it is 0. It depends on private data: a step size made from it leaks, noise or not. See
    `public_smoothness`.
    """
    count, dimension = features.shape
    if count == 0:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        gram = features @ features.T if count < dimension else features.T @ features
    if not np.isfinite(gram).all():
        return float("inf")
    return loss.curvature * float(np.linalg.eigvalsh(gram)[-1]) / count + 2.0 * regularisation


def public_smoothness(radius: float, loss: Loss, regularisation: Number) -> Number:
    """Smoothness bound curvature * R^2 + 2 lambda for rows whose l2 norm is at most R, > 0, whatever they are.

    R is a public bound on the rows (see `clip_rows`); lambda >= 0 is one number or (n,).
    """
    return loss.curvature * radius**2 + 2.0 * regularisation
