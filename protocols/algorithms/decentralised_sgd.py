"""Decentralised stochastic gradient descent (Lian et al. 2017, algorithm 1; Sayed 2014, adapt then combine).

=======================  ==================================================================================
equation                 here
=======================  ==================================================================================
combine then adapt       x_i(t+1) = sum_j w_ij x_j(t) - alpha grad f_i(x_i(t)); Lian et al. 2017, lines 4 to 6
adapt then combine       x_i(t+1) = sum_j w_ij (x_j(t) - alpha grad f_j(x_j(t)))
=======================  ==================================================================================

With a constant step size agents end in a neighbourhood of the minimum, whose size grows with alpha and with how much
the f_i differ. `gradient_tracking`, `extra` and `nids` end in the minimum itself.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from ...agents.errors import FieldError
from ...agents.parameters import Size
from ..base import Traits
from ..invariants import Declared, told_is_kept
from ..steps import batched, mixed
from .gradient_rounds import GradientRounds, GradientRoundsParameters, gradient


class DecentralisedSGDParameters(GradientRoundsParameters):
    """Decentralised stochastic gradient descent: mix the neighbours' models, and go along the own gradient."""

    kind: Literal["decentralised_sgd"]
    order: Literal["combine_then_adapt", "adapt_then_combine"] = "combine_then_adapt"
    """Whether a gradient step follows the mixing (Lian et al. 2017), or comes before it (Sayed 2014)."""
    local_steps: Size = 1
    """Gradient steps between two mixings, with adapt_then_combine: local SGD (Stich 2019) over a graph."""

    @model_validator(mode="after")
    def _mixed_between(self) -> DecentralisedSGDParameters:
        if self.local_steps > 1 and self.order == "combine_then_adapt":
            raise FieldError("is for order: adapt_then_combine", "local_steps")
        return self


class DecentralisedSGD(GradientRounds):
    """Decentralised SGD, in rounds; see the module's docstring."""

    Parameters = DecentralisedSGDParameters
    parameters: DecentralisedSGDParameters
    traits = Traits(trigger="round", inbox="per_round")

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Mix, then go along the gradient, at the model before or after the mixing."""
        combined = mixed(me, me.sent, me.mixing)
        if me.order == "combine_then_adapt":
            me.model = me.sent = combined - me.step_size * gradient(me, me.model)
        else:
            me.model = combined
            for _ in range(me.local_steps):
                combined = combined - me.step_size * gradient(me, combined)
            me.sent = combined
        me.message = me.sent

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (told_is_kept("sent", "sent", "Lian et al. 2017, algorithm 1: what is mixed is what was sent"),)
