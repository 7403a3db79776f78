"""Noise on the scores D_m x_m that a party of ADMM sharing sends: as printed, and in a form that protects.

The printed noise (Hu et al. 2019, equation 16) is xi with covariance scale^2 (D_m' D_m)^-1, so that the scores get
D_m xi: scale times isotropic noise *within the range of D_m*. The claim rests on lemma 1 and theorem 3:

=================  ==================================================================================
lemma 1            sensitivity C = 3 / (d_m rho) (lambda c1 + (1 + M rho) b1)
theorem 3          scale = C sqrt(2 ln(1.25 / delta)) / epsilon gives (epsilon, delta) a round, epsilon <= 1
(17)               sqrt(2 T ln(1 / delta')) epsilon + T epsilon (e^epsilon - 1) over T rounds; the ledger
                   composes the claims by a bound that is never larger (Kairouz, Oh, Viswanath 2015)
=================  ==================================================================================

It does not hold. Released scores lie in the range of D_m with certainty. A neighbouring D_m' has another range, and a
normal vector within one of two different subspaces of equal dimension lies in the other with probability 0: whoever
knows both data sets tells them apart from one message, so delta is 1 at any scale. Apart from that, lemma 1 bounds
(D_m' D_m)^-1 by 1 / d_m, d_m being the number of columns, and nothing bounds the iterates by b1. The verified
sensitivity is therefore infinite.

``ClippedScores`` clips the scores to norm B and adds noise in all N directions. Whatever changes in the party's data, a
clipped vector moves by at most 2 B: what it protects is all that a party holds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from ...agents.errors import FieldError
from ...agents.parameters import Positive
from ..noise import active
from ..privacy.budget import PrintedNoise, Privacy, RuleError, Total
from ..privacy.mechanisms import Release
from ..privacy.plans import Plan, plan
from ..steps.declarations import StepNoise
from .split_features import CENTRE

RANK = 1e-10
"""Singular values of D_m below this share of the largest count as 0: one-hot columns are linearly dependent."""


class RangeNoise(PrintedNoise, frozen=True):
    """Noise (16) as printed: normal, with covariance scale^2 (D_m' D_m)^-1 on a party's part of the model."""

    scale: Positive
    """sigma, the deviation of the noise in every direction of the range of D_m."""
    bound: Positive = 1.0
    """b1, the paper's assumed bound on the norms of x, y and z."""
    slope: Positive = 1.0
    """c1, the paper's assumed bound on the second derivative of the regulariser."""
    round_delta: float = Field(default=1e-8, gt=0, lt=1)
    """delta that theorem 3 claims for a round; as many as there are rounds come out of the reported one."""

    mechanism = "gaussian"
    claimed_by = "advanced_composition"

    @property
    def reported_delta(self) -> float:
        """Delta at which epsilons are reported."""
        return 1e-5 if self.delta is None else self.delta

    @override
    def scaled_to(self, total: Total) -> dict[str, Any]:
        """Refuse any total: the verified epsilon is infinite, and the claimed one is limited in each round."""
        raise RuleError(f"cannot be {total.words}: printed noise of this kind has no amount that follows from it")

    def release(self, me: Any, *, parties: int, rho: float, ridge: float) -> Release:
        """Return the release of a party's message, as lemma 1 and theorem 3 claim it; nothing of it is proved."""
        sensitivity = 3 / (me.data.features.shape[1] * rho) * (ridge * self.slope + (1 + parties * rho) * self.bound)
        epsilon = math.sqrt(2 * math.log(1.25 / self.round_delta)) * sensitivity / self.scale
        return Release(
            agent=me.agent,
            time=me.now,
            mechanism="gaussian",
            norm="l2",
            sensitivity=sensitivity,
            sensitivity_source="claimed",
            verified_sensitivity=math.inf,
            scale=self.scale,
            claimed_epsilon=epsilon if epsilon <= 1 else math.inf,
            claimed_delta=self.round_delta,
            recipients=1,
            unit="feature column",
            reason="the noise lies in the range of the party's columns, which differs between neighbouring data",
        )


def range_root(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d, r) a root R of the pseudo-inverse of (N, d) columns of rank r, R R' = (D' D)^+; D R has orthonormal columns.

    Scale R g with standard normal g is the noise (16).
    """
    squares, vectors = np.linalg.eigh(columns.T @ columns)
    kept = squares > RANK**2 * max(squares[-1], 1e-300) + 1e-12 * squares[-1]
    return vectors[:, kept] / np.sqrt(squares[kept])


class ClippedScores:
    """Isotropic Gaussian noise on clipped scores; without privacy, or at multiplier 0, none is clipped or protected."""

    def __init__(self, privacy: Privacy | None) -> None:
        self.privacy = privacy if active(privacy) else None
        self.plan: Plan | None = None
        if self.privacy is not None:
            releases = self.privacy.updates or 1
            self.plan = plan(self.privacy, np.full(releases, 1.0 / releases))

    @property
    def scale(self) -> float:
        """Deviation of the noise of every score; 0 without noise."""
        return 0.0 if self.plan is None else float(self.plan.multipliers[0]) * self.sensitivity

    @property
    def sensitivity(self) -> float:
        """Largest l2 distance that clipped scores move by, whatever changes in the party's data."""
        return 2 * self.bound

    @property
    def bound(self) -> float:
        """Norm that scores are clipped to; infinite without noise."""
        return math.inf if self.privacy is None or self.privacy.clip is None else self.privacy.clip

    def release(self, me: Any) -> Release:
        """The release of a party's next message."""
        if self.privacy is None or self.plan is None:
            return Release.plain(me.agent, me.now, "scores of the party's columns, without noise", recipients=1)
        return Release(
            agent=me.agent,
            time=me.now,
            mechanism="gaussian",
            norm="l2",
            sensitivity=self.sensitivity,
            sensitivity_source="clip",
            verified_sensitivity=self.sensitivity,
            scale=self.scale,
            claimed_epsilon=float(self.plan.epsilons[0]),
            claimed_delta=float(self.plan.deltas[0]),
            recipients=1,
            unit="party",
        )


class ScoreNoise(StepNoise):
    """Noise on a party's scores, isotropic or as printed in the paper; the centre draws none.

    Terms are as of `RangeNoise.release`.
    """

    def __init__(self, scores: ClippedScores, agents: int, printed: RangeNoise | None = None, **terms: Any) -> None:
        self.scores, self.agents, self.printed, self.terms = scores, agents, printed, terms

    @property
    @override
    def mechanism(self) -> str | None:
        return None if self.printed is None and self.scores.privacy is None else "gaussian"

    def release(self, me: Any) -> Release:
        """The release of an agent's next message."""
        if me.agent == CENTRE:
            return Release.plain(me.agent, me.now, "z and y depend on the labels, which nothing protects")
        if self.printed is not None:
            return self.printed.release(me, **self.terms)
        return self.scores.release(me)

    @override
    def scales(self) -> NDArray[np.float64]:
        """Noise scales of one stage, for every message has the same noise."""
        return np.full((self.agents, 1), self.scores.scale if self.printed is None else self.printed.scale)


def check_isotropic(privacy: Privacy | None) -> None:
    """Refuse noise on scores that is not Gaussian, or not scaled for clipped scores.

    Raises `FieldError` with the field to change.
    """
    if privacy is None or not active(privacy):
        return
    if not privacy.noise.gaussian:
        raise FieldError("scores are perturbed by Gaussian noise", "privacy", "mechanism")
    if privacy.sensitivity != "clip":
        raise FieldError("nothing but clipping bounds the scores; use clip", "privacy", "sensitivity")
    if privacy.allocation != "uniform":
        raise FieldError("every round has the same noise; use uniform", "privacy", "allocation")
