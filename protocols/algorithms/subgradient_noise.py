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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.errors import FieldError
from ...agents.tasks.task import Task
from ..noise import UNBOUNDED, GradientNoise, active
from ..privacy.accounting import verified
from ..privacy.budget import Privacy, Target
from ..privacy.calibration import smallest_multiplier
from ..privacy.composition import gaussian_epsilon
from ..privacy.ledger import charge_of
from ..privacy.mechanisms import Norm, Release
from ..steps import draw_each, draw_rows, loss_gradient, sample_size
from ..steps.declarations import NO_DATA, NO_NOISE, StepNoise

SamplingLaw = Literal["uniform", "poisson", "full"]


@dataclass(frozen=True)
class Amount:
    """Noise of one step: scale over the sensitivity that it was made for, and what is claimed for it."""

    multiplier: float
    sensitivity: float
    epsilon: float
    delta: float

    @property
    def scale(self) -> float:
        """Standard deviation of the noise."""
        return self.multiplier * self.sensitivity


class SubgradientNoise(StepNoise):
    """Noise for subgradients over randomly drawn examples; none, or of multiplier 0, clips, draws and charges nothing.

    Examples of a step are a batch, >= 1, without replacement (uniform), each with probability batch / q (poisson), or
    all (full). Where there is a radius, a public bound on the l2 norm of every row, rows are clipped to it.
    """

    def __init__(
        self, privacy: Privacy | None, task: Task, *, sampling: SamplingLaw, batch: int, radius: float | None
    ) -> None:
        self.privacy = privacy if active(privacy) else None
        self.task, self.sampling, self.batch = task, sampling, batch
        self.gradient_noise = GradientNoise(privacy, task, radius=radius)
        counts = task.train.counts
        self.smallest = int(counts[counts > 0].min(initial=np.iinfo(np.int64).max))

    @property
    @override
    def mechanism(self) -> str | None:
        return None if self.privacy is None else "gaussian"

    @property
    @override
    def releases_rows_plainly(self) -> bool:
        return self.privacy is None and type(self).release is SubgradientNoise.release

    @property
    @override
    def clip(self) -> tuple[Norm, float] | None:
        return self.gradient_noise.clip

    @override
    def scales(self) -> NDArray[np.float64]:
        """Noise scales of one stage, for every step has the same noise."""
        amounts = {count: self._noise(count)[0] for count in np.unique(self.task.train.counts).tolist() if count}
        return np.array([[amounts[count].scale if count else 1.0] for count in self.task.train.counts.tolist()])

    def share(self, count: int) -> float:
        """Probability that a given one of `count` examples takes part in a step."""
        return 1.0 if self.sampling == "full" else min(1.0, self.batch / count)

    def release(self, me: Any) -> Release:
        """The release of an agent's next step."""
        count, recipients = len(me.data), len(me.neighbours)
        if count == 0:
            return Release.public(me.agent, me.now, NO_DATA, recipients=recipients)
        if self.privacy is None:
            return Release.plain(me.agent, me.now, NO_NOISE, recipients=recipients)
        amount, proved = self._noise(count)
        return Release(
            agent=me.agent,
            time=me.now,
            mechanism="gaussian",
            norm="l2",
            sensitivity=amount.sensitivity,
            sensitivity_source=self.privacy.sensitivity,
            verified_sensitivity=proved,
            scale=amount.scale,
            claimed_epsilon=amount.epsilon,
            claimed_delta=amount.delta,
            recipients=recipients,
            sampling=self.share(count),
            reason="" if math.isfinite(proved) else UNBOUNDED,
        )

    def _noise(self, count: int) -> tuple[Amount, float]:
        """The noise of an agent with so many examples, and the sensitivity that can be proved."""
        sensitivity, proved = self.gradient_noise.sensitivities(
            count if self.sampling == "full" else min(self.batch, count)
        )
        return self._amount(count, sensitivity), proved

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


def drawn_rows(me: Any) -> Any:
    """ranks of the examples drawn for a step, None for all of them.

    A step draws first, so that the memory of the rows comes while it mixes.
    """
    if me.sampling == "full":
        return None
    if me.sampling == "poisson":
        return draw_each(me, np.minimum(me.batch, me.rows) / np.maximum(me.rows, 1))
    return draw_rows(me, me.batch)


def drawn_gradient(me: Any, model: NDArray[np.float64], rows: Any) -> NDArray[np.float64]:
    """(p,) mean subgradient of what `drawn_rows` gave, each row's clipped where noise relies on it.

    A Poisson draw of k examples counts k / batch times their mean, so that it is unbiased; of none, zeros.
    """
    if me.sampling == "poisson":
        share = sample_size(me, rows) / np.maximum(np.minimum(me.batch, me.rows), 1)
        return share * loss_gradient(me, model, rows)
    return loss_gradient(me, model, rows)


def check_theorem1(privacy: Privacy | None) -> None:
    """Refuse what the noise of a subgradient cannot be.

    Raises `FieldError` unless the noise is Gaussian and, where it comes from the paper's theorem 1, within the
    theorem's conditions.
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
    if budget is not None and budget.by != "basic_composition":
        raise FieldError(
            "theorem 1 states one epsilon for all rounds, each charged its share; use by: basic_composition",
            "privacy",
            "budget",
            "by",
        )


@lru_cache(maxsize=256)
def calibrated(target: Target, updates: int, sampling: float) -> float:
    """The smallest multiplier, to 0.03 %, whose releases together stay within the target's verified epsilon.

    There is one release at least, and a given record takes part in each with probability `sampling` in (0, 1].
    """
    return smallest_multiplier(lambda scale: verified_epsilon(scale, updates, sampling, target.delta), target.verified)


def verified_epsilon(multiplier: float, updates: int, sampling: float, delta: float) -> float:
    """Verified epsilon at `delta` of so many releases with Gaussian noise of this multiplier."""
    release = Release(0, 0.0, "gaussian", "l2", 1.0, "clip", 1.0, multiplier, math.inf, 0.0, 1, sampling=sampling)
    return verified({charge_of(release): updates}, delta)
