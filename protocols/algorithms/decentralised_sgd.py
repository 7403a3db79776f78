"""Decentralised stochastic gradient descent (Lian et al. 2017, algorithm 1; Sayed 2014, adapt then combine).

=======================  ==================================================================================
equation                 here
=======================  ==================================================================================
combine then adapt       x_i(t+1) = sum_j w_ij x_j(t) - alpha grad f_i(x_i(t)); Lian et al. 2017, lines 4 to 6
adapt then combine       x_i(t+1) = sum_j w_ij (x_j(t) - alpha grad f_j(x_j(t)))
noise                    grad f_i + nu_i, with the gradient of every example clipped
gossip steps             K rounds between two gradients, adapt then combine, are Muffliato-SGD (Cyffers et al. 2022,
                         arXiv 2206.05091, algorithm 2): x(t+1) = P_K(W) (x(t) - alpha (grad f + nu)); P_K is W^K, or
                         algorithm 1's y(k) = gamma W y(k-1) + (1 - gamma) y(k-2) from y(-1) = y(0)
shared noise             grad f_i + sum_j s_ij + nu_i, s_ij = -s_ji from a seed of the two ends, cancels in the mean:
                         DECOR (Allouah et al. 2024, arXiv 2405.01031, algorithm 1)
robust aggregation       in place of sum_j w_ij x_j, a rule of x_i and its neighbours' x_j that withstands byzantine
                         agents (`aggregation`; BRIDGE, Fang et al. 2022, has such rules combine then adapt)
=======================  ==================================================================================

With a constant step size agents end in a neighbourhood of the minimum, whose size grows with alpha and with how much
the f_i differ. Robust rules are not doubly stochastic and have a floor of their own. `gradient_tracking`, `extra` and
`nids` end in the minimum itself.

Use it first: it has the least to send and to tune. What breaks it: f_i that differ much at a constant step, where it
ends off the minimum; directed and changing graphs are refused.

The ledger has the own noise nu_i alone, which holds against whoever knows all seeds; ``observers`` have what their own
seeds tell. Shared noise cancels among agents at the same step; halves that are mixed unequally stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.errors import FieldError, InputError
from ...agents.parameters import MOST, NotNegative, Positive, Size, check_named
from ..base import Layout, Problem, Traits
from ..context import Context, check_slope
from ..invariants import Declared, last_sent_is_kept
from ..linear_map import SharedNoise
from ..noise import GradientNoise, active, check_all_rows
from ..privacy.budget import GradientPrivacy
from ..steps import (
    Constants,
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
    post_processed,
)
from .gradient_rounds import (
    Array,
    GradientRounds,
    MixingParameters,
    check_all_gradients_count,
)
from .muffliato import momentum


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
    gossip_steps: Size = 1
    """Gossip rounds K between two gradients, with adapt_then_combine."""
    gossip: Literal["simple", "chebyshev"] = "simple"
    """Whether these rounds mix only (``simple``), or have the momentum of Muffliato's algorithm 1 (``chebyshev``)."""
    shared_noise: NotNegative = 0.0
    """Deviation of the noise that two neighbours share at every gradient, over that of their own noise."""
    seeds_lost: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Probability with which two neighbours have failed to exchange their seed, and have no noise in common."""
    privacy: GradientPrivacy | None = None
    """Noise on every gradient, of all rows; after ``updates`` an agent falls silent."""

    @model_validator(mode="after")
    def _mixed_between(self) -> DecentralisedSGDParameters:
        check_named(self, "aggregation", byzantine="trimmed_mean or krum", clip="clipped_gossip")
        if self.local_steps > 1 and self.order == "combine_then_adapt":
            raise FieldError("is for order: adapt_then_combine", "local_steps")
        if self.order == "combine_then_adapt" and (self.gossip_steps > 1 or self.gossip != "simple"):
            raise FieldError("is for order: adapt_then_combine", "gossip_steps" if self.gossip_steps > 1 else "gossip")
        if self.gossip == "chebyshev" and (self.gossip_steps == 1 or self.aggregation != "mean"):
            raise FieldError("is for gossip_steps above 1, with aggregation: mean", "gossip")
        if self.shared_noise > 0 and not active(self.privacy):
            raise FieldError("is a multiple of the own noise, so it needs privacy with noise", "shared_noise")
        if self.seeds_lost > 0 and self.shared_noise == 0:
            raise FieldError("is of seeds for shared_noise, which is 0", "seeds_lost")
        if self.shared_noise > 0 and self.privacy is not None and not self.privacy.noise.gaussian:
            raise FieldError("is Gaussian, and so must be the own noise", "privacy", "mechanism")
        if active(self.privacy) and self.local_steps > 1:
            raise FieldError("must be 1 with privacy: a step releases one gradient", "local_steps")
        check_all_gradients_count(self.batch, self.privacy)
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
        check_all_rows(parameters.privacy, problem.task)

    @classmethod
    @override
    def check_scenario(cls, parameters: DecentralisedSGDParameters, context: Context) -> None:
        check_slope(parameters.privacy, context.task.loss)

    @override
    def prepare(self) -> None:
        super().prepare()
        given = self.parameters
        chebyshev = given.gossip == "chebyshev"
        self.gamma = momentum(self.problem.graph, self.weights) if chebyshev else 1.0
        if given.privacy is None:
            return
        updates = given.privacy.updates or 1
        weights, task = np.full(updates, 1 / updates), self.problem.task
        self.step_noise = noise = GradientNoise(given.privacy, task, weights=weights, every=given.gossip_steps)
        if given.shared_noise > 0 and self.problem.stream is not None:
            own = np.where(task.train.counts > 0, noise.scales()[:, 0], 0.0)
            how: dict[str, Any] = {"lost": given.seeds_lost, "stream": self.problem.stream}
            noise.shared = SharedNoise(self.problem.graph, given.shared_noise * own, task.dimension, **how)

    @override
    def layout(self) -> Layout:
        """Add the message before the last, where gossip has several steps."""
        found, p = super().layout(), self.problem.task.dimension
        return replace(found, agent={**found.agent, "before": p}) if self.parameters.gossip_steps > 1 else found

    @override
    def constants(self) -> Constants:
        return replace(super().constants(), run={"gamma": self.gamma})

    @override
    def most_steps(self) -> float | None:
        given = self.parameters
        updates = None if given.privacy is None else given.privacy.updates
        return None if updates is None else updates * given.gossip_steps

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Mix, then go along the gradient, at the model before or after the mixing."""
        combined = AGGREGATIONS[me.aggregation](me, me.sent)
        if me.gossip_steps > 1:
            gossip_then_adapt(me, me.gamma * combined + (1 - me.gamma) * me.before)
        elif me.order == "combine_then_adapt":
            me.model = me.sent = combined - me.step_size * noisy_gradient(me, me.model)
        else:
            me.model = combined
            for _ in range(me.local_steps):
                combined = combined - me.step_size * noisy_gradient(me, combined)
            me.sent = combined
        me.message = me.sent

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (last_sent_is_kept("sent", "sent", "Lian et al. 2017, algorithm 1: what is mixed is what was sent"),)


def gossip_then_adapt(me: Any, combined: Array) -> None:
    """Take what K gossip steps have made of the last gradient step for the model, and make the next one."""
    me.before, me.sent = me.sent, combined
    first = me.updates % me.gossip_steps == 0
    at, others = me.where(first), me.where(~first)
    at.model = at.sent
    model = at.model
    for _ in range(me.local_steps):
        model = model - me.step_size * noisy_gradient(at, model)
    at.sent = at.before = model
    post_processed(others)


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
