"""ADMM sharing with its steps as methods, and no step functions: a judge of these."""

from __future__ import annotations

import numpy as np
from hushnet.agents.clipping import clip_rows
from hushnet.agents.optimisation.splitting import minimise_rows
from hushnet.protocols.algorithms.feature_noise import range_root
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing
from hushnet.protocols.privacy.mechanisms import draw_noise
from scipy.linalg import cho_factor, cho_solve


class FeatureSharingByWake(FeatureSharing):
    """Steps by a method, with factors outside the state."""

    decides = asks_for_budget = True

    def prepare(self):
        """See `Protocol.prepare`."""
        super().prepare()
        self.factors, self.roots = {}, {}

    def start(self, me):
        """See `Protocol.start`."""
        if me.agent > self.parties:
            me.fall_silent()
        elif me.role == "party":
            ratio = self.parameters.ridge / self.parameters.rho
            self.factors[me.agent] = factorised(me.data.features, ratio)
            if self.parameters.noise is not None:
                self.roots[me.agent] = range_root(me.data.features)

    def step(self, me):
        """See `Protocol.step`."""
        phase = me.updates % self.cycle
        if me.role == "centre":
            if phase % 2 == 1:
                self._centre(me, last=phase == self.cycle - 1)
        elif phase % 2 == 0 and (self.parameters.order == "jacobi" or me.agent == 1 + phase // 2):
            self._party(me)

    def _party(self, me):
        given, columns = self.parameters, me.data.features
        release = self.scores.release(me)
        if given.noise is not None:
            release = given.noise.release(me, parties=self.parties, rho=given.rho, ridge=given.ridge)
        if not me.reserve(release):
            me.fall_silent()
            return
        gap, dual = np.split(me.heard_gap_and_dual[0], 2)
        target = me.sent - gap - dual / given.rho
        model = fitted(self.factors[me.agent], columns, target)
        if given.noise is not None:
            root = self.roots[me.agent]
            model += root @ draw_noise("gaussian", root.shape[1], given.noise.scale, rng=me.stream("noise"))
            sent = columns @ model
        else:
            sent = release.perturb(clipped(columns @ model, self.scores), rng=me.stream("noise"))
        me.model, me.sent = model, sent
        me.send("scores", sent, release, to=0)

    def _centre(self, me, *, last):
        total = np.sum(me.heard_scores, axis=0)
        if last:
            centre_step(self.problem.task.loss, me, me.data.labels, total, self.parameters.rho)
        me.send(
            "gap_and_dual",
            np.concatenate([total - me.z, me.y]),
            me.plain("z and y depend on the labels, which nothing protects"),
        )


def clipped(scores, noise):
    """Scores scaled down to the norm that they are clipped to, if they are to be and are longer."""
    return scores if noise.privacy is None else clip_rows(scores[None, :], noise.privacy.clip)[0]


def factorised(columns, ratio):
    """The factor of D'D + ratio I."""
    gram = columns.T @ columns
    gram[np.diag_indices(len(gram))] += ratio
    return cho_factor(gram, lower=True)


def fitted(factor, columns, target):
    """(6), by the factor."""
    return cho_solve(factor, columns.T @ target, check_finite=False)


def centre_step(loss, me, labels, total, rho):
    """(7) and (8), in the blocks z and y of the centre."""
    linear = me.y + rho * total
    me.z = minimise_rows(loss, labels, curvature=rho, linear=linear)
    me.y += rho * (total - me.z)
    assert (np.abs(me.y - loss.slope(me.z, labels)) <= 1e-8 * (1 + 1e-6 * np.abs(linear))).all()
