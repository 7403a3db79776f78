"""ADMM sharing with bounded staleness with its steps as methods, and no step functions: a judge of these."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing

from .feature_sharing import centre_step, clipped, factorised, fitted


class StaleFeatureSharingByWake(StaleFeatureSharing):
    """Steps by `wake`, with factors outside the state."""

    def prepare(self):
        """See `Protocol.prepare`."""
        super().prepare()
        self.factors = {}
        self.patience = np.inf if self.parameters.staleness == "unbounded" else float(self.parameters.staleness)

    def start(self, view, out):
        """See `Protocol.start`."""
        if view.role == "party":
            ratio = self.parameters.ridge / (self.parameters.rho * (1 + self.parameters.damping))
            self.factors[view.agent] = factorised(view.data.features, ratio)

    def wake(self, view, out):
        """See `Protocol.wake`."""
        if view.role == "centre":
            self._centre(view, out)
        else:
            self._party(view, out)

    def _party(self, view, out):
        target, sent = view.received("target")[0], view.state["sent"]
        release = out.public("scores that were told before")
        if target[-1] > sent[-1]:
            release = self.scores.release(view)
            if not out.reserve(release):
                out.fall_silent()
                return
            columns = view.data.features
            view.state["model"][:] = fitted(self.factors[view.agent], columns, target[:-1])
            scores = clipped(columns @ view.state["model"], self.scores)
            sent[:-1] = release.perturb(scores, rng=view.stream("noise"))
            sent[-1] = target[-1]
        out.send("scores", sent, release, to=0)

    def _centre(self, view, out):
        state, heard = view.state, view.received("scores")
        release = out.public("targets that were told before")
        if state["step"][0] - min(scores[-1] for scores in heard) < self.patience:
            state["total"][:] = np.sum([scores[:-1] for scores in heard], axis=0)
            centre_step(self.problem.task.loss, state, view.data.labels, state["total"], self.parameters.rho)
            state["step"][0] += 1.0
            move = (state["total"] - state["z"] + state["y"] / self.parameters.rho) / (1 + self.parameters.damping)
            for told, scores in zip(view.edge["told"], heard, strict=True):
                told[:-1], told[-1] = scores[:-1] - move, state["step"][0]
            release = out.plain("z and y depend on the labels, which nothing protects")
        for party, told in zip(view.neighbours.tolist(), view.edge["told"], strict=True):
            out.send("target", told, release, to=party)
