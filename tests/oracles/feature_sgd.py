"""Minibatch gradients over split features with their step as a method, and no step function: a judge of that."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.feature_sgd import FeatureSgd
from hushnet.protocols.algorithms.split_features import CENTRE, PARTY


class FeatureSgdByWake(FeatureSgd):
    """Parties step in odd rounds and the centre in even ones, by `wake`; every message has a release of its own."""

    def wake(self, view, out):
        """See `Protocol.wake`."""
        number, second = divmod(view.updates, 2)
        if view.role == "centre" and second:
            scores = np.sum(view.received("scores"), axis=0)
            slopes = self.problem.task.loss.slope(scores, view.data.labels[self._rows_of(number)])
            out.send("slopes", slopes, out.plain("the slopes depend on the labels, which nothing protects"))
        elif view.role == PARTY and not second:
            if number:
                self._move(view, number - 1)
            scores = view.data.features[self._rows_of(number)] @ view.state["model"]
            out.send("scores", scores, out.plain("scores of the party's columns, without noise"), to=CENTRE)

    def _move(self, view, number):
        given, model = self.parameters, view.state["model"]
        slopes = view.received("slopes")[0]
        gradient = slopes @ view.data.features[self._rows_of(number)] / self.batch + given.ridge / self.rows * model
        model -= given.step_size / (1 + given.decay * number) * gradient

    def _rows_of(self, number):
        return self.order[np.arange(number * self.batch, (number + 1) * self.batch) % self.rows]
