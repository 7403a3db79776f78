"""Local models made private by noise on the result (Chaudhuri, Monteleoni, Sarwate 2011, algorithm 1).

An agent's minimiser of L_i is released once, with noise; whatever is computed from it afterwards is post-processing.
Replacing one of m examples, whose gradients have an l2 norm of at most G, moves the gradient of L_i by at most 2 G / m;
L_i is 2 lambda_i-strongly convex, so its minimiser moves by at most G / (m lambda_i) in l2 (corollary 8), and by at
most sqrt(p) times that in l1, which Laplace noise needs. With lambda_i = 1 / m_i this is G however many examples an
agent has.

No computed minimiser is exact. Ours are within a public distance d of the exact ones (`OutputNoise.distance`), relative
to how far an example can move them and no smaller than rounding allows, so two of them are apart by at most 2 d more,
which is charged. If the solver should ever miss d, the release says so and nothing is verified.

``gamma`` noise has density proportional to exp(-|b| / scale) in the l2 norm, as in that paper; Laplace and Gaussian
noise are alternatives.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...agents.clipping import clip_rows
from ...agents.errors import InputError
from ...agents.losses import Hinge, Loss
from ...agents.optimisation.solvers import minimise_within
from ...agents.tables import Shard
from ...agents.tasks.task import Task
from ..base import Problem
from ..noise import UNBOUNDED, active, check_rows
from ..privacy.budget import Privacy
from ..privacy.mechanisms import Release
from ..privacy.plans import plan

SHARE = 1e-9
"""Distance from the exact minimiser, as a share of how far an example can move it."""
HINGE_SHARE = 1e-4
"""The same for the hinge loss, whose duality gap is of the order of the square of the distance."""
ROUNDING = 64 * 2.0**-52
"""What rounding leaves of a gradient, relative to the sizes that cancel in it, with some room."""
MISSED = "the local minimiser was not reached to the distance that is charged"
"""Why nothing is verified about a release whose solver failed."""


class OutputNoise:
    """Noise on the minimisers of the agents' own L_i, by an amount of privacy for one release.

    ``clip`` is the l2 norm that rows are clipped to, ``radius`` the l2 norm that they are checked against; with
    ``claimed``, ``lipschitz`` bounds an example's gradient. Raises `InputError` if more than one release is asked for,
    or nothing bounds how far a minimiser can move.
    """

    def __init__(self, privacy: Privacy, task: Task) -> None:
        self.privacy, self.task = privacy, task
        self._solved: dict[int, tuple[Shard, NDArray[np.float64], float]] = {}
        regularised = bool(np.all(task.regularisation[task.train.counts > 0] > 0))
        check_output_noise(privacy, regularised=regularised, loss=task.loss)

    def clipped(self, shard: Shard) -> Shard:
        """An agent's rows, clipped where the noise relies on it."""
        if self.privacy.clip is None:
            return shard
        return Shard(clip_rows(shard.features, self.privacy.clip), shard.labels)

    def sensitivities(self, agent: int) -> tuple[float, float]:
        """Return the sensitivity of an agent's minimiser to one of its examples, as assumed and as it can be proved.

        Both include the distance of computed minimisers from the exact ones. The agent has data.
        """
        task, privacy = self.task, self.privacy
        strength = int(task.train.counts[agent]) * float(task.regularisation[agent])
        stretch = math.sqrt(task.dimension) if privacy.norm == "l1" else 1.0
        inexact = 2.0 * stretch * self.distance(agent)
        proved = stretch * task.loss.lipschitz * self._largest / strength + inexact
        return (privacy.lipschitz / strength + inexact if privacy.sensitivity == "claimed" else proved), proved

    def distance(self, agent: int) -> float:
        """Bound on the l2 distance of an agent's computed minimiser from the exact one, from public numbers only.

        With slopes of at most L and rows of at most R, gradients have norms of at most G = L R, and the minimiser one
        of at most G / (2 lambda). Rounding of its scores changes slopes by the loss's curvature times as much, so it
        leaves a gradient of the order of eps G (1 + kappa), kappa = curvature R^2 / (2 lambda).
        """
        task, count = self.task, int(self.task.train.counts[agent])
        convexity = 2.0 * float(task.regularisation[agent])
        share, radius, gradient = SHARE, self._largest, self._largest * task.loss.lipschitz
        if not math.isfinite(gradient):
            radius, gradient = 0.0, self.privacy.lipschitz
        rounding = ROUNDING * gradient * (1.0 + task.loss.curvature * radius**2 / convexity) / convexity
        if isinstance(task.loss, Hinge):
            share, rounding = HINGE_SHARE, ROUNDING * gradient / convexity
            margin = radius * gradient / convexity
            if margin > 0.5:
                # Some rows may be at the kink, where rounding of margins leaves a gap, and with it the root of that.
                rounding += math.sqrt(2.0 * ROUNDING * (1.0 + margin) / convexity)
        return share * 2.0 * gradient / (count * convexity) + rounding

    @property
    def _largest(self) -> float:
        """Public bound on the l2 norm of every row; infinite where there is none."""
        return self.privacy.clip or self.privacy.radius or self.task.bounds.get("l2", math.inf)

    def release(self, agent: int, now: float, recipients: int) -> Release:
        """The release of an agent's local model; public for an agent without data."""
        if self.task.train.counts[agent] == 0:
            return Release.public(agent, now, "the agent has no data", recipients=recipients)
        sensitivity, proved = self.sensitivities(agent)
        reason = "" if math.isfinite(proved) else UNBOUNDED
        if not reason and not self._solve(agent, self.clipped(self.task.shard(agent)))[1] <= self.distance(agent):
            proved, reason = math.inf, MISSED
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
            reason=reason,
            dimension=self.task.dimension,
        )

    def model(self, problem: Problem, agent: int, shard: Shard) -> NDArray[np.float64]:
        """(p,) minimiser of L_i on an agent's rows as `clipped` gives them, with the noise of its release."""
        zero = np.zeros(self.task.dimension)
        if len(shard) == 0:
            return zero
        check_rows(self.privacy, shard, self.task.ids[agent], "l2")
        model, _ = self._solve(agent, shard)
        assert problem.stream is not None, "only a run draws noise"
        return self.release(agent, 0.0, 0).perturb(model, rng=problem.stream("output perturbation", agent))

    def _solve(self, agent: int, shard: Shard) -> tuple[NDArray[np.float64], float]:
        """(p,) minimiser of L_i on an agent's clipped rows, and its distance from the exact one; solved once."""
        rows, model, distance = self._solved.get(agent, (None, None, None))
        if rows is not None and model is not None and distance is not None and _same(rows, shard):
            return model, distance
        convexity = 2.0 * float(self.task.regularisation[agent])
        tolerance = self.distance(agent) * convexity
        if isinstance(self.task.loss, Hinge):
            # A gap of one row at the kink is at most its residual times its norm over m lambda.
            tolerance = min(tolerance, tolerance**2 * len(shard) / (8.0 * min(self._largest, 1e100)))
        model, distance = minimise_within(shard, self.task.loss, convexity, 0.5 * tolerance)
        self._solved[agent] = shard, model, distance
        return model, distance

    def models(self, problem: Problem) -> NDArray[np.float64]:
        """(n, p) `model` of all agents."""
        shards = [self.clipped(self.task.shard(agent)) for agent in range(self.task.agents)]
        return np.array([self.model(problem, agent, shard) for agent, shard in enumerate(shards)])


def check_output_noise(privacy: Privacy | None, *, regularised: bool, loss: Loss) -> None:
    """Refuse noise on local models for which nothing bounds how far one example can move them.

    `regularised` is whether the loss of every agent that has rows is. Raises `InputError` with a field of ``privacy``.
    """
    if privacy is None or not active(privacy):
        return
    if privacy.updates not in (None, 1):
        raise InputError("must be 1: a local model is released once", field=("privacy", "updates"))
    if not regularised:
        raise InputError(
            "noise on a local model needs a regularised loss: without regularisation one example may move the "
            "minimiser without bound",
            field=("privacy",),
        )
    if privacy.sensitivity != "claimed" and not math.isfinite(loss.lipschitz):
        raise InputError(
            f"{privacy.sensitivity} needs a loss with bounded slope, and {loss.name!r} has none",
            field=("privacy", "sensitivity"),
        )


def _same(one: Shard, other: Shard) -> bool:
    return np.array_equal(one.stored, other.stored) and np.array_equal(one.labels, other.labels)


def output_noise(privacy: Privacy | None, task: Task) -> OutputNoise | None:
    """The noise that a scenario asks for; None without any."""
    return OutputNoise(privacy, task) if privacy is not None and active(privacy) else None
