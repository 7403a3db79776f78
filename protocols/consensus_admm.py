"""Consensus ADMM with private penalties: M-ADMM, and conventional decentralised ADMM (Zhang, Khalili, Liu 2018).

Agents find one model f that minimises problem (1), sum_i (C/B_i) sum_n L(y f'x) + rho R(f) with R(f) = |f|^2 / 2, by
solving a problem of their own in every round and telling its solution to their V_i neighbours.

=================  ==================================================================================
equation           here
=================  ==================================================================================
(2), O(f, D_i)     ``loss_weight`` C times the agent's mean loss, plus (rho/N) |f|^2 / 2
(10), primal       `Iteration.solution`: argmin O(f, D_i) + 2 lambda_i'f + eta_i(t) sum_j |f - (f_i + f_j)/2|^2
(11), dual         `Iteration.move_dual`: lambda_i += (theta/2) sum_j (f_i - f_j)
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

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..agents.consensus_objective import ConsensusObjective
from ..agents.losses import local_gradient
from ..agents.objectives import Objective
from ..agents.parameters import Growth, Positive
from ..agents.solvers import minimise_local
from ..agents.tasks.base import Task
from .base import Layout, MessageKind, Out, Problem, Protocol, ProtocolParameters, Traits, View
from .invariants import Declared, Instant, Invariant, Where, ahead_by_one, by_row, largest, told_is_kept
from .surroundings import Surroundings, check_length, check_newton

EXACT = 1e-10
"""A local problem counts as solved once its gradient is below this times C."""


class ProblemParameters(ProtocolParameters):
    """Problem (1), which all forms of consensus ADMM solve."""

    loss_weight: Positive = 1.0
    """C, what an agent's mean loss counts against the regulariser; the paper wants at most the rows of every agent."""
    rho: Positive = 1.0
    """Weight of the regulariser |f|^2 / 2, of which every agent takes an equal share."""


class ConsensusParameters(ProblemParameters):
    """What the synchronous forms of consensus ADMM have in common; a list gives one value per agent."""

    penalty: Positive | list[Positive] = 0.5
    """eta_i(1), how much the first round's model is held to its neighbours'."""
    penalty_growth: Growth | list[Growth] = 1.0
    """q_i: the penalty of round t is eta_i(1) q_i^(t-1)."""
    dual_step: Positive | list[Positive] = 0.5
    """theta_i(1), step size of the dual variables; the optimum is met only if it is the same for all agents."""
    dual_step_growth: Growth | list[Growth] = 1.0
    """The dual step of round t is theta_i(1) times this to the power of t - 1."""


class ConsensusAdmmParameters(ConsensusParameters):
    """Decentralised ADMM for one common model, with a penalty of its own for every agent (Zhang et al. 2018)."""

    kind: Literal["consensus_admm"]


class ConsensusAdmm(Protocol):
    """M-ADMM without noise; see the module's docstring.

    Examples
    --------
    >>> from hushnet.simulator.bench import example, relative_gap
    >>> abs(relative_gap(example(ConsensusAdmm))) < 0.01
    True
    """

    Parameters = ConsensusAdmmParameters
    parameters: ConsensusAdmmParameters
    traits = Traits(trigger="round", inbox="per_round", needs_both_ends=True, instead="edge_consensus_admm")

    @classmethod
    def least_sent(cls, parameters: ConsensusAdmmParameters) -> int:
        """See `Protocol.least_sent`."""
        return 1

    @classmethod
    def check_scenario(cls, parameters: ConsensusAdmmParameters, surroundings: Surroundings) -> None:
        """See `Protocol.check_scenario`."""
        task = surroundings.task
        check_newton(task.loss, task.kind)
        for name in ("penalty", "penalty_growth", "dual_step", "dual_step_growth"):
            check_length(getattr(parameters, name), task.agents, name)

    def prepare(self) -> None:
        """Penalties and dual steps of all agents."""
        self.iteration = Iteration(self.parameters, self.problem)

    def layout(self) -> Layout:
        """Model f_i, dual variable lambda_i and the model before of each agent; one broadcast kind."""
        return Iteration.layout(self.problem.task.dimension)

    def start(self, view: View, out: Out) -> None:
        """f_i(0) = 0 and lambda_i(0) = 0."""
        out.send("model", view.state["model"], out.public("the start is 0"))

    def wake(self, view: View, out: Out) -> None:
        """(11), (10), and broadcast."""
        self.iteration.move_dual(view)
        view.state["model"][:] = self.iteration.solution(view)
        release = out.plain("a minimiser over the agent's rows") if len(view.data) else out.public("no data")
        out.send("model", view.state["model"], release)

    def objective(self) -> Objective:
        """Problem (2), whose minimum under consensus is that of (1)."""
        return self.iteration.local.objective

    def invariants(self) -> Declared:
        """What both ends of an edge add and take away, and that models are those that were told."""
        return self.iteration.invariants()


class LocalProblem:
    """O(f, D_i) of (2) between a quadratic and a linear term: what an agent solves in every step.

    Parameters
    ----------
    parameters : ProblemParameters
    task : Task

    Attributes
    ----------
    weight, share : float
        C, and the agent's share rho/N of the regulariser.
    objective : ConsensusObjective

    Raises
    ------
    InputError
        If the loss is not smooth.
    """

    def __init__(self, parameters: ProblemParameters, task: Task) -> None:
        check_newton(task.loss, task.name)
        self.loss = task.loss
        self.weight, self.share = parameters.loss_weight, parameters.rho / task.agents
        self.objective = ConsensusObjective(task, parameters.loss_weight, parameters.rho)

    @property
    def tolerance(self) -> float:
        """Norm of a local problem's gradient at what counts as its solution."""
        return EXACT * self.weight

    def curvature(self, degree: int, penalty: float) -> float:
        """Strong convexity rho/N + 2 eta_i V_i of the problem (10), apart from the loss."""
        return self.share + 2 * penalty * degree

    def solution(self, view: View, penalty: float, linear: NDArray[np.float64]) -> NDArray[np.float64]:
        """(p,) argmin O(f, D_i) + eta V_i |f|^2 - linear'f over an agent's rows, sought from its last model."""
        model, _ = minimise_local(
            view.data,
            self.loss,
            weight=self.weight,
            curvature=self.curvature(len(view.neighbours), penalty),
            linear=linear,
            start=view.state["model"],
            tolerance=self.tolerance,
        )
        return model

    def gradient(self, view: View, penalty: float, model: NDArray[np.float64]) -> NDArray[np.float64]:
        """(p,) gradient of O(f, D_i) + eta V_i |f|^2 at a model."""
        bend = self.curvature(len(view.neighbours), penalty)
        return self.weight * local_gradient(model, view.data, self.loss, 0.0) + bend * model

    def log_determinant(self, view: View, penalty: float, model: NDArray[np.float64]) -> float:
        """log det of the second derivative of O(f, D_i) + eta V_i |f|^2 at a model."""
        rows, bend = view.data.features, self.curvature(len(view.neighbours), penalty)
        bends = self.weight / max(1, len(rows)) * self.loss.second_slope(rows @ model, view.data.labels)
        return float(np.linalg.slogdet(rows.T @ (bends[:, None] * rows) + bend * np.eye(len(model)))[1])


class Iteration:
    """The mathematics of a round, with or without noise.

    Parameters
    ----------
    parameters : ConsensusParameters
    problem : Problem

    Attributes
    ----------
    local : LocalProblem

    Raises
    ------
    InputError
        If a list does not have one value per agent, or the loss is not smooth.
    """

    def __init__(self, parameters: ConsensusParameters, problem: Problem) -> None:
        task = problem.task
        self.local, self.dimension = LocalProblem(parameters, task), task.dimension
        self._first_penalty = per_agent(parameters.penalty, task.agents, "penalty")
        self._penalty_growth = per_agent(parameters.penalty_growth, task.agents, "penalty_growth")
        self._first_dual = per_agent(parameters.dual_step, task.agents, "dual_step")
        self._dual_growth = per_agent(parameters.dual_step_growth, task.agents, "dual_step_growth")

    @staticmethod
    def layout(p: int) -> Layout:
        """Model, dual variable and the model of the round before of each agent; one broadcast kind."""
        return Layout(agent={"model": p, "dual": p, "before": p}, messages={"model": MessageKind(p, mirrors="model")})

    def penalty(self, agent: int, number: int) -> float:
        """eta_i(t), t = 1, 2, ..."""
        return float(self._first_penalty[agent] * self._penalty_growth[agent] ** (number - 1))

    def dual_step(self, agent: int, number: int) -> float:
        """theta_i(t), t = 1, 2, ..."""
        return float(self._first_dual[agent] * self._dual_growth[agent] ** (number - 1))

    def move_dual(self, view: View) -> None:
        """(11) with the models of the round before; both ends of every edge have sent theirs."""
        view.state["before"][:] = view.state["model"]
        apart = len(view.neighbours) * view.state["model"] - view.received("model").sum(axis=0)
        view.state["dual"] += 0.5 * self.dual_step(view.agent, view.round - 1) * apart

    def solution(self, view: View, noise: NDArray[np.float64] | float = 0.0) -> NDArray[np.float64]:
        """(p,) solution of (10), with 2 eta_i V_i noise added to its gradient (the problem after (25))."""
        penalty = self.penalty(view.agent, view.round)
        linear = self._linear(view) - 2 * penalty * len(view.neighbours) * noise
        return self.local.solution(view, penalty, linear)

    def implied_noise(self, view: View, model: NDArray[np.float64]) -> NDArray[np.float64]:
        """(p,) the noise with which a model is the `solution`: minus the gradient of (10) there over 2 eta_i V_i."""
        penalty, degree = self.penalty(view.agent, view.round), len(view.neighbours)
        gradient = self.local.gradient(view, penalty, model) - self._linear(view)
        return -gradient / (2 * penalty * degree)

    def log_jacobian(self, view: View, model: NDArray[np.float64]) -> float:
        """log abs det of the derivative of `implied_noise`, up to what does not depend on the agent's rows."""
        return self.local.log_determinant(view, self.penalty(view.agent, view.round), model)

    def _linear(self, view: View) -> NDArray[np.float64]:
        penalty, degree, own = self.penalty(view.agent, view.round), len(view.neighbours), view.state["model"]
        between = degree * own + view.received("model").sum(axis=0)
        return penalty * between - 2 * view.state["dual"]

    def invariants(self) -> tuple[Invariant, ...]:
        """(11) keeps sum_i lambda_i / theta_i, unless dual steps grow at paces of their own; and what was told.

        An end that is a round ahead of the other has added what the other has yet to take away.
        """
        told = told_is_kept("model", "model", "Zhang et al. 2018, (10): neighbours get f_i(t) as it is")
        if np.ptp(self._dual_growth) > 0.0:
            return (told,)
        duals = Invariant(
            "sum of duals",
            self._unbalanced,
            self._size,
            where=Where.NEIGHBOURING_ROUNDS,
            source="Zhang et al. 2018, (11), summed over agents",
        )
        return told, duals

    def _unbalanced(self, instant: Instant) -> float:
        """Largest coordinate of sum_i lambda_i / theta_i(1), less what ends that are ahead have added alone."""
        edges = ahead_by_one(instant)
        tails, heads = instant.graph.tails[edges], instant.graph.heads[edges]
        growth = self._dual_growth[tails] ** (instant.rounds[tails] - 2.0)
        apart = instant.agent("before")[tails] - instant.agent("model")[heads]
        alone = 0.5 * (growth[:, None] * apart).sum(axis=0)
        return largest((instant.agent("dual") / self._first_dual[:, None]).sum(axis=0) - alone)

    def _size(self, instant: Instant) -> float:
        """The sum of what is added up, without its signs."""
        growth = self._dual_growth ** np.maximum(instant.rounds - 1.0, 0.0)
        moves = 0.5 * growth * instant.graph.degrees * by_row(instant.agent("model"))
        return float((by_row(instant.agent("dual")) / self._first_dual + moves).sum())


def per_agent(given: float | list[float], agents: int, *field: str) -> NDArray[np.float64]:
    """(n,) one value per agent, from one value or a list; ``field`` is the path of the parameter.

    Raises
    ------
    InputError
        If a list does not have one value per agent.
    """
    check_length(given, agents, *field)
    return np.array(given if isinstance(given, list) else [given] * agents, dtype=np.float64)
