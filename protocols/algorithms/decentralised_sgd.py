"""Decentralised stochastic gradient descent (Lian et al. 2017, algorithm 1; Sayed 2014, adapt then combine).

=======================  ==================================================================================
equation                 here
=======================  ==================================================================================
combine then adapt       x_i(t+1) = sum_j w_ij x_j(t) - alpha grad f_i(x_i(t)); Lian et al. 2017, lines 4 to 6
adapt then combine       x_i(t+1) = sum_j w_ij (x_j(t) - alpha grad f_j(x_j(t)))
noise                    grad f_i + nu_i, with the gradient of every example clipped: adapt then combine is then the
                         gradient form of Muffliato with one gossip step a gradient (Cyffers et al. 2022)
robust aggregation       in place of sum_j w_ij x_j, a rule of x_i and its neighbours' x_j that withstands byzantine
                         agents (`aggregation`; BRIDGE, Fang et al. 2022, has such rules combine then adapt)
=======================  ==================================================================================

With a constant step size agents end in a neighbourhood of the minimum, whose size grows with alpha and with how much
the f_i differ. Robust rules are not doubly stochastic and have a floor of their own. `gradient_tracking`, `extra` and
`nids` end in the minimum itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.errors import FieldError, InputError
from ...agents.parameters import MOST, Positive, Size
from ..base import Problem, Traits
from ..context import Context, check_slope
from ..invariants import Declared, told_is_kept
from ..noise import GradientNoise, active, check_all_rows
from ..privacy.budget import GradientPrivacy
from ..steps import (
    aggregated,
    batched,
    clipped_gossip,
    coordinate_median,
    coordinate_trimmed_mean,
    draw_rows,
    geometric_median,
    krum,
    loss_gradient,
    mixed,
    perturbed,
)
from .gradient_rounds import Array, GradientRounds, MixingParameters


class DecentralisedSGDParameters(MixingParameters):
    """Decentralised stochastic gradient descent: mix the neighbours' models, and go along the own gradient."""

    kind: Literal["decentralised_sgd"]
    order: Literal["combine_then_adapt", "adapt_then_combine"] = "combine_then_adapt"
    """Whether a gradient step follows the mixing (Lian et al. 2017), or comes before it (Sayed 2014)."""
    local_steps: Size = 1
    """Gradient steps between two mixings, with adapt_then_combine: local SGD (Stich 2019) over a graph."""
    aggregation: Literal["mean", "median", "trimmed_mean", "krum", "geometric_median", "clipped_gossip"] = "mean"
    """What agents make of the vectors of their neighbours and their own: the weighted mean, or a rule that withstands
    byzantine neighbours."""
    byzantine: Annotated[int, Field(ge=0, le=MOST)] = 1
    """Number f of byzantine neighbours that trimmed_mean and krum withstand; of an agent with 2f neighbours, or for
    krum 2f + 2."""
    clip: Positive = 1.0
    """Radius tau of clipped_gossip."""
    privacy: GradientPrivacy | None = None
    """Noise on every gradient, of all rows of a linear model; after ``updates`` an agent falls silent."""

    @model_validator(mode="after")
    def _mixed_between(self) -> DecentralisedSGDParameters:
        if self.local_steps > 1 and self.order == "combine_then_adapt":
            raise FieldError("is for order: adapt_then_combine", "local_steps")
        if active(self.privacy) and self.local_steps > 1:
            raise FieldError("must be 1 with privacy: a step releases one gradient", "local_steps")
        if active(self.privacy) and self.batch is not None:
            raise FieldError("is for runs without privacy: noise is accounted for gradients of all rows", "batch")
        if self.privacy is not None and (self.privacy.allocation != "uniform" or self.privacy.oracle_schedule):
            raise FieldError("must be uniform, without oracle_schedule: all gradients count alike", "privacy")
        return self


class DecentralisedSGD(GradientRounds):
    """Decentralised SGD, in rounds; see the module's docstring."""

    Parameters = DecentralisedSGDParameters
    parameters: DecentralisedSGDParameters
    traits = Traits(trigger="round", inbox="per_round")

    @classmethod
    @override
    def check_problem(cls, parameters: DecentralisedSGDParameters, problem: Problem) -> None:
        rule, few = parameters.aggregation, problem.graph.degrees
        least = 2 * parameters.byzantine + (2 if rule == "krum" else 0)
        if rule in ("trimmed_mean", "krum") and few.min() < least:
            agent = problem.task.ids[int(np.argmin(few))]
            raise InputError(
                f"{parameters.byzantine} byzantine neighbours are withstood by {rule} where agents have at least "
                f"{least} neighbours, and agent {agent!r} has {few.min()}; choose a denser graph, fewer, or "
                "geometric_median",
                field=("byzantine",),
            )
        if active(parameters.privacy) and (problem.task.first is not None or problem.task.classes > 2):
            raise InputError("is for linear models with two classes or real labels", field=("privacy",))
        check_all_rows(parameters.privacy, problem.task)

    @classmethod
    @override
    def check_scenario(cls, parameters: DecentralisedSGDParameters, context: Context) -> None:
        check_slope(parameters.privacy, context.task.loss)

    @override
    def prepare(self) -> None:
        super().prepare()
        if self.parameters.privacy is not None:
            updates = self.parameters.privacy.updates or 1
            weights = np.full(updates, 1 / updates)
            self.step_noise = GradientNoise(self.parameters.privacy, self.problem.task, weights=weights)

    @override
    def most_steps(self) -> float | None:
        return None if self.parameters.privacy is None else self.parameters.privacy.updates

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Mix, then go along the gradient, at the model before or after the mixing."""
        combined = AGGREGATIONS[me.aggregation](me, me.sent)
        if me.order == "combine_then_adapt":
            me.model = me.sent = combined - me.step_size * noisy_gradient(me, me.model)
        else:
            me.model = combined
            for _ in range(me.local_steps):
                combined = combined - me.step_size * noisy_gradient(me, combined)
            me.sent = combined
        me.message = me.sent

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (told_is_kept("sent", "sent", "Lian et al. 2017, algorithm 1: what is mixed is what was sent"),)


def noisy_gradient(me: Any, model: Array) -> Array:
    """Gradient of f_i at a model, with the step's noise if there is any."""
    rows = None if me.batch is None else draw_rows(me, me.batch)
    return perturbed(me, loss_gradient(me, model, rows)) + me.mu * model


AGGREGATIONS: dict[str, Callable[[Any, Array], Array]] = {
    "mean": lambda me, own: mixed(me, own, me.mixing_weight),
    "median": lambda me, own: aggregated(me, own, coordinate_median),
    "trimmed_mean": lambda me, own: aggregated(me, own, partial(coordinate_trimmed_mean, byzantine=me.byzantine)),
    "krum": lambda me, own: aggregated(me, own, partial(krum, byzantine=me.byzantine)),
    "geometric_median": lambda me, own: aggregated(me, own, geometric_median),
    "clipped_gossip": lambda me, own: clipped_gossip(me, own, me.mixing_weight, me.clip),
}
"""What agents make of their own vector and those that they have received, by the rule's name."""
