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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..base import Problem
from ..context import Context, check_length
from ..noise import UNBOUNDED
from ..privacy.budget import Target
from ..privacy.mechanisms import Release
from ..steps import batched, perturbed_minimiser
from ..steps.declarations import StepNoise, grown
from .consensus_admm import (
    EXACT,
    RoundsOfAdmm,
    curvature_of,
    linear_of,
    move_dual,
    penalty_of,
    per_agent,
)
from .penalty_noise import (
    Costs,
    PenaltyNoise,
    PerturbedAdmmParameters,
    check_penalty,
    check_verifiable,
    largest_alpha,
)


class PerturbedAdmm(RoundsOfAdmm):
    """M-ADMM with penalty perturbation; see the module's docstring."""

    Parameters = PerturbedAdmmParameters
    parameters: PerturbedAdmmParameters

    @classmethod
    @override
    def check_scenario(cls, parameters: PerturbedAdmmParameters, context: Context) -> None:
        super().check_scenario(parameters, context)
        task = context.task
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
        self.step_noise = self.round_noise = RoundNoise(self)

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """(11), (25), and broadcast."""
        move_dual(me)
        penalty = penalty_of(me)
        linear, curvature = linear_of(me, penalty), curvature_of(me, penalty)
        tolerance, influence = EXACT * me.loss_weight, 2 * penalty * me.degree
        me.model = perturbed_minimiser(me, me.loss_weight, curvature, linear, me.model, tolerance, influence)
        me.message = me.model

    def release(self, me: Any) -> Release:
        """The release of an agent's next model."""
        rows, degree = len(me.data), len(me.neighbours)
        if not rows or not degree:
            why = "the agent has no data" if not rows else "the agent has no neighbours to tell"
            return Release.public(me.agent, me.now, why, recipients=degree)
        number = me.updates + 1
        alpha = self.alpha(me.agent, number)
        claimed, proved = self.epsilons(me.agent, number, rows, degree)
        tolerated = f"a minimiser to a gradient of {self.iteration.local.tolerance:g}"
        return Release(
            agent=me.agent,
            time=me.now,
            mechanism="gamma",
            norm="l2",
            sensitivity=claimed / alpha,
            sensitivity_source="claimed",
            verified_sensitivity=proved / alpha,
            scale=self.round_noise.scale_of(me.agent, me.updates),
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
        return largest_alpha(tuple(costs.items()), target) if costs else 1.0

    @property
    def privacy(self) -> PenaltyNoise:
        """The noise, which says where epsilon is read and how claims add up."""
        return self.parameters.noise

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Inputs treated as public: local minimisers count as exact, though they are solved to a tolerance."""
        return (f"exact local minimisers (solved to a gradient of {self.iteration.local.tolerance:g})",)


class RoundNoise(StepNoise):
    """Noise of every round's objective, whose amount or price may grow from round to round."""

    def __init__(self, protocol: PerturbedAdmm) -> None:
        self.protocol = protocol

    @property
    @override
    def mechanism(self) -> str:
        return "gamma"

    @property
    @override
    def growth(self) -> NDArray[np.float64] | None:
        """(n,) factors by which noise scales grow from round to round; None if all rounds cost the same."""
        growth = self.protocol.costs.growth
        alike = (growth == 1.0).all() and (self.protocol.iteration.penalty_growth == 1.0).all()
        return None if alike else 1.0 / growth

    @override
    def scales(self) -> NDArray[np.float64]:
        """Noise scales of the first round."""
        return 1.0 / self.protocol.first_alphas[:, None]

    def scale_of(self, agent: int, updates: int) -> float:
        """Noise scale of an agent's round after so many others."""
        first, growth = 1.0 / self.protocol.first_alphas[[agent]], 1.0 / self.protocol.costs.growth[[agent]]
        return float(grown(first, growth, np.array([updates]))[0])

    @override
    def release(self, me: Any) -> Release:
        return self.protocol.release(me)
