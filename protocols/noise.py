"""Noise of a scenario's ``privacy``: sensitivities, scales and the budget of every update.

Shared by all protocols that perturb the mean gradient of an agent's own examples. Replacing one of m examples moves
that mean by at most 2 B / m, where B bounds the norm of one example's gradient (Bellet et al. 2018, lemma 1; the
factor 1 / m belongs into remark 4, too). Replacing all of an agent's examples (``unit: agent``) moves the mean by at
most 2 B, where B bounds its own norm (McMahan et al. 2018, arXiv 1710.06963, section 2, for the update of a user).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..agents.clipping import clip_rows, norms
from ..agents.errors import InputError
from ..agents.losses import clipped_gradient, local_gradient
from ..agents.tables import Shard
from ..agents.tasks.task import Task
from .context import check_slope
from .privacy.budget import GradientPrivacy, Privacy
from .privacy.mechanisms import Norm, Release
from .privacy.plans import Plan, plan
from .steps.declarations import NO_DATA, NO_NOISE, POST_PROCESSING, StepNoise

UNBOUNDED = "nothing bounds how far one example moves a gradient"
"""Why nothing is verified about noise for a claimed sensitivity on such a task."""


class GradientNoise(StepNoise):
    """Noise for the mean gradient of an agent's own examples.

    Parameters
    ----------
    privacy : Privacy or None
        None, or noise of multiplier 0, is the plain protocol: nothing is clipped, drawn or charged.
    task : Task
        For its loss and the publicly known bounds on its features.
    weights : (updates,) or (n, updates) float64, optional
        How the budget is split over an agent's updates, summing to 1 per agent.
    radius : float, optional
        Public bound on the l2 norm of every row, enforced by clipping rows.
    every : int
        Steps from one release to the next, >= 1.

    Raises
    ------
    InputError
        If a row is longer than the noise is made for (``sensitivity: data_check``).
    """

    def __init__(
        self,
        privacy: Privacy | None,
        task: Task,
        *,
        weights: NDArray[np.float64] | None = None,
        radius: float | None = None,
        every: int = 1,
    ) -> None:
        self.privacy, self._every = privacy if active(privacy) else None, every
        self.task = task
        self.bounds = row_bounds(task, radius)
        self.plans: list[Plan] = []
        if self.privacy is not None:
            rows = np.atleast_2d(np.ones(1) if weights is None else weights)
            self.plans = [plan(self.privacy, row, dimension=task.dimension) for row in rows]
        check_slope(self.privacy, task.loss)
        check_all_rows(self.privacy, task, radius=radius)

    @property
    @override
    def mechanism(self) -> str | None:
        return None if self.privacy is None else self.privacy.mechanism

    @property
    @override
    def dimension(self) -> int:
        return self.task.dimension

    @property
    @override
    def every(self) -> int:
        return self._every

    @property
    @override
    def releases_rows_plainly(self) -> bool:
        return self.privacy is None and type(self).release is GradientNoise.release

    @property
    @override
    def alike(self) -> NDArray[np.int64] | None:
        plain = type(self).release is GradientNoise.release and type(self).sensitivities is GradientNoise.sensitivities
        return self.task.train.counts if plain and len(self.plans) <= 1 else None

    @property
    @override
    def clip(self) -> tuple[Norm, float] | None:
        return self._clip_of("record")

    @property
    @override
    def clip_mean(self) -> tuple[Norm, float] | None:
        return self._clip_of("agent")

    def _clip_of(self, unit: str) -> tuple[Norm, float] | None:
        if self.privacy is None or self.privacy.clip is None or unit_of(self.privacy) != unit:
            return None
        return self.privacy.norm, self.privacy.clip

    def mean_gradient(self, model: NDArray[np.float64], shard: Shard) -> NDArray[np.float64]:
        """(p,) mean gradient of a shard's loss at a (p,) model, clipped as the noise relies on it."""
        loss = self.task.loss
        if self.clip is not None:
            return clipped_gradient(model, shard, loss, 0.0, *self.clip)
        found = local_gradient(model, shard, loss, 0.0)
        return found if self.clip_mean is None else clip_rows(found[None], self.clip_mean[1], self.clip_mean[0])[0]

    @override
    def scales(self) -> NDArray[np.float64]:
        """Noise scales; they have one stage where all releases are alike."""
        counts = np.maximum(self.task.train.counts, 1)
        sensitivities = np.array([self.sensitivities(int(count))[0] for count in counts])
        rows = np.array([own.multipliers if _varies(own) else own.multipliers[:1] for own in self.plans])
        return np.repeat(sensitivities[:, None] * rows, self._every if rows.shape[1] > 1 else 1, axis=1)

    def sensitivities(self, count: int) -> tuple[float, float]:
        """Return the sensitivity that noise is scaled for and the proved one, for an agent with `count` examples."""
        privacy, lipschitz = self.privacy, self.task.loss.lipschitz
        assert privacy is not None
        count = 1 if unit_of(privacy) == "agent" else count  # whose mean is replaced as a whole
        if privacy.sensitivity == "clip":
            assert privacy.clip is not None
            return 2 * privacy.clip / count, 2 * privacy.clip / count
        if privacy.sensitivity == "data_check":
            assert privacy.radius is not None
            bound = 2 * lipschitz * privacy.radius / count
            return bound, bound
        largest = self.bounds.get(privacy.norm, math.inf)
        proved = 2 * lipschitz * largest / count if math.isfinite(largest) and math.isfinite(lipschitz) else math.inf
        return 2 * privacy.lipschitz / count, proved

    def release(self, me: Any) -> Release:
        """The release of an agent's next update."""
        if len(me.data) == 0:
            return Release.public(me.agent, me.now, NO_DATA, recipients=len(me.neighbours))
        if me.updates % self._every:
            return Release.public(me.agent, me.now, POST_PROCESSING, recipients=len(me.neighbours))
        if self.privacy is None:
            return Release.plain(me.agent, me.now, NO_NOISE, recipients=len(me.neighbours))
        sensitivity, proved = self.sensitivities(len(me.data))
        own = self.plans[me.agent if len(self.plans) > 1 else 0]
        update = min(me.updates // self._every, len(own.multipliers) - 1)
        return Release(
            agent=me.agent,
            time=me.now,
            mechanism=self.privacy.mechanism,
            norm=self.privacy.norm,
            sensitivity=sensitivity,
            sensitivity_source=self.privacy.sensitivity,
            verified_sensitivity=proved,
            scale=float(own.multipliers[update]) * sensitivity,
            claimed_epsilon=float(own.epsilons[update]),
            claimed_delta=float(own.deltas[update]),
            recipients=len(me.neighbours),
            reason="" if math.isfinite(proved) else UNBOUNDED,
            dimension=self.task.dimension,
            unit=unit_of(self.privacy),
        )


def _varies(own: Plan) -> bool:
    return any(len(np.unique(each)) > 1 for each in (own.multipliers, own.epsilons, own.deltas))


def unit_of(privacy: Privacy | None) -> str:
    """What noise protects, ``record`` or ``agent``."""
    return privacy.unit if isinstance(privacy, GradientPrivacy) else "record"


def active(privacy: Privacy | None) -> bool:
    """True if there is any noise."""
    return privacy is not None and not privacy.noiseless


def check_rows(privacy: Privacy | None, shard: Shard, agent: int | str, norm: Norm | None = None) -> None:
    """Refuse an agent's rows outside the declared radius (``sensitivity: data_check``).

    The radius is meant in a norm, by default the mechanism's. Raises `InputError` with the row's norm.
    """
    if privacy is None or not active(privacy) or privacy.radius is None or not len(shard):
        return
    norm = norm or privacy.norm
    largest = float(norms(shard.features, norm).max())
    if largest > privacy.radius * (1 + 1e-12):
        raise InputError(
            f"agent {agent!r} has a row of {norm} norm {largest:.6g}, above the declared radius {privacy.radius:g}; "
            "normalise the features, declare a larger radius or use sensitivity: clip",
            field=("privacy", "radius"),
        )


def check_all_rows(
    privacy: Privacy | None, task: Task, *, radius: float | None = None, norm: Norm | None = None
) -> None:
    """`check_rows` for every agent's rows, which are clipped to an l2 radius where there is one."""
    if privacy is None or privacy.radius is None:
        return
    for agent, name in enumerate(task.ids):
        shard = task.shard(agent)
        if radius is not None:
            shard = Shard(clip_rows(shard.features, radius), shard.labels)
        check_rows(privacy, shard, name, norm)


def row_bounds(task: Task, radius: float | None) -> dict[str, float]:
    """Public bounds on the l1 and l2 norm of every row, given that rows are clipped to an l2 radius."""
    l2 = min(task.bounds.get("l2", math.inf), math.inf if radius is None else radius)
    l1 = min(task.bounds.get("l1", math.inf), math.sqrt(task.dimension) * l2)
    return {"l1": l1, "l2": l2}
