"""Noise of the rounds of perturbed ADMM, and its cost in epsilon (Zhang et al. 2018, theorem 4.1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.errors import FieldError, InputError
from ...agents.parameters import Factor, Positive
from ..base import Problem
from ..privacy.accounting import Charge, verified
from ..privacy.budget import Amount, PrintedNoise, Target, Total
from ..privacy.calibration import smallest_multiplier
from .consensus_admm import ConsensusParameters, Iteration, per_agent


class PenaltyNoise(PrintedNoise, frozen=True):
    """Gamma noise in the penalty, charged round by round as theorem 4.1 has it."""

    alpha: Positive | list[Positive] | None = None
    """alpha_i(1), the inverse scale of the first round's noise; larger is less noise, and costs more."""
    target: Target | None = None
    """Verified epsilon that every agent's alpha_i(1) is calibrated to, over ``updates`` releases; instead of alpha."""
    claimed: Amount | None = None
    """P of theorem 4.1 after ``updates`` releases that every agent's alpha_i(1) follows from; instead of alpha."""
    growth: Factor | list[Factor] = 1.0
    """q_2: alpha of round t is alpha_i(1) times this to the power of t - 1."""

    mechanism = "gamma"
    claimed_by = "basic_composition"

    @model_validator(mode="after")
    def _amount_is_given_once(self) -> PenaltyNoise:
        if sum(given is not None for given in (self.alpha, self.target, self.claimed)) != 1:
            raise FieldError("give exactly one of alpha, target and claimed")
        if self.alpha is None and self.updates is None:
            amount = "target" if self.claimed is None else "claimed"
            raise FieldError(f"is required with {amount}, which is spread over so many releases", "updates")
        return self

    @override
    def scaled_to(self, total: Total) -> dict[str, Any]:
        if total.verified is None:
            return {"alpha": None, "target": None, "claimed": total.claimed}
        return {"alpha": None, "claimed": None, "target": {"verified": total.verified, "delta": total.delta}}

    @property
    def reported_delta(self) -> float:
        """Delta at which epsilons are reported."""
        if self.delta is not None:
            return self.delta
        return 1e-5 if self.target is None else self.target.delta


class PerturbedAdmmParameters(ConsensusParameters):
    """Private decentralised ADMM whose penalties carry the noise (Zhang et al. 2018, algorithm 1)."""

    kind: Literal["perturbed_admm"]
    noise: PenaltyNoise = Field(examples=[{"target": {"verified": 8.0, "delta": 1e-4}, "updates": 20}])
    """How much noise there is, and where epsilon is read."""


class Costs:
    """Privacy costs of rounds, in epsilon: the condition under which they hold, and alpha's (n,) growth in each."""

    def __init__(self, parameters: PerturbedAdmmParameters, problem: Problem) -> None:
        self.parameters, self.problem = parameters, problem
        self.iteration = Iteration(parameters, problem)
        self.growth = per_agent(parameters.noise.growth, problem.task.agents, "noise", "growth")

    def check(self, agent: int) -> None:
        """The condition of algorithm 1, 2 c_1 < (B_i/C) (rho/N + 2 theta V_i), and eta_i >= theta."""
        task, iteration = self.problem.task, self.iteration
        rows, degree = int(task.train.counts[agent]), int(self.problem.graph.degrees[agent])
        if not rows or not degree:
            return
        penalty, dual = iteration.penalty(agent, 1), iteration.dual_step(agent, 1)
        check_penalty(penalty, dual, f" for agent {task.ids[agent]!r}")
        left, right = 2 * task.loss.curvature, rows / iteration.local.weight * iteration.local.curvature(degree, dual)
        if not left < right:
            raise InputError(
                f"theorem 4.1 asks for 2 c1 < (B/C) (rho/N + 2 theta V), and agent {task.ids[agent]!r} with B = {rows} "
                f"rows and V = {degree} neighbours has {left:g} on the left and {right:g} on the right; take a smaller "
                "loss_weight or a larger dual_step",
                field=("loss_weight",),
            )

    def proved(self, agent: int, number: int, rows: int, degree: int) -> tuple[float, float]:
        """Return the verified epsilon of a round in two parts: of the noise, per alpha, and of the determinant."""
        task, penalty = self.problem.task, self.iteration.penalty(agent, number)
        share, radius = self.parameters.loss_weight / rows, task.bounds.get("l2", math.inf)
        row = share * task.loss.curvature * radius**2
        determinant = math.log1p(row / self.iteration.local.curvature(degree, penalty))
        return share * radius * task.loss.lipschitz / (penalty * degree), determinant

    def claimed(self, agent: int, number: int, rows: int, degree: int) -> tuple[float, float]:
        """Return the epsilon that theorem 4.1 claims for a round in two parts: per alpha, and independent of alpha."""
        per_alpha = self.parameters.loss_weight / rows / (self.iteration.penalty(agent, number) * degree)
        return per_alpha, 1.4 * self.problem.task.loss.curvature * per_alpha

    def alpha_of_claim(self, agent: int, claim: float) -> float:
        """alpha_i(1) at which P of the planned releases is what is claimed; 1 for an agent that releases nothing.

        Raises `InputError` if no alpha > 0 gives it.
        """
        rows, degree = int(self.problem.task.train.counts[agent]), int(self.problem.graph.degrees[agent])
        if not rows or not degree:
            return 1.0
        rounds = [self.claimed(agent, 1 + rank, rows, degree) for rank in range(self.parameters.noise.updates or 0)]
        least = math.fsum(fixed for _, fixed in rounds)
        if least >= claim:
            raise InputError(
                f"cannot be reached by any noise: theorem 4.1 claims {least:.4g} for the determinants of {len(rounds)} "
                f"rounds of agent {self.problem.task.ids[agent]!r} alone; take fewer updates, a smaller loss_weight or "
                "a larger penalty",
                field=("noise", "claimed"),
            )
        growth = float(self.growth[agent])
        return (claim - least) / math.fsum(each * growth**rank for rank, (each, _) in enumerate(rounds))

    def of_rounds(self, agent: int, target: Target) -> Counter[tuple[float, float]]:
        """Count the rounds that cost ``noise * alpha + determinant``, by those two; none if an agent releases nothing.

        Raises `InputError` if no noise reaches the target.
        """
        rows, degree = int(self.problem.task.train.counts[agent]), int(self.problem.graph.degrees[agent])
        if not rows or not degree:
            return Counter()
        rounds = range(1, (self.parameters.noise.updates or 0) + 1)
        growth = float(self.growth[agent])
        proved = [self.proved(agent, number, rows, degree) for number in rounds]
        check_verifiable(all(math.isfinite(number) for pair in proved for number in pair))
        costs = Counter((noise * growth**rank, determinant) for rank, (noise, determinant) in enumerate(proved))
        least = _verified(costs, 0.0, target.delta)
        if least >= target.verified:
            raise InputError(
                f"cannot be reached by any noise: the determinants of {len(rounds)} rounds of agent "
                f"{self.problem.task.ids[agent]!r} alone are verified as {least:.4g}; take fewer updates, a smaller "
                "loss_weight or a larger penalty",
                field=("noise", "target", "verified"),
            )
        return costs


def check_penalty(penalty: float, dual: float, where: str = "") -> None:
    """Raise an `InputError` unless theorem 4.1 holds for a penalty eta and a dual step theta."""
    if penalty < dual:
        raise InputError(
            f"is {penalty:g}{where}, below its dual_step {dual:g}; theorem 4.1 holds for penalties that are at least "
            "the dual step",
            field=("penalty",),
        )


def check_verifiable(finite: bool) -> None:
    """Raise an `InputError` unless what rounds cost can be verified."""
    if not finite:
        raise InputError(
            "needs rows of a bounded norm and a loss of bounded slope, from which epsilon could be verified",
            field=("noise", "target"),
        )


def _verified(costs: Mapping[tuple[float, float], int], alpha: float, delta: float) -> float:
    """Verified epsilon of rounds that cost ``noise * alpha + determinant`` each, counted by those two."""
    counts: Counter[Charge] = Counter()
    for (noise, determinant), times in costs.items():
        epsilon = noise * alpha + determinant
        counts[Charge("gamma", 1 / epsilon if epsilon else math.inf, 1.0, math.inf, 0.0, 0.0)] += times
    return verified(counts, delta)


@lru_cache(maxsize=4096)
def largest_alpha(costs: tuple[tuple[tuple[float, float], int], ...], target: Target) -> float:
    """The largest alpha_i(1) at which rounds that cost so much are verified as the target."""
    rounds = dict(costs)
    return 1 / smallest_multiplier(lambda scale: _verified(rounds, 1 / scale, target.delta), target.verified)
