"""Noise for the subgradient of a few of an agent's own examples, drawn at random for every step.

Replacing one example moves the mean subgradient of b of them by at most 2 B / b, where B bounds one example's, and only
if it was drawn: with probability b / q out of q. That is subsampling, and the ledger accounts for it as such.

Theorem 1 of Liu, Johansson and Shi (2022) instead divides the sensitivity of the subgradient by q, as if it were a mean
over all q examples. A run that takes its noise from the theorem (``budget``) charges the theorem's epsilon as claimed
and the subsampled mechanism's as verified; a run with a ``target`` takes its noise from the verified epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..agents.errors import FieldError
from ..agents.losses import clipped_gradient, local_gradient
from ..agents.tables import Shard
from ..agents.tasks.base import Task
from .base import View
from .noise import UNBOUNDED, GradientNoise, active
from .privacy.accounting import verified
from .privacy.budget import Privacy, Target
from .privacy.calibration import smallest_multiplier
from .privacy.composition import gaussian_epsilon
from .privacy.ledger import charge_of
from .privacy.mechanisms import Release

SamplingLaw = Literal["uniform", "poisson", "full"]


@dataclass(frozen=True)
class Amount:
    """Noise of one step: scale over the sensitivity that it was made for, and what is claimed for it."""

    multiplier: float
    sensitivity: float
    epsilon: float
    delta: float


class SubgradientNoise:
    """Noise for subgradients over randomly drawn examples.

    Parameters
    ----------
    privacy : Privacy or None
        None, or noise of multiplier 0: nothing is clipped, drawn or charged with noise.
    task : Task
        For its loss and the publicly known bounds on its features.
    sampling : {"uniform", "poisson", "full"}
        ``batch`` examples without replacement, each with probability batch / q, or all.
    batch : int
        Examples in a step, >= 1.
    radius : float, optional
        Public bound on the l2 norm of every row, enforced by clipping rows.
    """

    def __init__(
        self, privacy: Privacy | None, task: Task, *, sampling: SamplingLaw, batch: int, radius: float | None
    ) -> None:
        self.privacy = privacy if active(privacy) else None
        self.task, self.sampling, self.batch = task, sampling, batch
        self.gradient_noise = GradientNoise(privacy, task, radius=radius)
        counts = task.train.counts
        self.smallest = int(counts[counts > 0].min(initial=np.iinfo(np.int64).max))

    def check_rows(self, shard: Shard, agent: int | str) -> None:
        """See `GradientNoise.check_rows`."""
        self.gradient_noise.check_rows(shard, agent)

    def share(self, count: int) -> float:
        """Probability that a given one of `count` examples takes part in a step."""
        return 1.0 if self.sampling == "full" else min(1.0, self.batch / count)

    def release(self, view: View) -> Release:
        """The release of an agent's next step."""
        count, recipients = len(view.data), len(view.neighbours)
        if count == 0:
            return Release.public(view.agent, view.now, "the agent has no data", recipients=recipients)
        if self.privacy is None:
            return Release.plain(view.agent, view.now, "no noise", recipients=recipients)
        drawn = count if self.sampling == "full" else min(self.batch, count)
        sensitivity, proved = self.gradient_noise.sensitivities(drawn)
        amount = self._amount(count, sensitivity)
        return Release(
            agent=view.agent,
            time=view.now,
            mechanism="gaussian",
            norm="l2",
            sensitivity=amount.sensitivity,
            sensitivity_source=self.privacy.sensitivity,
            verified_sensitivity=proved,
            scale=amount.multiplier * amount.sensitivity,
            claimed_epsilon=amount.epsilon,
            claimed_delta=amount.delta,
            recipients=recipients,
            sampling=self.share(count),
            reason="" if math.isfinite(proved) else UNBOUNDED,
        )

    def _amount(self, count: int, sensitivity: float) -> Amount:
        privacy = self.privacy
        assert privacy is not None
        if privacy.budget is not None:
            assert privacy.updates is not None
            epsilon, delta, rounds = privacy.budget.epsilon, privacy.budget.delta, privacy.updates
            claimed = self.gradient_noise.sensitivities(self.smallest)[0]
            return Amount(math.sqrt(3 * rounds * math.log(1 / delta)) / epsilon, claimed, epsilon / rounds, 0.0)
        multiplier = privacy.multiplier
        if multiplier is None:
            assert privacy.target is not None
            assert privacy.updates is not None
            multiplier = calibrated(privacy.target, privacy.updates, self.share(count))
        delta = privacy.reported_delta
        return Amount(multiplier, sensitivity, gaussian_epsilon(1 / multiplier, delta), delta)

    def subgradient(self, model: NDArray[np.float64], view: View) -> NDArray[np.float64]:
        """(p,) mean subgradient of the examples drawn for this step; each clipped where the noise relies on it."""
        drawn, share = self._draw(view)
        if len(drawn) == 0:
            return np.zeros_like(model)
        privacy, loss = self.privacy, self.task.loss
        if privacy is not None and privacy.sensitivity == "clip":
            assert privacy.clip is not None
            return share * clipped_gradient(model, drawn, loss, 0.0, "l2", privacy.clip)
        return share * local_gradient(model, drawn, loss, 0.0)

    def _draw(self, view: View) -> tuple[Shard, float]:
        """The examples of a step, and their number over the one that their mean is meant to have."""
        count = len(view.data)
        if self.sampling == "full" or count == 0:
            return view.data, 1.0
        rng, batch = view.stream("sampling"), min(self.batch, count)
        if self.sampling == "poisson":
            chosen = np.flatnonzero(rng.random(count) < batch / count)
        elif batch == 1:
            chosen = np.array([rng.integers(count)])
        else:
            chosen = rng.choice(count, batch, replace=False)
        return Shard(view.data.features[chosen], view.data.labels[chosen]), len(chosen) / batch


def check_theorem1(privacy: Privacy | None) -> None:
    """Refuse what the noise of a subgradient cannot be.

    Raises
    ------
    FieldError
        Unless the noise is Gaussian and, where it comes from the paper's theorem 1, within the theorem's conditions.
    """
    if privacy is None or not active(privacy):
        return
    if not privacy.noise.gaussian:
        raise FieldError("the subgradient is perturbed by Gaussian noise", "privacy", "mechanism")
    if privacy.allocation != "uniform":
        raise FieldError("every round has the same noise; use uniform", "privacy", "allocation")
    budget = privacy.budget
    if budget is not None and not (budget.epsilon <= 1 and budget.delta <= 1 / 3):
        raise FieldError("theorem 1 holds for epsilon <= 1 and delta <= 1/3", "privacy", "budget")
    if budget is not None and budget.by != "basic":
        raise FieldError(
            "theorem 1 states one epsilon for all rounds, of which each is charged its share; use by: basic",
            "privacy",
            "budget",
            "by",
        )


@lru_cache(maxsize=256)
def calibrated(target: Target, updates: int, sampling: float) -> float:
    """The smallest multiplier, to 0.03 %, whose releases together stay within the target's verified epsilon.

    Parameters
    ----------
    target : Target
    updates : int
        Number of releases, >= 1.
    sampling : float
        Probability that a given record takes part in one of them, in (0, 1].
    """
    return smallest_multiplier(lambda scale: verified_epsilon(scale, updates, sampling, target.delta), target.verified)


def verified_epsilon(multiplier: float, updates: int, sampling: float, delta: float) -> float:
    """Verified epsilon at `delta` of so many releases with Gaussian noise of this multiplier."""
    release = Release(0, 0.0, "gaussian", "l2", 1.0, "clip", 1.0, multiplier, math.inf, 0.0, 1, sampling=sampling)
    return verified({charge_of(release): updates}, delta)
