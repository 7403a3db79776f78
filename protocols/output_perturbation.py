"""Local models made private by noise on the result (Chaudhuri, Monteleoni, Sarwate 2011, algorithm 1).

An agent's exact minimiser of L_i is released once, with noise; whatever is computed from it afterwards is
post-processing. Replacing one of m examples, whose gradients have an l2 norm of at most G, moves the gradient of L_i by
at most 2 G / m; L_i is 2 lambda_i-strongly convex, so its minimiser moves by at most G / (m lambda_i) in l2 (corollary
8), and by at most sqrt(p) times that in l1, which Laplace noise needs. With lambda_i = 1 / m_i this is G however many
examples an agent has. The minimiser is computed to a gradient norm of `TOLERANCE`, which the proof ignores (`ASSUMED`).

``gamma`` noise has density proportional to exp(-|b| / scale) in the l2 norm, as in that paper; Laplace and Gaussian
noise are alternatives.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..agents.clipping import clip_rows, norms
from ..agents.errors import InputError
from ..agents.solvers import minimise_local
from ..agents.tables import Shard
from ..agents.tasks.base import Task
from .base import Problem
from .noise import UNBOUNDED, active
from .privacy.budget import Privacy
from .privacy.mechanisms import Release
from .privacy.plans import plan

TOLERANCE = 1e-10
"""Gradient norm of L_i at which its minimiser counts as exact."""
ASSUMED = f"exact local minimisers (solved to a gradient of {TOLERANCE:g})"
"""What the proof takes for granted, as it is listed beside a verified epsilon."""


class OutputNoise:
    """Noise on the exact minimisers of the agents' own L_i.

    Parameters
    ----------
    privacy : Privacy
        An amount for one release. ``clip`` is the l2 norm that rows are clipped to, ``radius`` the l2 norm that they
        are checked against; with ``claimed``, ``lipschitz`` bounds an example's gradient.
    task : Task

    Raises
    ------
    InputError
        If more than one release is asked for, or nothing bounds how far a minimiser can move.
    """

    def __init__(self, privacy: Privacy, task: Task) -> None:
        self.privacy, self.task = privacy, task
        if privacy.updates not in (None, 1):
            raise InputError(
                f"{privacy.updates} must be 1: a local model is released once", field=("privacy", "updates")
            )
        if np.any(task.regularisation[task.train.counts > 0] <= 0):
            raise InputError(
                "noise on a local model needs a regularised loss: without regularisation one example may move the "
                "minimiser without bound",
                field=("privacy",),
            )
        if privacy.sensitivity != "claimed" and not math.isfinite(task.loss.lipschitz):
            raise InputError(
                f"{privacy.sensitivity} needs a loss with bounded slope, and {task.loss.name!r} has none",
                field=("privacy", "sensitivity"),
            )

    def clipped(self, shard: Shard) -> Shard:
        """An agent's rows, clipped where the noise relies on it."""
        if self.privacy.clip is None:
            return shard
        return Shard(clip_rows(shard.features, self.privacy.clip), shard.labels)

    def sensitivities(self, agent: int) -> tuple[float, float]:
        """How far one example of an agent with data can move its minimiser: as assumed, and as can be proved."""
        task, privacy = self.task, self.privacy
        largest = privacy.clip or privacy.radius or task.bounds.get("l2", math.inf)
        strength = int(task.train.counts[agent]) * float(task.regularisation[agent])
        stretch = math.sqrt(task.dimension) if privacy.norm == "l1" else 1.0
        proved = stretch * task.loss.lipschitz * largest / strength
        return (privacy.lipschitz / strength if privacy.sensitivity == "claimed" else proved), proved

    def release(self, agent: int, now: float, recipients: int) -> Release:
        """The release of an agent's local model; public for an agent without data."""
        if self.task.train.counts[agent] == 0:
            return Release.public(agent, now, "the agent has no data", recipients=recipients)
        sensitivity, proved = self.sensitivities(agent)
        cost = plan(self.privacy, np.ones(1), dimension=self.task.dimension)
        return Release(
            agent=agent,
            time=now,
            mechanism=self.privacy.mechanism,
            norm=self.privacy.norm,
            sensitivity=sensitivity,
            sensitivity_source=self.privacy.sensitivity,
            verified_sensitivity=proved,
            scale=float(cost.multipliers[0]) * sensitivity,
            claimed_epsilon=float(cost.epsilons[0]),
            claimed_delta=float(cost.deltas[0]),
            recipients=recipients,
            reason="" if math.isfinite(proved) else UNBOUNDED,
            dimension=self.task.dimension,
        )

    def model(self, problem: Problem, agent: int, shard: Shard) -> NDArray[np.float64]:
        """(p,) minimiser of L_i on an agent's rows as `clipped` gives them, with the noise of its release."""
        zero = np.zeros(self.task.dimension)
        if len(shard) == 0:
            return zero
        self._check_rows(shard, agent)
        curvature = 2.0 * float(self.task.regularisation[agent])
        exact, _ = minimise_local(
            shard, self.task.loss, weight=1.0, curvature=curvature, linear=zero, start=zero, tolerance=TOLERANCE
        )
        assert problem.stream is not None, "only a run draws noise"
        return self.release(agent, 0.0, 0).perturb(exact, rng=problem.stream("output perturbation", agent))

    def models(self, problem: Problem) -> NDArray[np.float64]:
        """(n, p) `model` of all agents."""
        shards = [self.clipped(self.task.shard(agent)) for agent in range(self.task.agents)]
        return np.array([self.model(problem, agent, shard) for agent, shard in enumerate(shards)])

    def _check_rows(self, shard: Shard, agent: int) -> None:
        if self.privacy.radius is None:
            return
        largest = float(norms(shard.features).max())
        if largest > self.privacy.radius * (1 + 1e-12):
            raise InputError(
                f"agent {self.task.ids[agent]!r} has a row of l2 norm {largest:.6g}, above the declared radius "
                f"{self.privacy.radius:g}; normalise the features, declare a larger radius or use sensitivity: clip",
                field=("privacy", "radius"),
            )


def output_noise(privacy: Privacy | None, task: Task) -> OutputNoise | None:
    """The noise that a scenario asks for; None without any."""
    return OutputNoise(privacy, task) if privacy is not None and active(privacy) else None
