"""Words for small optimisation problems: an agent's own loss between a quadratic and a linear term, solved at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.compilation.deferred import Deferred
from ...agents.losses import Loss, local_gradient
from ...agents.optimisation.solvers import minimise_local
from ...agents.tables import Shard
from . import tape
from .noise_forms import noise_fields, noise_of
from .tape_places import MINIMISER, WATCHED
from .word_form import Categories, Form, NoForm, check_count, fast
from .words import word

Array = NDArray[np.float64]


def _minimised_at() -> Any:
    from ...agents.optimisation.compiled_newton import minimised_at

    return minimised_at


minimised_at: Any = Deferred(_minimised_at)


def _check(categories: Categories) -> None:
    """Refuse losses whose exact minimiser has no compiled form."""
    if categories.unsolved:
        raise NoForm(categories.unsolved)


@fast
def _numbers(vector, count):  # pragma: no cover - compiled
    """So many numbers that lie together, as what solves takes them."""
    check_count(len(vector), count)
    out = np.empty(count)
    for k in range(count):
        out[k] = vector[k]
    return out


@fast
def _solved(me, weight, curvature, linear, start, tolerance):  # pragma: no cover - compiled
    """The minimiser, by the function whose address the record has."""
    count = me.features.shape[1]
    linear, start = _numbers(linear, count), _numbers(start, count)
    return minimised_at(me.minimiser_, me.features, me.labels, weight, curvature, linear, start, tolerance)


def _minimised(categories: Categories) -> Callable[..., Any]:
    _check(categories)
    return _solved


def _perturbed_minimiser(categories: Categories) -> Callable[..., Any]:
    _check(categories)
    if not categories.mechanism:
        return fast(
            lambda me, weight, curvature, linear, start, tolerance, _: _solved(
                me, weight, curvature, linear, start, tolerance
            )
        )
    noise = noise_of(categories)

    def perturbed_minimiser(me, weight, curvature, linear, start, tolerance, influence):  # pragma: no cover - compiled
        if not me.noisy_:
            return _solved(me, weight, curvature, linear, start, tolerance)
        moved = np.empty(len(linear))
        noise(me, moved)
        for k in range(len(linear)):
            moved[k] = linear[k] - influence * moved[k]
        return _solved(me, weight, curvature, moved, start, tolerance)

    found = fast(perturbed_minimiser)

    def cached_losses(me, weight, curvature, linear, start, tolerance, influence):  # pragma: no cover - compiled
        before = me.drawn_[0]
        solution = found(me, weight, curvature, linear, start, tolerance, influence)
        if me.taped_[WATCHED] == 0 or me.drawn_[0] == before:
            return solution
        return tape.written_at(me, MINIMISER, weight, curvature, influence, linear, solution)

    return fast(cached_losses)


SOLVED = ("features", "labels", "minimiser_")
MINIMISED = Form(lambda _: SOLVED, _minimised)
PERTURBED_MINIMISER = Form(
    lambda categories: (*SOLVED, "noisy_", *noise_fields(categories)) if categories.mechanism else SOLVED,
    _perturbed_minimiser,
)


@word(MINIMISED)
def minimised(me: Any, weight: float, curvature: float, linear: Array, start: Array, tolerance: float) -> Array:
    """The minimiser of an agent's mean loss between a quadratic and a linear term.

    It minimises weight * mean_k phi(x_k . f, y_k) + (curvature / 2) |f|^2 - linear . f over the agent's own rows
    (`hushnet.agents.optimisation.solvers.minimise_local`). For the hinge it has no compiled form.

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
    implied, log_jacobian = inverse_of(
        me._view.data, me._names.protocol.problem.task.loss, weight, curvature, linear, influence
    )
    return me._release.perturb_objective(
        lambda noise: minimised(me, weight, curvature, linear - influence * noise, start, tolerance),
        implied,
        size=len(linear),
        rng=me._view.stream("noise"),
        log_jacobian=log_jacobian,
    )


def inverse_of(
    shard: Shard, loss: Loss, weight: float, curvature: float, linear: Array, influence: float
) -> tuple[Callable[[Array], Array], Callable[[Array], float]]:
    """The noise that has a model as its `perturbed_minimiser`, and log abs det of its derivative, up to a constant.

    Parameters
    ----------
    shard : Shard
    loss : Loss
    weight, curvature, linear, influence
        As of `perturbed_minimiser`.
    """

    def implied(model: Array) -> Array:
        gradient = weight * local_gradient(model, shard, loss, 0.0) + curvature * model - linear
        return -gradient / influence

    def log_jacobian(model: Array) -> float:
        rows = shard.features
        bends = weight / max(1, len(rows)) * loss.second_slope(rows @ model, shard.labels)
        return float(np.linalg.slogdet(rows.T @ (bends[:, None] * rows) + curvature * np.eye(len(model)))[1])

    return implied, log_jacobian
