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
    """Steps by `wake`, with factors outside the state."""

    def prepare(self):
        """See `Protocol.prepare`."""
        super().prepare()
        self.factors, self.roots = {}, {}

    def start(self, view, out):
        """See `Protocol.start`."""
        if view.agent > self.parties:
            out.fall_silent()
        elif view.role == "party":
            ratio = self.parameters.ridge / self.parameters.rho
            self.factors[view.agent] = factorised(view.data.features, ratio)
            if self.parameters.noise is not None:
                self.roots[view.agent] = range_root(view.data.features)

    def wake(self, view, out):
        """See `Protocol.wake`."""
        phase = view.updates % self.cycle
        if view.role == "centre":
            if phase % 2 == 1:
                self._centre(view, out, last=phase == self.cycle - 1)
        elif phase % 2 == 0 and (self.parameters.order == "jacobi" or view.agent == 1 + phase // 2):
            self._party(view, out)

    def _party(self, view, out):
        given, columns, state = self.parameters, view.data.features, view.state
        release = self.scores.release(view)
        if given.noise is not None:
            release = given.noise.release(view, parties=self.parties, rho=given.rho, ridge=given.ridge)
        if not out.reserve(release):
            out.fall_silent()
            return
        gap, dual = np.split(view.received("gap_and_dual")[0], 2)
        target = state["sent"] - gap - dual / given.rho
        model = fitted(self.factors[view.agent], columns, target)
        if given.noise is not None:
            root = self.roots[view.agent]
            model += root @ draw_noise("gaussian", root.shape[1], given.noise.scale, rng=view.stream("noise"))
            sent = columns @ model
        else:
            sent = release.perturb(clipped(columns @ model, self.scores), rng=view.stream("noise"))
        state["model"][:], state["sent"][:] = model, sent
        out.send("scores", sent, release, to=0)

    def _centre(self, view, out, *, last):
        state, total = view.state, np.sum(view.received("scores"), axis=0)
        if last:
            centre_step(self.problem.task.loss, view.state, view.data.labels, total, self.parameters.rho)
        out.send(
            "gap_and_dual",
            np.concatenate([total - state["z"], state["y"]]),
            out.plain("z and y depend on the labels, which nothing protects"),
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


def centre_step(loss, state, labels, total, rho):
    """(7) and (8), in the blocks z and y of the centre."""
    linear = state["y"] + rho * total
    state["z"][:] = minimise_rows(loss, labels, curvature=rho, linear=linear)
    state["y"] += rho * (total - state["z"])
    assert (np.abs(state["y"] - loss.slope(state["z"], labels)) <= 1e-8 * (1 + 1e-6 * np.abs(linear))).all()
