"""Collaborative learning by ADMM, gossip and synchronous (Vanhaesebrouck, Bellet and Tommasi 2017).

Agents minimise a graph-regularised objective, (7) of that paper or (2) of Bellet et al. 2018, without a centre:

    sum_{i<j} W_ij |theta_i - theta_j|^2 + mu sum_i D_ii c_i L_i(theta_i).                                          (7)

Each end of an edge e = (i, j) keeps a copy of the other's model, and both ends agree on the two models by means of
secondary variables Z and multipliers Lambda, four of either for an edge: at end i, those of its own model and those
of its neighbour's.

======================================  ===============================================================================
section 4.2 (and supplement D)          here
======================================  ===============================================================================
step 1, primal variables of an agent    `minimise`: its own model; `offer`: its copy of a neighbour's model
the message of step 1                   Theta_i^i, Theta_i^j, Lambda_ei^i, Lambda_ei^j: four vectors each way
steps 2 and 3, Z and Lambda of an edge  `settle`
gossip (section 4.2)                    a session: step 1 in ``request`` and ``respond``, steps 2 and 3 at both ends
synchronous (supplement D)              ``schedule: rounds``: step 1 and the message in a round, steps 2 and 3 in the
                                        next one, before its own step 1
======================================  ===============================================================================

Step 1 minimises over an agent's model and all its copies. A copy occurs in a quadratic only, so it is eliminated:
with edge weights w (W_ij for (7), W_ij / 2 for Bellet's (2)), v = Z^j - Lambda^j / rho and u = Z^i - Lambda^i / rho,

    Theta^j = (w theta + rho v) / (w + rho),   kappa = w rho / (w + rho),   mu' = mu D_ii c_i,
    theta = argmin mu' L_i(theta) + sum_j kappa_j / 2 |theta - v_j|^2 + rho / 2 |theta - u_j|^2,

which is solved exactly, or by a number of gradient steps of length 1 / (q + mu' L_loc) from the last model, where
q = sum_j (kappa_j + rho).

Where messages take time, the caller's half of a session is step 1 as it was at the request, and other sessions may
come in between. Both ends compute Z from the same eight vectors, so it is the same at both, bit for bit, and
Lambda_ei = -Lambda_ej, whatever is late, lost or repeated.

Where we depart: (7) is stated for sums of losses over an agent's points, which are c_i L_i with c_i = m_i
(``confidence: count``) and L_i as elsewhere the mean plus lambda_i |theta|^2. An agent without neighbours works alone.
The warm start that section 4.2 offers as an alternative, the solution of model propagation, is computed in one place
and not by messages (``start: {kind: propagation}``).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.errors import FieldError, InputError
from ...agents.losses import Loss, spectral_smoothness
from ...agents.objectives.objectives import GraphRegularised, Objective, check_unique
from ...agents.parameters import Parameters, Positive, Repeats
from ...agents.solitary import Solitary, solitary_model
from ..base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from ..context import Context, check_length
from ..invariants import EXACTLY, Declared, Instant, Invariant, NoInvariant, Where, by_row, largest
from ..privacy.mechanisms import Release
from ..schedule import RoundsSchedule
from ..steps import Constants, Every, batched, local_gradient, minimised, per_edge, received, segment_sum
from .coordinate_descent import Confidence, confidences
from .model_propagation import ModelPropagation, ModelPropagationParameters

Array = NDArray[np.float64]

PRECISION = 1e-10
"""Distance to the exact minimiser at which a local problem counts as solved."""


class PropagatedStart(Parameters):
    """A warm start: the solution of model propagation, computed centrally, whose messages are not counted."""

    kind: Literal["propagation"]
    alpha: float = Field(default=0.99, gt=0, lt=1)
    """Trade-off of model propagation in (0, 1): towards 1, agreement with neighbours counts more."""
    confidence: Literal["uniform"] | Confidence = "relative"
    """c_i of model propagation: m_i / max m (``relative``), m_i (``count``), 1/2 (``uniform``), or a list of them."""


class CollaborativeAdmmParameters(ProtocolParameters):
    """Gossip or synchronous ADMM on a graph-regularised objective (Vanhaesebrouck et al. 2017, section 4)."""

    kind: Literal["collaborative_admm"]
    objective: Literal["vanhaesebrouck", "bellet"] = "vanhaesebrouck"
    """What is minimised: equation (7) of Vanhaesebrouck et al. 2017, or (2) of Bellet et al. 2018, whose graph term has
    half the weight."""
    alpha: float | None = Field(default=None, gt=0, lt=1)
    """Trade-off 1 / (1 + mu) in (0, 1): towards 1, agreement with neighbours counts more."""
    mu: Positive | None = None
    """The same trade-off as (1 - alpha) / alpha; 0.04 if neither is given."""
    confidence: Confidence = "count"
    """c_i: m_i (``count``, sums of losses), m_i / max m (``relative``), or one value per agent."""
    rho: Positive = 1.0
    """Penalty on disagreement about an edge's two models; changes the speed, not the optimum."""
    local_steps: Literal["exact"] | Repeats = "exact"
    """How an agent solves its own problem at each step: exactly, or by so many gradient steps."""
    start: Literal["zero", "local"] | PropagatedStart = "local"
    """First models: zeros, the solitary models, or what model propagation makes of these."""
    solitary: Solitary = "exact"
    """Solitary models: ``exact`` minimisers, or ``{steps: 10, step_size: 1.0}`` gradient steps from zero."""

    @model_validator(mode="after")
    def _one_trade_off(self) -> CollaborativeAdmmParameters:
        if self.alpha is not None and self.mu is not None:
            raise FieldError("give one of alpha and mu, for mu = (1 - alpha) / alpha", "mu")
        return self

    @property
    def mu_c(self) -> float:
        """The trade-off mu."""
        if self.alpha is not None:
            return (1 - self.alpha) / self.alpha
        return 0.04 if self.mu is None else self.mu


def check_steps(loss: Loss, parameters: CollaborativeAdmmParameters) -> None:
    """Raise an `InputError` if a loss has no gradient steps."""
    if parameters.local_steps != "exact" and not loss.smooth:
        raise InputError(
            f"gradient steps need a smooth loss, and the {loss.name} loss has kinks; use local_steps: exact",
            field=("local_steps",),
        )


class CollaborativeAdmm(Protocol):
    """Partial consensus by ADMM; see the module's docstring."""

    Parameters = CollaborativeAdmmParameters
    learns = "linear"
    parameters: CollaborativeAdmmParameters

    @classmethod
    def traits_for(cls, parameters: CollaborativeAdmmParameters) -> Traits:
        """Sessions in pairs, or rounds where the schedule says so."""
        central = isinstance(parameters.start, PropagatedStart)
        if isinstance(parameters.schedule, RoundsSchedule):
            return Traits(trigger="round", inbox="per_round", central=central)
        return Traits(exchange="pairwise", central=central)

    @classmethod
    @override
    def check_scenario(cls, parameters: CollaborativeAdmmParameters, context: Context) -> None:
        check_length(parameters.confidence, context.task.agents, "confidence")
        check_steps(context.task.loss, parameters)
        if isinstance(parameters.start, PropagatedStart):
            check_length(parameters.start.confidence, context.task.agents, "start", "confidence")
        if parameters.start != "zero" and parameters.solitary == "exact":
            check_unique(context.task.loss, regularised=context.task.regularised)

    def prepare(self) -> None:
        """Confidences, and w and kappa of every edge."""
        self.confidence = confidences(self.parameters.confidence, self.problem.task)
        # An edge's term of the objective is w |theta_i - theta_j|^2, one half of it at either end.
        share, rho = 1.0 if self.parameters.objective == "vanhaesebrouck" else 0.5, self.parameters.rho
        self.edge_weights = self.problem.graph.weights[:, None] * share
        self.kappa = self.edge_weights * rho / (self.edge_weights + rho)
        check_steps(self.problem.task.loss, self.parameters)
        self._undisclosed = np.flatnonzero(self.problem.task.train.counts > 0).tolist()

    @cached_property
    def warm(self) -> Array:
        """(n, p) what model propagation makes of everybody's solitary models."""
        asked = self.parameters.start
        assert isinstance(asked, PropagatedStart)
        fields = {"alpha": asked.alpha, "confidence": asked.confidence, "solitary": self.parameters.solitary}
        propagation = ModelPropagationParameters(kind="model_propagation", closed_form=True, **fields)
        return ModelPropagation(propagation, self.problem).closed_form

    def layout(self) -> Layout:
        """Models; Z and Lambda of every edge for either model, and what was last offered over it."""
        p = self.problem.task.dimension
        solitary, exchanged = MessageKind(p, mirrors="model"), MessageKind(4 * p, vectors=4)
        rounds = self.traits_for(self.parameters).trigger == "round"
        kinds = {"request": exchanged, "reply": exchanged}
        if rounds:
            kinds = {"exchange": MessageKind(4 * p, vectors=4, addressed=True)}
        return Layout(
            agent={"model": p, "smoothness": 1},
            edge={"z_own": p, "z_peer": p, "dual_own": p, "dual_peer": p, "offered": 2 * p, "met": 1},
            messages={"solitary": solitary, **kinds},
        )

    def start(self, me: Any) -> None:
        """Start model, sent to the neighbours, and Z of the own model; Lambda = 0."""
        task, model = self.problem.task, me.model
        if isinstance(self.parameters.start, PropagatedStart):
            self._disclose_all(me)
            model[:] = self.warm[me.agent]
        elif self.parameters.start == "local" or not len(me.neighbours):
            model[:] = solitary_model(me.data, task, me.agent, self.parameters.solitary)
        if not len(me.neighbours):
            me.fall_silent()
        if self.parameters.local_steps != "exact":
            me.smoothness = spectral_smoothness(me.data.features, task.loss, me.regularisation)
        me.z_own = model
        if self.parameters.start == "zero":
            me.send("solitary", model, me.public("the start does not depend on data"))
        else:
            me.send("solitary", model, self.release(me))

    def _disclose_all(self, me: Any) -> None:
        """Charge everybody with the first start: the models of agents that join later are part of it, too."""
        for agent in self._undisclosed:
            me.disclose(Release.plain(agent, me.now, "the solitary model"))
        self._undisclosed.clear()

    def constants(self) -> Constants:
        """The trade-off, confidences, and w and kappa of every edge."""
        edge = {"edge_weight": self.edge_weights, "kappa": self.kappa}
        return Constants(run={"mu_c": self.parameters.mu_c}, agent={"confidence": self.confidence}, edge=edge)

    def release(self, me: Any) -> Release:
        """There is no noise; models of an agent without data depend on others' only."""
        if not len(me.data):
            return Release.public(me.agent, me.now, "the agent has no data")
        return Release.plain(me.agent, me.now, "models and multipliers without noise")

    def sends(self) -> dict[str, Every]:
        """Solitary models at the start alone."""
        return {"solitary": Every(0)}

    @staticmethod
    @batched
    def request(me: Any) -> None:
        """Step 1 of the caller, and its message."""
        minimise(me)
        me.message = offer(me.here, me.model, me.rho)

    @staticmethod
    @batched
    def respond(me: Any, heard: Array) -> None:
        """Step 1 of the callee, its message, and steps 2 and 3."""
        minimise(me)
        me.message = offer(me.here, me.model, me.rho)
        settle(me.here, heard, True, me.rho)

    @staticmethod
    @batched
    def complete(me: Any, heard: Array) -> None:
        """Steps 2 and 3 of the caller, with its step 1 as it was when it called."""
        settle(me.here, heard, True, me.rho)

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """A round: steps 2 and 3 of the one before on all edges, then step 1 and its messages."""
        settle(me, me.heard_exchange, me.was_heard_exchange, me.rho)
        minimise(me)
        me.message_exchange = offer(me, per_edge(me, me.model), me.rho)

    def objective(self) -> Objective | None:
        """Objective (2) of Bellet et al.; for (7), which is twice (2) with half of mu, its half.

        None for a loss with kinks, where the exact minimum is not known.
        """
        if not self.problem.task.loss.smooth:
            return None
        mu = self.parameters.mu_c / (1 if self.parameters.objective == "bellet" else 2)
        return GraphRegularised(self.problem.task, self.problem.graph, mu, self.confidence)

    def invariants(self) -> Declared:
        """Both ends of an edge have one Z and opposite Lambda: where it is quiet, or in rounds after equally many."""
        schedule = self.parameters.schedule
        if isinstance(schedule, RoundsSchedule) and schedule.patience is not None:
            return NoInvariant(
                "with patience, ends of an edge settle on values of different rounds and agree in the end"
            )
        where = Where.EQUAL_ROUNDS if isinstance(schedule, RoundsSchedule) else Where.QUIET_EDGES
        source = "Vanhaesebrouck et al. 2017, section 4.2:"
        rho = self.parameters.rho

        def size(instant: Instant) -> float:
            return largest(instant.edge("z_own")) + largest(instant.edge("dual_own")) / rho

        def multipliers(instant: Instant) -> Array:
            return by_row(instant.edge("dual_own") + instant.edge("dual_peer")[instant.graph.reverse]) / rho

        return (
            Invariant("Z of an edge", _apart, size, where, EXACTLY, f"{source} (8), the set C_E"),
            Invariant("multipliers of an edge", multipliers, size, where, source=f"{source} step 3, summed over ends"),
        )


def minimise(me: Any) -> None:
    """Step 1 for an agent's own model, its copies of the neighbours' models eliminated."""
    me.z_peer = np.where(me.met == 0.0, received(me), me.z_peer)
    centres = me.kappa * (me.z_peer - me.dual_peer / me.rho) + (me.rho * me.z_own - me.dual_own)
    linear, curvature = segment_sum(me, centres), segment_sum(me, me.kappa + me.rho)
    trust = me.mu_c * segment_sum(me, me.weights) * me.confidence  # mu' = mu D_ii c_i
    if me.local_steps == "exact":
        curvature += 2.0 * trust * me.regularisation
        me.model = minimised(me, trust, curvature, linear, me.model, PRECISION * curvature)
        return
    length = 1.0 / (curvature + trust * me.smoothness)
    for _ in range(me.local_steps):
        gradient = local_gradient(me, me.model)
        me.model = me.model - length * (trust * gradient + curvature * me.model - linear)


def offer(at: Any, model: Array, rho: float) -> Array:
    """Keep copies of neighbours' models with the own (..., p) one for steps 2 and 3; what the neighbours are sent."""
    copy = (at.edge_weight * model + rho * at.z_peer - at.dual_peer) / (at.edge_weight + rho)
    at.offered = np.concatenate((model, copy), axis=1)
    return np.concatenate((at.offered, at.dual_own, at.dual_peer), axis=1)


def settle(at: Any, heard: Array, met: Any, rho: float) -> None:
    """Steps 2 and 3 on edges that have ``met``, from what was offered and what the other end said.

    `heard` is (..., 4 p): Theta_i^i, Theta_i^j, Lambda_ei^i, Lambda_ei^j of the other ends.
    """
    p = at.z_own.shape[-1]
    own, copy = at.offered[:, :p], at.offered[:, p:]
    theirs, their_copy, their_dual = heard[:, :p], heard[:, p : 2 * p], heard[:, 2 * p : 3 * p]
    # Sums of one term from either end, so that both ends round them in the same way.
    z_own = 0.5 * ((at.dual_own + heard[:, 3 * p :]) / rho + (own + their_copy))
    z_peer = 0.5 * ((at.dual_peer + their_dual) / rho + (copy + theirs))
    at.dual_own = np.where(met, at.dual_own + rho * (own - z_own), at.dual_own)
    at.dual_peer = np.where(met, at.dual_peer + rho * (copy - z_peer), at.dual_peer)
    at.z_own, at.z_peer = np.where(met, z_own, at.z_own), np.where(met, z_peer, at.z_peer)
    at.met = np.where(met, 1.0, at.met)


def _apart(instant: Instant) -> Array:
    """(E,) how far Z of the own model is from what the other end has for it, once either end has settled."""
    back, met = instant.graph.reverse, instant.edge("met")[:, 0]
    gap = by_row(instant.edge("z_own") - instant.edge("z_peer")[back])
    return np.where((met > 0.0) | (met[back] > 0.0), gap, 0.0)
