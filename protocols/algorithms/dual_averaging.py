"""Decentralised dual averaging, plain and private (Duchi et al. 2011; Liu, Johansson, Shi 2022).

Agents minimise F(x) = (1/n) sum_i (1/q_i) sum_k l(x; xi_ik) + h(x) with h(x) = (mu/2) |x|^2 and d(x) = (1/2) |x|^2.

=================  ==================================================================================
equation           here
=================  ==================================================================================
(2), (5), model    x_i(t) = -z_i(t) / (mu A(t) + gamma(t)), A(t) = a(1) + ... + a(t)
(3), (4), duals    z_i(t+1) = sum_j w_ij (z_j(t) + a(t) (g_j(t) + nu_j(t))); what is in brackets is sent
(4), summed        ``invariants``: what agents hold adds up to all weighted subgradients so far
algorithm 1        ``step``; its output, the average of the x_i(t) with weights a(t), is what ``models`` shows
theorem 1          ``privacy.budget``: see `hushnet.protocols.algorithms.subgradient_noise`
section 4.1        ``step_weights: linear`` is a(t) = t, ``constant`` is the conventional a(t) = 1
=================  ==================================================================================

A round t begins with (4) from the messages of round t - 1, so that z_i(1) = 0 whatever is known at the start. The
mixing matrix is doubly stochastic by Metropolis's rule, w_ij = 1 / (1 + max(degree i, degree j)); a ring gives 1/3.

Where we depart: theorem 1 divides the sensitivity of a subgradient over one drawn example by q. The claim is kept, and
the epsilon of the subsampled Gaussian mechanism is reported beside it.

Use it for convex tasks, and for privacy by noisy subgradients in rounds. What breaks it: nets, which it refuses, and a
`gamma` that is small for the subgradients, with which first models are far off.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator
from typing_extensions import override

from ...agents.blocks import State
from ...agents.clipping import clip_rows
from ...agents.errors import FieldError
from ...agents.objectives.objectives import Objective
from ...agents.objectives.pooled_objective import PooledObjective
from ...agents.parameters import NotNegative, Positive, Size
from ...agents.tables import Shard
from ..base import Layout, MessageKind, Problem, Protocol, ProtocolParameters, PublicStart, Traits
from ..context import Context, check_slope
from ..invariants import Declared, Instant, Invariant, Where, by_row, largest, last_sent_is_kept, mixed_by_one_end
from ..noise import check_all_rows
from ..privacy.budget import Privacy
from ..steps import Constants, batched, mixed, mixing_weights, perturbed
from .subgradient_noise import SamplingLaw, SubgradientNoise, check_theorem1, drawn_gradient, drawn_rows

Array = NDArray[np.float64]


class AveragingParameters(ProtocolParameters):
    """Parameters shared by all forms of decentralised dual averaging."""

    mu: Positive = 0.0005
    """Strong convexity of the regulariser (mu/2) |x|^2."""
    step_weights: Literal["linear", "constant"] = "linear"
    """Weight a(t) of round t's subgradient: t (Liu et al. 2022) or 1 (Duchi et al. 2011)."""
    gamma: NotNegative = 20.0
    """Weight gamma of the proximal term (1/2) |x|^2."""
    gamma_growth: NotNegative | None = None
    """c in gamma(t) = gamma + c sqrt(t); by default 0 for linear and sqrt(mu) for constant step weights."""
    sampling: SamplingLaw = "uniform"
    """Examples of a round: ``batch`` of them without replacement, each with probability batch / q, or all q."""
    batch: Size = 1
    """Examples in a round, or their expected number; at most the agent's own."""
    radius: Positive | None = None
    """Rows are clipped to this l2 norm, which then bounds them publicly."""
    privacy: Privacy | None = None
    """Gaussian noise on every subgradient.

    A ``budget`` (by: basic_composition) takes it from theorem 1 as printed, a ``target`` from the verified epsilon.
    """

    @model_validator(mode="after")
    def _consistent(self) -> AveragingParameters:
        check_theorem1(self.privacy)
        if self.sampling == "full" and self.batch != 1:
            raise FieldError("has no meaning with sampling: full", "batch")
        return self


class AveragingProtocol(Protocol):
    """Dual averaging, however agents mix their duals: noise, clipping, and what it comes to.

    Its ``growth`` is c in gamma(t) = gamma + c sqrt(t), its ``limit`` the most updates of an agent, if there is one.
    """

    learns = "convex"
    parameters: AveragingParameters

    @classmethod
    @override
    def check_scenario(cls, parameters: AveragingParameters, context: Context) -> None:
        check_slope(parameters.privacy, context.task.loss)

    @classmethod
    @override
    def check_problem(cls, parameters: AveragingParameters, problem: Problem) -> None:
        check_all_rows(parameters.privacy, problem.task, radius=parameters.radius)

    def prepare(self) -> None:
        """Proximal weights and the noise."""
        given = self.parameters
        default = 0.0 if given.step_weights == "linear" else math.sqrt(given.mu)
        self.growth = default if given.gamma_growth is None else given.gamma_growth
        self.limit = given.privacy.updates if given.privacy is not None else None
        self.step_noise = SubgradientNoise(
            given.privacy, self.problem.task, sampling=given.sampling, batch=given.batch, radius=given.radius
        )

    def local_data(self, agent: int, shard: Shard) -> Shard:
        """Rows clipped to the radius, where there is one."""
        radius = self.parameters.radius
        return shard if radius is None else Shard(clip_rows(shard.features, radius), shard.labels)

    def models(self, state: State) -> Array:
        """The output of algorithm 1: every agent's average of its models, with the weights of its steps."""
        return state.agent["average"].rows

    def objective(self) -> Objective:
        """F of problem (1), at the average of the agents' outputs."""
        return PooledObjective.mean_of_agents(self.problem.task, self.parameters.mu)


class DualAveragingParameters(AveragingParameters):
    """Decentralised dual averaging, plain or with perturbed subgradients (Duchi et al. 2011; Liu et al. 2022)."""

    kind: Literal["dual_averaging"]


class DualAveraging(AveragingProtocol):
    """Dual averaging over a network, in rounds; see the module's docstring."""

    Parameters = DualAveragingParameters
    parameters: DualAveragingParameters
    traits = Traits(trigger="round", inbox="per_round", needs_both_ends=True, instead="push_sum_dual_averaging")

    def prepare(self) -> None:
        """Mixing matrix, proximal weights and the noise."""
        super().prepare()
        self.weights = mixing_weights(self.problem.graph, "metropolis")

    def layout(self) -> Layout:
        """z, the last message and the one before, what was put in, the average of models; one broadcast kind."""
        p = self.problem.task.dimension
        names = ("dual", "sent", "before", "put_in", "average")
        return Layout(agent=dict.fromkeys(names, p), messages={"dual": MessageKind(p)})

    def public_start(self) -> PublicStart:
        """Nothing is known before the first round, z_i(1) = 0."""
        return PublicStart()

    def constants(self) -> Constants:
        """Mixing weights of edges, and the growth of the proximal weight."""
        return Constants(run={"growth": self.growth}, edge={"mixing": self.weights})

    def most_steps(self) -> float | None:
        """The number of an agent's updates."""
        return self.limit

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Equations (4) and (5), a perturbed subgradient, and the message of the round."""
        t, rows = me.updates + 1, drawn_rows(me)
        me.before = me.sent
        me.dual = mixed(me, me.sent, me.mixing)
        total = total_weight(me, t)
        weight = total - total_weight(me, t - 1)
        gradient = gradient_at(me, me.dual, weight, total, t, rows)
        me.sent = me.dual + weight * gradient
        me.put_in = me.put_in + weight * gradient
        me.message = me.sent

    def invariants(self) -> Declared:
        """Mixing keeps the sum of duals, which weighted subgradients are added to: (4), summed over agents."""
        return (
            last_sent_is_kept("dual", "sent", "Liu et al. 2022, (4): what is in brackets is sent"),
            Invariant(
                "sum of z",
                self._unbalanced,
                lambda instant: float((by_row(instant.agent("sent")) + by_row(instant.agent("put_in"))).sum()),
                where=Where.NEIGHBOURING_ROUNDS,
                source="Liu et al. 2022, (4): sum_i z_i(t+1) - sum_i z_i(t) = a(t) sum_i (g_i + nu_i)",
            ),
        )

    def _unbalanced(self, instant: Instant) -> float:
        """Largest coordinate of the sum, less what agents a round ahead have exchanged and their neighbours not yet."""
        sent = instant.agent("sent")
        alone = mixed_by_one_end(instant, self.weights, sent, instant.agent("before"))
        return largest((sent - instant.agent("put_in")).sum(axis=0) - alone)


def total_weight(me: Any, t: Any) -> Any:
    """A(t), the weights of all steps until t."""
    return t * (t + 1) / 2 if me.step_weights == "linear" else 1.0 * t


def gradient_at(me: Any, dual: Array, weight: Any, total: Any, t: Any, rows: Any) -> Array:
    """the model (2) of a dual, its share of the block ``average``, and the perturbed (p,) subgradient there.

    The step at time t has a weight > 0, which goes into the dual z_i, of a total A(t); for rows see `drawn_rows`.
    """
    model = dual / -(me.mu * total + me.gamma + me.growth * np.sqrt(t))
    me.average = me.average + (weight / total) * (model - me.average)
    return perturbed(me, drawn_gradient(me, model, rows))
