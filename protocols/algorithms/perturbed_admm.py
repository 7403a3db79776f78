"""Private consensus ADMM by penalty perturbation, and by dual variable perturbation (Zhang, Khalili, Liu 2018).

=================  ==================================================================================
equation           here
=================  ==================================================================================
(24)-(25)          ``step``: in the penalty, f is shifted by noise of density proportional to exp(-alpha_i(t) |eps|)
after (25)         the same as 2 eta_i(t) V_i eps'f added to (10): ``step``
(10), (11)         `hushnet.protocols.algorithms.consensus_admm`; (11) takes models that were sent, and nothing else
theorem 4.1        round t claims C (1.4 c_1 + alpha_i(t)) / (eta_i(t) V_i B_i); claims add up to P(t)
section 5.2        eta_i(t) = eta_i(1) q_1^(t-1) is ``penalty_growth``, alpha_i(t) = alpha_i(1) q_2^(t-1) is
                   ``noise.growth``
=================  ==================================================================================

Dual variable perturbation (Zhang, Zhu 2017) is the case of ``penalty`` = ``dual_step`` without growth: noise eta V eps
on lambda.

Is theorem 4.1 sound? Yes, round by round and in all. Given what was sent before, f -> eps is one to one, as the
problem is strongly convex, so replacing one of B rows changes the log density of f by two terms. The noise that leads
to f moves by at most (C/B) 2 R L / (2 eta V), for rows of norm at most R and slopes of at most L; with R = L = 1 this
is the paper's alpha C / (eta V B). The Jacobian is 1/(2 eta V) times a matrix that is at least kappa = rho/N + 2 eta V
and in which one row is a term of rank one and size at most s = C c_1 R^2 / B. Taking it out divides the determinant by
at most 1 + s/kappa and putting another one in does not lessen it. The theorem bounds the logarithm by 2.8 s / (2 eta
V), under the condition 2 s < rho/N + 2 theta V and with eta >= theta, both of which are checked here; the verified
epsilon of a round takes log(1 + s/kappa), which needs no condition and is smaller. Rounds compose adaptively. Whatever
else an agent does with what was sent is post-processing, which is why the dual variables are made of sent models only.
Other agents' rows do not enter an agent's release, so agents do not add up.

What this rests on: rows of norm at most R by the *definition* of the task's data, B public (replace-one), and exact
minimisers. Ours have a gradient of at most 1e-10 C, so that they are exact for noise that differs by at most
1e-10 C / (2 eta V); the tolerance is named in every release and listed beside the verified epsilon.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.errors import FieldError, InputError
from ...agents.parameters import Factor, Positive
from ..base import Problem, View
from ..noise import UNBOUNDED
from ..privacy.accounting import Charge, verified
from ..privacy.budget import Amount, PrintedNoise, Target, Total
from ..privacy.calibration import smallest_multiplier
from ..privacy.mechanisms import Release
from ..steps import perturbed_minimiser
from ..steps.noise import StepNoise
from ..surroundings import Surroundings, check_length
from .consensus_admm import (
    EXACT,
    ConsensusParameters,
    Iteration,
    RoundsOfAdmm,
    curvature_of,
    linear_of,
    move_dual,
    penalty_of,
    per_agent,
)


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


class PerturbedAdmm(RoundsOfAdmm):
    """M-ADMM with penalty perturbation; see the module's docstring.

    Examples
    --------
    >>> from hushnet.simulator.contract.bench import example
    >>> ledger = example(PerturbedAdmm, noise={"alpha": 3.0}).ledger
    >>> bool((ledger.epsilon("verified", 1e-5) < 100).all())
    True
    """

    Parameters = PerturbedAdmmParameters
    parameters: PerturbedAdmmParameters

    @classmethod
    @override
    def check_scenario(cls, parameters: PerturbedAdmmParameters, surroundings: Surroundings) -> None:
        super().check_scenario(parameters, surroundings)
        task = surroundings.task
        check_length(parameters.noise.alpha, task.agents, "noise", "alpha")
        check_length(parameters.noise.growth, task.agents, "noise", "growth")
        if parameters.noise.target is not None:
            check_verifiable(task.bounds("l2") and math.isfinite(task.loss.lipschitz))
        penalty, dual = parameters.penalty, parameters.dual_step
        if not (isinstance(penalty, list) or isinstance(dual, list)):
            check_penalty(penalty, dual)

    @classmethod
    @override
    def check_problem(cls, parameters: PerturbedAdmmParameters, problem: Problem) -> None:
        """Check algorithm 1's condition, and whether any noise reaches the target."""
        costs = Costs(parameters, problem)
        for agent in range(problem.task.agents):
            costs.check(agent)
            if parameters.noise.target is not None:
                costs.of_rounds(agent, parameters.noise.target)
            if parameters.noise.claimed is not None:
                costs.alpha_of_claim(agent, parameters.noise.claimed)

    def prepare(self) -> None:
        """Penalties, dual steps and noise of all agents, and the theorem's condition."""
        agents, noise = range(self.problem.task.agents), self.parameters.noise
        self.costs = Costs(self.parameters, self.problem)
        self.iteration = self.costs.iteration
        if noise.alpha is not None:
            self._first_alpha = per_agent(noise.alpha, len(agents), "noise", "alpha")
        for agent in agents:
            self.costs.check(agent)
        if noise.target is not None:
            self._first_alpha = np.array([self._calibrated(noise.target, agent) for agent in agents])
        if noise.claimed is not None:
            self._first_alpha = np.array([self.costs.alpha_of_claim(agent, noise.claimed) for agent in agents])
        self.step_noise = RoundNoise(self)

    @staticmethod
    def step(me: Any) -> None:
        """(11), (25), and broadcast."""
        move_dual(me)
        penalty = penalty_of(me)
        linear, curvature = linear_of(me, penalty), curvature_of(me, penalty)
        tolerance, influence = EXACT * me.loss_weight, 2 * penalty * me.degree
        me.model = perturbed_minimiser(me, me.loss_weight, curvature, linear, me.model, tolerance, influence)
        if me.degree > 0:
            me.message = me.model

    def release(self, view: View) -> Release:
        """The release of an agent's next model."""
        rows, degree = len(view.data), len(view.neighbours)
        if not rows or not degree:
            why = "the agent has no data" if not rows else "the agent has no neighbours to tell"
            return Release.public(view.agent, view.now, why, recipients=degree)
        number = view.updates + 1
        alpha = self.alpha(view.agent, number)
        claimed, proved = self.epsilons(view.agent, number, rows, degree)
        tolerated = f"a minimiser to a gradient of {self.iteration.local.tolerance:g}"
        return Release(
            agent=view.agent,
            time=view.now,
            mechanism="gamma",
            norm="l2",
            sensitivity=claimed / alpha,
            sensitivity_source="claimed",
            verified_sensitivity=proved / alpha,
            scale=1 / alpha,
            claimed_epsilon=claimed,
            claimed_delta=0.0,
            recipients=degree,
            reason=tolerated if math.isfinite(proved) else UNBOUNDED,
        )

    def alpha(self, agent: int, number: int) -> float:
        """alpha_i(t), t = 1, 2, ..."""
        return float(self._first_alpha[agent] * self.costs.growth[agent] ** (number - 1))

    @property
    def first_alphas(self) -> NDArray[np.float64]:
        """(n,) alpha_i(1)."""
        return self._first_alpha

    def epsilons(self, agent: int, number: int, rows: int, degree: int) -> tuple[float, float]:
        """Epsilon of an agent's round t = 1, 2, ... as theorem 4.1 has it, and as the module's docstring proves it.

        Both cover all that noise and Jacobian do, so that the ledger sees sensitivities of epsilon / alpha.
        """
        alpha = self.alpha(agent, number)
        per_alpha, fixed = self.costs.claimed(agent, number, rows, degree)
        noise, determinant = self.costs.proved(agent, number, rows, degree)
        return per_alpha * alpha + fixed, noise * alpha + determinant

    def _calibrated(self, target: Target, agent: int) -> float:
        """alpha_i(1) at which an agent's planned releases reach the target; any for one that releases nothing."""
        costs = self.costs.of_rounds(agent, target)
        return _largest_alpha(tuple(costs.items()), target) if costs else 1.0

    @property
    def privacy(self) -> PenaltyNoise:
        """The noise, which says where epsilon is read and how claims add up."""
        return self.parameters.noise

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """How far local minimisers are from exact ones."""
        return (f"exact local minimisers (solved to a gradient of {self.iteration.local.tolerance:g})",)


class RoundNoise(StepNoise):
    """Noise of every round's objective, whose amount or price may grow from round to round.

    Parameters
    ----------
    protocol : PerturbedAdmm
    """

    def __init__(self, protocol: PerturbedAdmm) -> None:
        self.protocol = protocol

    @property
    @override
    def mechanism(self) -> str:
        return "gamma"

    @property
    @override
    def growth(self) -> NDArray[np.float64] | None:
        """How noise scales grow from round to round; None if all rounds cost the same."""
        growth = self.protocol.costs.growth
        alike = (growth == 1.0).all() and (self.protocol.iteration.penalty_growth == 1.0).all()
        return None if alike else 1.0 / growth

    @override
    def scales(self) -> NDArray[np.float64]:
        """Noise scales of the first round."""
        return 1.0 / self.protocol.first_alphas[:, None]

    @override
    def release(self, view: View) -> Release:
        return self.protocol.release(view)


class Costs:
    """What rounds cost, in epsilon: a condition for it, and what is known before alpha is.

    Parameters
    ----------
    parameters : PerturbedAdmmParameters
    problem : Problem

    Attributes
    ----------
    iteration : Iteration
    growth : (n,) float64
        Of alpha, from round to round.
    """

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
        """What a round's noise adds to its verified epsilon per alpha, and what the determinant adds."""
        task, penalty = self.problem.task, self.iteration.penalty(agent, number)
        share, radius = self.parameters.loss_weight / rows, task.bounds.get("l2", math.inf)
        row = share * task.loss.curvature * radius**2
        determinant = math.log1p(row / self.iteration.local.curvature(degree, penalty))
        return share * radius * task.loss.lipschitz / (penalty * degree), determinant

    def claimed(self, agent: int, number: int, rows: int, degree: int) -> tuple[float, float]:
        """What theorem 4.1 claims of a round: per alpha, and whatever alpha is."""
        per_alpha = self.parameters.loss_weight / rows / (self.iteration.penalty(agent, number) * degree)
        return per_alpha, 1.4 * self.problem.task.loss.curvature * per_alpha

    def alpha_of_claim(self, agent: int, claim: float) -> float:
        """alpha_i(1) at which P of the planned releases is what is claimed; 1 for an agent that releases nothing.

        Raises
        ------
        InputError
            If no alpha > 0 gives it.
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
        """How often a round costs ``noise * alpha + determinant``, by those two; none for one that releases nothing.

        Raises
        ------
        InputError
            If no noise reaches the target.
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
def _largest_alpha(costs: tuple[tuple[tuple[float, float], int], ...], target: Target) -> float:
    rounds = dict(costs)
    return 1 / smallest_multiplier(lambda scale: _verified(rounds, 1 / scale, target.delta), target.verified)
