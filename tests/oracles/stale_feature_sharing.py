"""ADMM sharing with bounded staleness with its steps as methods, and no step functions: a judge of these."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing

from .feature_sharing import centre_step, clipped, factorised, fitted


class StaleFeatureSharingByWake(StaleFeatureSharing):
    """Steps by a method, with factors outside the state."""

    decides = asks_for_budget = True

    def prepare(self):
        """See `Protocol.prepare`."""
        super().prepare()
        self.factors = {}
        self.patience = np.inf if self.parameters.staleness == "unbounded" else float(self.parameters.staleness)

    def start(self, me):
        """See `Protocol.start`."""
        if me.role == "party":
            ratio = self.parameters.ridge / (self.parameters.rho * (1 + self.parameters.damping))
            self.factors[me.agent] = factorised(me.data.features, ratio)

    def step(self, me):
        """See `Protocol.step`."""
        if me.role == "centre":
            self._centre(me)
        else:
            self._party(me)

    def _party(self, me):
        target, sent = me.heard_target[0], me.sent
        release = me.public("scores that were told before")
        if target[-1] > sent[-1]:
            release = self.scores.release(me)
            if not me.reserve(release):
                me.fall_silent()
                return
            columns = me.data.features
            me.model = fitted(self.factors[me.agent], columns, target[:-1])
            scores = clipped(columns @ me.model, self.scores)
            sent[:-1] = release.perturb(scores, rng=me.stream("noise"))
            sent[-1] = target[-1]
        me.send("scores", sent, release, to=0)

    def _centre(self, me):
        heard = me.heard_scores
        release = me.public("targets that were told before")
        if me.step[0] - min(scores[-1] for scores in heard) < self.patience:
            me.total = np.sum([scores[:-1] for scores in heard], axis=0)
            centre_step(self.problem.task.loss, me, me.data.labels, me.total, self.parameters.rho)
            me.step += 1.0
            move = (me.total - me.z + me.y / self.parameters.rho) / (1 + self.parameters.damping)
            for told, scores in zip(me.told, heard, strict=True):
                told[:-1], told[-1] = scores[:-1] - move, me.step[0]
            release = me.plain("z and y depend on the labels, which nothing protects")
        for party, told in zip(me.neighbours.tolist(), me.told, strict=True):
            me.send("target", told, release, to=party)
