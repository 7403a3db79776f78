"""NIDS, network independent step sizes (Li, Shi, Yan 2019, algorithm 1), with W~ = (I + W) / 2 and one step size.

==========  =================================================================================================
equation    here
==========  =================================================================================================
start       x_i(1) = x_i(0) - alpha grad f_i(x_i(0)), x_i(0) = 0
(8)         x(k+1) = W~ (2 x(k) - x(k-1) - alpha (grad f(x(k)) - grad f(x(k-1)))); what is in brackets is sent
==========  =================================================================================================

All that belongs to step -1 is zero; what is sent first is then x(1), which its sender alone takes as it is. The step
size may be as large as that of one agent's gradient descent, whatever the graph.

Use it where the f_i differ and the graph is badly connected, for its step size need not know the graph. What breaks it:
gradients of few rows, with whose noise it ends around the minimum.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from ..invariants import Declared, last_sent_is_kept
from ..steps import batched, mixed
from .gradient_rounds import GradientRounds, MixingParameters, gradient


class NidsParameters(MixingParameters):
    """NIDS: as EXTRA it ends in the exact minimum, and its step size does not depend on the graph."""

    kind: Literal["nids"]


class Nids(GradientRounds):
    """NIDS, in rounds; see the module's docstring."""

    Parameters = NidsParameters
    own: ClassVar[tuple[str, ...]] = ("gradient",)

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Equation (8)."""
        before = me.model
        combined = (me.sent + mixed(me, me.sent, me.mixing_weight)) / 2
        model = np.where(me.updates == 1, me.sent, combined)
        found = gradient(me, model)
        me.sent = 2 * model - before - me.step_size * (found - me.gradient)
        me.model, me.gradient = model, found
        me.message = me.sent

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (last_sent_is_kept("sent", "sent", "Li et al. 2019, (8): what is mixed is what was sent"),)
