"""Words for small optimisation problems: an agent's own loss between a quadratic and a linear term, solved at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.compiled_newton import minimiser_of
from ...agents.losses import LOSSES, local_gradient
from ...agents.solvers import minimise_local
from .word_forms import Categories, Form, NoForm, fast, noise_fields, noise_of
from .words import word

Array = NDArray[np.float64]


def _minimiser(categories: Categories) -> Callable[..., Any]:
    if not categories.loss:
        raise NoForm("the task's loss is not one of hushnet's own")
    if not LOSSES[categories.loss].smooth:
        raise NoForm(f"the exact minimiser of the {categories.loss} loss, which has kinks, has no compiled form")
    return minimiser_of(categories.loss)


def _minimised(categories: Categories) -> Callable[..., Any]:
    minimise = _minimiser(categories)

    def minimised(me, weight, curvature, linear, start, tolerance):  # pragma: no cover - compiled
        return minimise(me.features, me.labels, weight, curvature, linear, start, tolerance)

    return fast(minimised)


def _perturbed_minimiser(categories: Categories) -> Callable[..., Any]:
    minimise = _minimiser(categories)
    if not categories.mechanism:
        return fast(
            lambda me, weight, curvature, linear, start, tolerance, _: minimise(
                me.features, me.labels, weight, curvature, linear, start, tolerance
            )
        )
    noise = noise_of(categories)

    def perturbed_minimiser(me, weight, curvature, linear, start, tolerance, influence):  # pragma: no cover - compiled
        if not me.noisy_:
            return minimise(me.features, me.labels, weight, curvature, linear, start, tolerance)
        moved = np.empty(len(linear))
        noise(me, moved)
        for k in range(len(linear)):
            moved[k] = linear[k] - influence * moved[k]
        return minimise(me.features, me.labels, weight, curvature, moved, start, tolerance)

    return fast(perturbed_minimiser)


SOLVED = ("features", "labels")
MINIMISED = Form(lambda _: SOLVED, _minimised)
PERTURBED_MINIMISER = Form(
    lambda categories: (*SOLVED, "noisy_", *noise_fields(categories)) if categories.mechanism else SOLVED,
    _perturbed_minimiser,
)


@word(MINIMISED)
def minimised(me: Any, weight: float, curvature: float, linear: Array, start: Array, tolerance: float) -> Array:
    """The minimiser of an agent's mean loss between a quadratic and a linear term.

    It minimises weight * mean_k phi(x_k . f, y_k) + (curvature / 2) |f|^2 - linear . f over the agent's own rows
    (`hushnet.agents.solvers.minimise_local`). For the hinge it has no compiled form.

    Parameters
    ----------
    me : record
    weight : float
        >= 0.
    curvature : float
        > 0.
    linear, start : (p,) float64
        ``start`` changes the effort, not the result.
    tolerance : float
        Norm of the gradient that counts as none, > 0.

    Returns
    -------
    (p,) float64
    """
    shard, loss = me._view.data, me._names.protocol.problem.task.loss
    return minimise_local(
        shard, loss, weight=weight, curvature=curvature, linear=linear, start=start, tolerance=tolerance
    )[0]


@word(PERTURBED_MINIMISER)
def perturbed_minimiser(
    me: Any, weight: float, curvature: float, linear: Array, start: Array, tolerance: float, influence: float
) -> Array:
    """`minimised` with the noise b of this step's release in the linear term: linear - influence * b.

    That is objective perturbation (`hushnet.protocols.privacy.mechanisms.Release.perturb_objective`), charged with the
    step's message.

    Parameters
    ----------
    me : record
    weight, curvature, linear, start, tolerance
        As of `minimised`.
    influence : float
        > 0 where there is noise.

    Returns
    -------
    (p,) float64
    """
    shard, loss = me._view.data, me._names.protocol.problem.task.loss

    def implied(model: Array) -> Array:
        gradient = weight * local_gradient(model, shard, loss, 0.0) + curvature * model - linear
        return -gradient / influence

    def log_jacobian(model: Array) -> float:
        rows = shard.features
        bends = weight / max(1, len(rows)) * loss.second_slope(rows @ model, shard.labels)
        return float(np.linalg.slogdet(rows.T @ (bends[:, None] * rows) + curvature * np.eye(len(model)))[1])

    return me._release.perturb_objective(
        lambda noise: minimised(me, weight, curvature, linear - influence * noise, start, tolerance),
        implied,
        size=len(linear),
        rng=me._view.stream("noise"),
        log_jacobian=log_jacobian,
    )
