"""From a scenario's ``privacy`` to releases: sensitivities, noise scales and the budget of every update.

Shared by all protocols that perturb the mean gradient of an agent's own examples. Replacing one of m examples moves
that mean by at most 2 B / m, where B bounds the norm of one example's gradient (Bellet et al. 2018, lemma 1; the
factor 1 / m belongs into remark 4, too).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..agents.clipping import clip_rows, norms
from ..agents.errors import InputError
from ..agents.losses import clipped_gradient, local_gradient
from ..agents.tables import Shard
from ..agents.tasks.base import Task
from .base import View
from .privacy.budget import Privacy
from .privacy.mechanisms import Norm, Release
from .privacy.plans import Plan, plan
from .surroundings import check_slope

UNBOUNDED = "nothing bounds how far one example moves a gradient"
"""Why nothing is verified about noise for a claimed sensitivity on such a task."""


class GradientNoise:
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
    """

    def __init__(
        self,
        privacy: Privacy | None,
        task: Task,
        *,
        weights: NDArray[np.float64] | None = None,
        radius: float | None = None,
    ) -> None:
        self.privacy = privacy if active(privacy) else None
        self.task = task
        self.bounds = row_bounds(task, radius)
        self.plans: list[Plan] = []
        if self.privacy is not None:
            rows = np.atleast_2d(np.ones(1) if weights is None else weights)
            self.plans = [plan(self.privacy, row, dimension=task.dimension) for row in rows]
        self._check()

    def _check(self) -> None:
        check_slope(self.privacy, self.task.loss)

    def check_rows(self, shard: Shard, agent: int | str) -> None:
        """See the function."""
        check_rows(self.privacy, shard, agent)

    def sensitivities(self, count: int) -> tuple[float, float]:
        """What the noise is scaled for, and what can be proved, for an agent with `count` examples."""
        privacy, lipschitz = self.privacy, self.task.loss.lipschitz
        assert privacy is not None
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

    def release(self, view: View) -> Release:
        """The release of an agent's next update."""
        if len(view.data) == 0:
            return Release.public(view.agent, view.now, "the agent has no data", recipients=len(view.neighbours))
        if self.privacy is None:
            return Release.plain(view.agent, view.now, "no noise", recipients=len(view.neighbours))
        sensitivity, proved = self.sensitivities(len(view.data))
        own = self.plans[view.agent if len(self.plans) > 1 else 0]
        update = min(view.updates, len(own.multipliers) - 1)
        return Release(
            agent=view.agent,
            time=view.now,
            mechanism=self.privacy.mechanism,
            norm=self.privacy.norm,
            sensitivity=sensitivity,
            sensitivity_source=self.privacy.sensitivity,
            verified_sensitivity=proved,
            scale=float(own.multipliers[update]) * sensitivity,
            claimed_epsilon=float(own.epsilons[update]),
            claimed_delta=float(own.deltas[update]),
            recipients=len(view.neighbours),
            reason="" if math.isfinite(proved) else UNBOUNDED,
            dimension=self.task.dimension,
        )

    def gradient(self, model: NDArray[np.float64], view: View) -> NDArray[np.float64]:
        """(p,) gradient of the agent's local objective, its examples clipped where the noise relies on it."""
        if self.privacy is not None and self.privacy.sensitivity == "clip":
            assert self.privacy.clip is not None
            return clipped_gradient(
                model, view.data, self.task.loss, view.regularisation, self.privacy.norm, self.privacy.clip
            )
        return local_gradient(model, view.data, self.task.loss, view.regularisation)


def active(privacy: Privacy | None) -> bool:
    """Whether there is noise at all."""
    return privacy is not None and not privacy.noiseless


def check_rows(privacy: Privacy | None, shard: Shard, agent: int | str, norm: Norm | None = None) -> None:
    """Refuse rows outside the declared radius (``sensitivity: data_check``).

    Parameters
    ----------
    privacy : Privacy or None
    shard : Shard
        An agent's rows.
    agent : int or str
        What the agent is called.
    norm : {"l1", "l2"}, optional
        In which the radius is meant; by default the mechanism's.

    Raises
    ------
    InputError
        With the row's norm.
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
