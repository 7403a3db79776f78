"""Gradient tracking, DIGing (Nedic, Olshevsky, Shi 2017, algorithm 1).

==========  ====================================================================
equation    here
==========  ====================================================================
(2a)        x_i(t+1) = sum_j w_ij x_j(t) - alpha y_i(t)
(2b)        y_i(t+1) = sum_j w_ij y_j(t) + grad f_i(x_i(t+1)) - grad f_i(x_i(t))
start       x_i(0) = 0, y_i(0) = grad f_i(x_i(0))
==========  ====================================================================

A message has x and y, one after the other. Before the first round both are zero, so that the first step is the start.
The trackers' sum is that of the gradients: that is what makes the limit exact, and what a lost message would break.

Use it where the f_i differ and the minimum itself is wanted. What breaks it: steps that are long for the graph, and
gradients of few rows, whose noise trackers add up. A message is two vectors.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from ..invariants import Declared, Instant, Invariant, Where, by_row, largest, last_sent_is_kept, mixed_by_one_end
from ..steps import batched, mixed
from .gradient_rounds import Array, GradientRounds, MixingParameters, gradient


class GradientTrackingParameters(MixingParameters):
    """Gradient tracking (DIGing): agents also mix estimates of the mean gradient, and end in the exact minimum."""

    kind: Literal["gradient_tracking"]


class GradientTracking(GradientRounds):
    """DIGing, in rounds; see the module's docstring."""

    Parameters = GradientTrackingParameters
    sent_vectors: ClassVar[int] = 2
    own: ClassVar[tuple[str, ...]] = ("gradient", "before")

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Equations (2a) and (2b)."""
        p = me.model.shape[-1]
        combined = mixed(me, me.sent, me.mixing_weight)
        tracker = me.sent[..., p:].copy()
        me.before = tracker
        me.model = combined[..., :p] - me.step_size * tracker
        found = gradient(me, me.model)
        tracker = combined[..., p:] + found - me.gradient
        me.gradient = found
        me.sent = np.concatenate([me.model, tracker], axis=-1)
        me.message = me.sent

    def invariants(self) -> Declared:
        """Trackers add up to gradients: (2b), summed over agents."""
        return (
            last_sent_is_kept("sent", "sent", "Nedic et al. 2017, (2): what is mixed is what was sent"),
            Invariant(
                "sum of trackers",
                self._unbalanced,
                lambda instant: float(by_row(instant.agent("gradient")).sum() + by_row(self._trackers(instant)).sum()),
                where=Where.NEIGHBOURING_ROUNDS,
                source="Nedic et al. 2017, (2b): sum_i y_i(t) = sum_i grad f_i(x_i(t))",
            ),
        )

    def _trackers(self, instant: Instant) -> Array:
        return instant.agent("sent")[:, self.problem.task.dimension :]

    def _unbalanced(self, instant: Instant) -> float:
        """Largest coordinate of the sum, less what agents a round ahead have exchanged and their neighbours not yet."""
        trackers = self._trackers(instant)
        alone = mixed_by_one_end(instant, self.weights, trackers, instant.agent("before"))
        return largest((trackers - instant.agent("gradient")).sum(axis=0) - alone)
