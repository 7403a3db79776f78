"""Objective perturbation, and mistakes in what it says of itself: Jacobian, implied noise, sensitivity.

An agent minimises f -> (1/m) sum_k phi(x_k . f, y_k) + (mu/2) |f - g|^2 + b . f, where g is the neighbours' mean and b
the noise. Rows are clipped to norm 1, slopes are within 1 and second slopes within 1/4 for the logistic loss, so that
one row moves the noise that implies a minimiser by 2/m, and log abs det of its derivative by log(1 + 1/(4 m mu)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hushnet.agents.clipping import clip_rows
from hushnet.agents.optimisation.solvers import minimise_local
from hushnet.agents.tables import Shard

from .base import Waking, variant
from .harness import Case

MU = 0.1


class Objective(Waking):
    """Private minimisers by noise in the objective."""

    charged, jacobian_charged = 1.0, True
    """What is charged for a row in relation to what it moves, and whether the Jacobian's part is."""

    def local_data(self, agent, shard):
        return Shard(clip_rows(shard.features, 1.0, self.parameters.privacy.norm), shard.labels)

    def terms(self, me):
        loss, count = self.problem.task.loss, max(1, len(me.data))
        bound = self.charged * 2 * loss.lipschitz / count
        scale = self.parameters.privacy.multiplier * (bound if math.isfinite(bound) else 1.0)
        moved = math.log1p(loss.curvature / (count * MU)) * scale if self.jacobian_charged else 0.0
        own = {"sensitivity": bound + moved, "verified_sensitivity": bound + moved, "scale": scale, "dimension": 0}
        return {**super().terms(me), **own}

    def step(self, me):
        release, own = self.release(me), me.model
        if not me.reserve(release):
            me.fall_silent()
            return
        goal = me.heard.mean(axis=0) if len(me.neighbours) else own
        own[:] = self.minimiser(me, release, np.array(goal))
        me.send("model", own, release)
        if me.updates + 1 >= self.parameters.privacy.updates:
            me.fall_silent()

    def minimiser(self, me, release, goal):
        drawn: list[Any] = []

        def solve(noise):
            drawn[:] = [noise, self.solved(me, goal, noise)]
            return drawn[1]

        return release.perturb_objective(
            solve,
            lambda model: self.implied(me, goal, model, *drawn),
            size=len(goal),
            rng=me.stream("noise"),
            log_jacobian=self.log_jacobian(me, *drawn),
        )

    def solved(self, me, goal, noise):
        """The minimiser with this noise."""
        how = {"weight": 1.0, "curvature": MU, "start": goal, "tolerance": 1e-11}
        return minimise_local(me.data, self.problem.task.loss, linear=MU * goal - noise, **how)[0]

    def implied(self, me, goal, model, noise, solution):
        """The noise that has this minimiser."""
        return -self.gradient(me, goal, model)

    def gradient(self, me, goal, model):
        """The gradient of the objective without noise."""
        x, y = me.data.features, me.data.labels
        return self.problem.task.loss.slope(x @ model, y) @ x / max(1, len(y)) + MU * (model - goal)

    def log_jacobian(self, me, *drawn) -> Any:
        """Log abs det of the derivative of the implied noise, as a function of the minimiser."""
        return lambda model: self.log_det(me, model)

    def log_det(self, me, model):
        x, y = me.data.features, me.data.labels
        bends = self.problem.task.loss.second_slope(x @ model, y) / max(1, len(y))
        return float(np.linalg.slogdet(x.T @ (bends[:, None] * x) + MU * np.eye(len(model)))[1])


def left_out(self, me, *drawn):
    return None


def given(function: Callable[..., float]) -> Callable[..., Any]:
    """A wrong Jacobian."""

    def log_jacobian(self, me, *drawn):
        return lambda model: function(self, me, model)

    return log_jacobian


def nought(self, me, model):
    return 0.0


def of_the_regulariser(self, me, model):
    return len(model) * math.log(MU)


def a_hundredth(self, me, model):
    return self.log_det(me, model) / 100


def of_the_bound(self, me, model):
    """As if every row bent as much as any can."""
    return len(model) * math.log(MU + self.problem.task.loss.curvature)


def of_a_strong_regulariser(self, me, model):
    """With mu = 100 in place of its own."""
    x, y = me.data.features, me.data.labels
    bends = self.problem.task.loss.second_slope(x @ model, y) / max(1, len(y))
    return float(np.linalg.slogdet(x.T @ (bends[:, None] * x) + 100 * np.eye(len(model)))[1])


def far_from_0(self, me, model):
    """At a point where losses are flat, in place of the minimiser."""
    return self.log_det(me, model + 1e4)


def remembered(self, me, goal, model, noise, solution):
    """The noise that was drawn, whatever the model."""
    return noise


def drawn_in(self, me, goal, model, noise, solution):
    """What implies a model, drawn in to a tenth of its distance from what was drawn."""
    return noise + (-self.gradient(me, goal, model) - noise) / 10


def rounded(self, me, goal, model, noise, solution):
    """Within what inaccurate minimisers are allowed to be, of what was drawn."""
    apart = -self.gradient(me, goal, model) - noise
    return noise + np.clip(apart, -1e-9, 1e-9)


def near_the_solution(self, me, goal, model, noise, solution):
    """Right at its own solution, and the noise that was drawn elsewhere."""
    return -self.gradient(me, goal, model) if np.array_equal(model, solution) else noise


def unclipped(self, agent, shard):
    return shard


def of(name: str, what: str, **members: Any) -> Case:
    return Case(name, "objective", variant(name.title().replace("-", ""), Objective, **members), what)


NO_JACOBIAN: dict[str, Any] = {"jacobian_charged": False}

OBJECTIVE = [
    of("jacobian-left-out", "says nothing of the Jacobian", log_jacobian=left_out, **NO_JACOBIAN),
    of("jacobian-0", "says that it is 0", log_jacobian=given(nought), **NO_JACOBIAN),
    of("jacobian-of-regulariser", "leaves losses out of it", log_jacobian=given(of_the_regulariser), **NO_JACOBIAN),
    of("jacobian-of-bound", "takes a bound on it", log_jacobian=given(of_the_bound), **NO_JACOBIAN),
    of("jacobian-hundredth", "says a hundredth of it", log_jacobian=given(a_hundredth), **NO_JACOBIAN),
    of("jacobian-strong", "says it of another regulariser", log_jacobian=given(of_a_strong_regulariser), **NO_JACOBIAN),
    of("jacobian-elsewhere", "says it of another model", log_jacobian=given(far_from_0), **NO_JACOBIAN),
    of("jacobian-uncharged", "says it, and does not charge it", **NO_JACOBIAN),
    of("implied-remembered", "the noise drawn is implied by every model", implied=remembered, charged=0.1),
    of(
        "implied-remembered-alone",
        "likewise, and the log Jacobian is 0",
        implied=remembered,
        log_jacobian=given(nought),
        charged=0.1,
        **NO_JACOBIAN,
    ),
    of("implied-drawn-in", "what is implied moves by a tenth", implied=drawn_in, charged=0.1),
    of("implied-rounded", "what is implied moves by rounding", implied=rounded, charged=0.1),
    of("implied-elsewhere", "what is implied is right at its own solution", implied=near_the_solution, charged=0.1),
    of("charged-half", "charges half of what a row moves", charged=0.5),
    of("rows-not-clipped", "does not clip rows", local_data=unclipped),
]
