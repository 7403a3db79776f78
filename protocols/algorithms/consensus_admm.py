"""Consensus ADMM with private penalties: M-ADMM, and conventional decentralised ADMM (Zhang, Khalili, Liu 2018).

Agents find one model f that minimises problem (1), sum_i (C/B_i) sum_n L(y f'x) + rho R(f) with R(f) = |f|^2 / 2, by
solving a problem of their own in every round and telling its solution to their V_i neighbours.

=================  ==================================================================================
equation           here
=================  ==================================================================================
(2), O(f, D_i)     ``loss_weight`` C times the agent's mean loss, plus (rho/N) |f|^2 / 2
(10), primal       ``step``: argmin O(f, D_i) + 2 lambda_i'f + eta_i(t) sum_j |f - (f_i + f_j)/2|^2
(11), dual         `move_dual`: lambda_i += (theta/2) sum_j (f_i - f_j)
(11), summed       `Iteration.invariants`: sum_i lambda_i / theta_i = 0 between agents of one round
(8)-(9)            the same with eta = theta throughout, which is the default
section 5.1        eta_i(t) = eta_i(1) q_i^(t-1): ``penalty`` and ``penalty_growth``
=================  ==================================================================================

Round t begins with (11) from the models of round t - 1, then solves (10); all start from 0, where (11) changes nothing.
(10) is solved by Newton's method to a gradient of at most 1e-10 C. The task's lambda_i has no part: rho stands for it.

Where we depart, and what to expect: theorem 3.1 asks for bounded penalties with eta_i(t+1) >= eta_i(t) >= theta. Those
that grow geometrically are not bounded: the iterates freeze before they reach the optimum. ``dual_step`` may differ
between agents, as in the paper's figure 1a, although the duals then no longer sum to 0: what agents agree on is the
minimiser of another problem, sum_i O(f, D_i) / theta_i.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.objectives.consensus_objective import ConsensusObjective
from ...agents.objectives.objectives import Objective
from ...agents.parameters import Growth, Positive
from ...agents.tasks.task import Task
from ..base import Layout, MessageKind, Problem, Protocol, ProtocolParameters, PublicStart, Traits
from ..context import Context, check_length, check_newton
from ..invariants import Declared, Instant, Invariant, Where, ahead_by_one, by_row, largest, last_sent_is_kept
from ..privacy.mechanisms import Release
from ..steps import Constants, batched, heard_sum, minimised

EXACT = 1e-10
"""A local problem counts as solved once its gradient is below this times C."""


class ProblemParameters(ProtocolParameters):
    """Problem (1), which all forms of consensus ADMM solve."""

    loss_weight: Positive = 1.0
    """C, what an agent's mean loss counts against the regulariser; the paper wants at most the rows of every agent."""
    rho: Positive = 1.0
    """Weight of the regulariser |f|^2 / 2, of which every agent takes an equal share."""


class ConsensusParameters(ProblemParameters):
    """Parameters shared by the synchronous forms of consensus ADMM; a list gives one value per agent."""

    penalty: Positive | list[Positive] = 0.5
    """eta_i(1), how much the first round's model is held to its neighbours'."""
    penalty_growth: Growth | list[Growth] = 1.0
    """q_i: the penalty of round t is eta_i(1) q_i^(t-1)."""
    dual_step: Positive | list[Positive] = 0.5
    """theta_i(1), step size of the dual variables; the optimum is met only if it is the same for all agents."""
    dual_step_growth: Growth | list[Growth] = 1.0
    """The dual step of round t is theta_i(1) times this to the power of t - 1."""


class RoundsOfAdmm(Protocol):
    """Rounds of M-ADMM, with or without noise: their state, start, objective and invariants."""

    learns = "linear"
    parameters: ConsensusParameters
    traits = Traits(trigger="round", inbox="per_round", needs_both_ends=True, instead="edge_consensus_admm")
    iteration: Iteration

    @classmethod
    @override
    def check_scenario(cls, parameters: Any, context: Context) -> None:
        task = context.task
        check_newton(task.loss, task.kind)
        for name in ("penalty", "penalty_growth", "dual_step", "dual_step_growth"):
            check_length(getattr(parameters, name), task.agents, name)

    def layout(self) -> Layout:
        """Model f_i, dual variable lambda_i and the model before of each agent; one broadcast kind."""
        return Iteration.layout(self.problem.task.dimension)

    def public_start(self) -> PublicStart:
        """f_i(0) = 0 and lambda_i(0) = 0."""
        return PublicStart(sent={"model": "model"}, why="the start is 0")

    def constants(self) -> Constants:
        """Penalties, dual steps and the agents' share of the regulariser."""
        return self.iteration.constants()

    def objective(self) -> Objective:
        """Problem (2), whose minimum under consensus is that of (1)."""
        return self.iteration.local.objective

    def invariants(self) -> Declared:
        """Invariants, with or without noise: duals keep their sum, and models are as they were sent."""
        return self.iteration.invariants()


class ConsensusAdmmParameters(ConsensusParameters):
    """Decentralised ADMM for one common model, with a penalty of its own for every agent (Zhang et al. 2018)."""

    kind: Literal["consensus_admm"]


class ConsensusAdmm(RoundsOfAdmm):
    """M-ADMM without noise; see the module's docstring."""

    Parameters = ConsensusAdmmParameters
    parameters: ConsensusAdmmParameters

    def prepare(self) -> None:
        """Penalties and dual steps of all agents."""
        self.iteration = Iteration(self.parameters, self.problem)

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """(11), (10), and broadcast."""
        move_dual(me)
        penalty = penalty_of(me)
        linear = linear_of(me, penalty)
        me.model = minimised(me, me.loss_weight, curvature_of(me, penalty), linear, me.model, EXACT * me.loss_weight)
        me.message = me.model

    def release(self, me: Any) -> Release:
        """Minimisers without noise."""
        return release_of_minimiser(me)


class LocalProblem:
    """O(f, D_i) of (2), and what is known of it before a run: C is its ``weight``, rho/N the agent's ``share``.

    Raises `InputError` if the loss is not smooth.
    """

    def __init__(self, parameters: ProblemParameters, task: Task) -> None:
        check_newton(task.loss, task.name)
        self.weight, self.share = parameters.loss_weight, parameters.rho / task.agents
        self.objective = ConsensusObjective(task, parameters.loss_weight, parameters.rho)

    @property
    def tolerance(self) -> float:
        """Norm of a local problem's gradient at what counts as its solution."""
        return EXACT * self.weight

    def curvature(self, degree: int, penalty: float) -> float:
        """Strong convexity rho/N + 2 eta_i V_i of the problem (10), apart from the loss."""
        return self.share + 2 * penalty * degree


def release_of_minimiser(me: Any) -> Release:
    """Return the release of a minimiser over an agent's samples, which has no noise."""
    if not len(me.data):
        return Release.public(me.agent, me.now, "no data", recipients=len(me.neighbours))
    return Release.plain(me.agent, me.now, "a minimiser over the agent's rows", recipients=len(me.neighbours))


def move_dual(me: Any) -> None:
    """(11) with the models of the round before; both ends of every edge have sent theirs."""
    me.before = me.model
    dual_step = me.dual_step * me.dual_step_growth ** (me.round - 2)
    me.dual = me.dual + 0.5 * dual_step * (me.degree * me.model - heard_sum(me))


def penalty_of(me: Any) -> float:
    """eta_i(t) of the present round."""
    return me.penalty * me.penalty_growth ** (me.round - 1)


def curvature_of(me: Any, penalty: float) -> float:
    """strong convexity rho/N + 2 eta_i V_i of the problem (10), apart from the loss."""
    return me.share + 2 * penalty * me.degree


def linear_of(me: Any, penalty: float) -> NDArray[np.float64]:
    """b of (10) as a problem O(f, D_i) + eta V_i |f|^2 - b'f."""
    return penalty * (me.degree * me.model + heard_sum(me)) - 2 * me.dual


class Iteration:
    """The mathematics of a round, with or without noise; (n,) ``penalty_growth`` is q_i.

    Raises `InputError` if a list does not have one value per agent, or the loss is not smooth.
    """

    def __init__(self, parameters: ConsensusParameters, problem: Problem) -> None:
        task = problem.task
        self.local, self.dimension = LocalProblem(parameters, task), task.dimension
        self._first_penalty = per_agent(parameters.penalty, task.agents, "penalty")
        self.penalty_growth = per_agent(parameters.penalty_growth, task.agents, "penalty_growth")
        self._first_dual = per_agent(parameters.dual_step, task.agents, "dual_step")
        self._dual_growth = per_agent(parameters.dual_step_growth, task.agents, "dual_step_growth")

    @staticmethod
    def layout(p: int) -> Layout:
        """Model, dual variable and the model of the round before of each agent; one broadcast kind."""
        return Layout(agent={"model": p, "dual": p, "before": p}, messages={"model": MessageKind(p, mirrors="model")})

    def penalty(self, agent: int, number: int) -> float:
        """eta_i(t), t = 1, 2, ..."""
        return float(self._first_penalty[agent] * self.penalty_growth[agent] ** (number - 1))

    def dual_step(self, agent: int, number: int) -> float:
        """theta_i(t), t = 1, 2, ..."""
        return float(self._first_dual[agent] * self._dual_growth[agent] ** (number - 1))

    def constants(self) -> Constants:
        """Penalties and dual steps of the first round with their growth, and the share of the regulariser."""
        return Constants(
            run={"share": self.local.share},
            agent={
                "penalty": self._first_penalty,
                "penalty_growth": self.penalty_growth,
                "dual_step": self._first_dual,
                "dual_step_growth": self._dual_growth,
            },
        )

    def invariants(self) -> tuple[Invariant, ...]:
        """(11) keeps sum_i lambda_i / theta_i, unless dual steps grow at paces of their own; and the last model sent.

        An end that is a round ahead of the other has added what the other has yet to take away.
        """
        sent = last_sent_is_kept("model", "model", "Zhang et al. 2018, (10): neighbours get f_i(t) as it is")
        if np.ptp(self._dual_growth) > 0.0:
            return (sent,)
        duals = Invariant(
            "sum of duals",
            self._unbalanced,
            self._size,
            where=Where.NEIGHBOURING_ROUNDS,
            source="Zhang et al. 2018, (11), summed over agents",
        )
        return sent, duals

    def _unbalanced(self, instant: Instant) -> float:
        """Largest coordinate of sum_i lambda_i / theta_i(1), less what ends that are ahead have added alone."""
        edges = ahead_by_one(instant)
        tails, heads = instant.graph.tails[edges], instant.graph.heads[edges]
        growth = self._dual_growth[tails] ** (instant.rounds[tails] - 2.0)
        gap = instant.agent("before")[tails] - instant.agent("model")[heads]
        alone = 0.5 * (growth[:, None] * gap).sum(axis=0)
        return largest((instant.agent("dual") / self._first_dual[:, None]).sum(axis=0) - alone)

    def _size(self, instant: Instant) -> float:
        """The sum of what is added up, without its signs."""
        growth = self._dual_growth ** np.maximum(instant.rounds - 1.0, 0.0)
        moves = 0.5 * growth * instant.graph.degrees * by_row(instant.agent("model"))
        return float((by_row(instant.agent("dual")) / self._first_dual + moves).sum())


def per_agent(given: float | list[float], agents: int, *field: str) -> NDArray[np.float64]:
    """(n,) one value per agent, from one value or a list; ``field`` is the path of the parameter.

    Raises `InputError` if a list does not have one value per agent.
    """
    check_length(given, agents, *field)
    return np.array(given if isinstance(given, list) else [given] * agents, dtype=np.float64)
