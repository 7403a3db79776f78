"""Minibatch gradients over split features with their step as a method, and no step function: a judge of that."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.feature_sgd import FeatureSgd
from hushnet.protocols.algorithms.split_features import CENTRE, PARTY


class FeatureSgdByWake(FeatureSgd):
    """Parties step in odd rounds and the centre in even ones, by a method; every message has a release of its own."""

    decides = asks_for_budget = True

    def step(self, me):
        """See `Protocol.step`."""
        number, second = divmod(me.updates, 2)
        if me.role == "centre" and second:
            scores = np.sum(me.heard_scores, axis=0)
            slopes = self.problem.task.loss.slope(scores, me.data.labels[self._rows_of(number)])
            me.send("slopes", slopes, me.plain("the slopes depend on the labels, which nothing protects"))
        elif me.role == PARTY and not second:
            if number:
                self._move(me, number - 1)
            scores = me.data.features[self._rows_of(number)] @ me.model
            me.send("scores", scores, me.plain("scores of the party's columns, without noise"), to=CENTRE)

    def _move(self, me, number):
        given, model = self.parameters, me.model
        slopes = me.heard_slopes[0]
        gradient = slopes @ me.data.features[self._rows_of(number)] / self.batch + given.ridge / self.rows * model
        model -= given.step_size / (1 + given.decay * number) * gradient

    def _rows_of(self, number):
        return self.order[np.arange(number * self.batch, (number + 1) * self.batch) % self.rows]
