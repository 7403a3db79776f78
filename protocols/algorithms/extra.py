"""EXTRA, an exact first-order algorithm (Shi, Ling, Wu, Yin 2015, algorithm 1), with W~ = (I + W) / 2.

==========  ============================================================================================
equation    here
==========  ============================================================================================
step 1      x_i(1) = sum_j w_ij x_j(0) - alpha grad f_i(x_i(0)), x_i(0) = 0
(2.13)      x(k+2) = (I + W) x(k+1) - W~ x(k) - alpha (grad f(x(k+1)) - grad f(x(k)))
==========  ============================================================================================

All that belongs to step -1 is zero (of a net, x(0) but for gradients), with which (2.13) gives step 1, too. A step has
one gradient and one mixing: those of the step before are kept.

Use it where the f_i differ and the minimum itself is wanted, with one vector a message. What breaks it: steps beyond
what the smallest eigenvalue of W allows; take ``mixing: lazy``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ..invariants import Declared, last_sent_is_kept
from ..steps import batched, mixed
from .gradient_rounds import GradientRounds, MixingParameters, gradient


class ExtraParameters(MixingParameters):
    """EXTRA: decentralised gradient descent corrected by the step before, which ends in the exact minimum."""

    kind: Literal["extra"]


class Extra(GradientRounds):
    """EXTRA, in rounds; see the module's docstring."""

    Parameters = ExtraParameters
    own: ClassVar[tuple[str, ...]] = ("gradient", "half")
    from_first: ClassVar[tuple[str, ...]] = ("model", "sent", "half")

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Equation (2.13)."""
        model, combined = me.sent, mixed(me, me.sent, me.mixing_weight)
        found = gradient(me, model)
        following = model + combined - me.half - me.step_size * (found - me.gradient)
        me.half = (model + combined) / 2
        me.gradient = found
        me.model = me.sent = following
        me.message = me.sent

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (last_sent_is_kept("sent", "sent", "Shi et al. 2015, (2.13): what is mixed is what was sent"),)
