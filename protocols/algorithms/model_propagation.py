"""Model propagation: solitary models smoothed over the graph (Vanhaesebrouck, Bellet, Tommasi 2017, section 3).

Every agent has learned a model alone; what is minimised is

    Q(Theta) = 1/2 (sum_{i<j} W_ij |Theta_i - Theta_j|^2 + mu sum_i D_ii c_i |Theta_i - Theta_i^sol|^2).

=============================  ================================================================================
equation                       here
=============================  ================================================================================
(3), objective                 `hushnet.agents.objectives.propagation_objective.Propagation`
(4), closed form               ``closed_form: true``, computed centrally
(5), synchronous iteration     ``schedule: rounds``
(6), gossip                    the default: a session tells both ends each other's model, then both update
Bellet et al. 2018, (16)       ``schedule: async``: an agent wakes, updates and tells all its neighbours
Bellet et al. 2018, app. C     ``privacy``: the solitary models are released once, with noise; the rest follows
                               from what was released and costs nothing more
=============================  ================================================================================

All of them apply one update, Theta_i <- (sum_j P_ij Theta_j + mu c_i Theta_i^sol) / (1 + mu c_i), to what agent i knows
of its neighbours; alpha = 1 / (1 + mu) in the paper. Where we depart: the indices of (6) as printed mix agents i and l;
each agent uses its own row. A neighbour's model that was never heard is its solitary model, sent once at the start, or
what ``network.start`` says. An agent without neighbours keeps its solitary model. The ends of a session update on their
own knowledge, so that it does no harm if only the callee's half is made: callers give up rather than repeat.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.errors import FieldError
from ...agents.objectives.objectives import check_unique
from ...agents.objectives.propagation_objective import Propagation
from ...agents.parameters import Positive
from ...agents.solitary import Solitary, solitary_model, solitary_models
from ...agents.tables import Shard
from ...agents.tasks.task import Task
from ..base import Layout, MessageKind, Problem, Protocol, ProtocolParameters, Traits
from ..context import Context, check_length
from ..invariants import Declared, Instant, Invariant, NoInvariant, largest, last_sent_is_kept
from ..noise import active, check_all_rows
from ..privacy.budget import Privacy
from ..privacy.mechanisms import Release
from ..schedule import ExchangeSchedule
from ..steps import Constants, average, batched, received, segment_sum
from ..steps.kernels import NO_WEIGHTS
from .coordinate_descent import Confidence, assumed_of, confidences
from .output_perturbation import OutputNoise, check_output_noise, output_noise


class ModelPropagationParameters(ProtocolParameters):
    """Model propagation: solitary models, smoothed over the graph by gossip (Vanhaesebrouck et al. 2017)."""

    kind: Literal["model_propagation"]
    alpha: float | None = Field(default=None, gt=0, lt=1)
    """Trade-off in (0, 1), 1 / (1 + mu): towards 1, agreement with neighbours counts more; 0.99 if mu is not given."""
    mu: Positive | None = None
    """The same trade-off as (1 - alpha) / alpha."""
    confidence: Literal["uniform"] | Confidence = "relative"
    """c_i: m_i / max m (``relative``), m_i (``count``), 1/2 for every agent (``uniform``), or one value per agent."""
    solitary: Solitary = "exact"
    """Solitary models: ``exact`` minimisers, or ``{steps: 10, step_size: 1.0}`` gradient steps from zero."""
    partners: Literal["uniform", "weighted"] = "uniform"
    """Whom a session calls: any neighbour alike, or neighbours in proportion to W_ij."""
    closed_form: bool = False
    """Compute the minimiser centrally, without messages, instead of approaching it."""
    privacy: Privacy | None = None
    """Noise on the solitary models, and what it may cost; ``clip`` and ``radius`` bound the l2 norm of rows."""

    @model_validator(mode="after")
    def _consistent(self) -> ModelPropagationParameters:
        if self.alpha is not None and self.mu is not None:
            raise FieldError("give one of alpha and mu, for mu = (1 - alpha) / alpha", "mu")
        if active(self.privacy) and self.solitary != "exact":
            raise FieldError("noise is scaled for exact minimisers; use exact, or leave privacy out", "solitary")
        if self.closed_form and self.schedule is not None:
            raise FieldError("closed_form exchanges nothing, so it has no schedule", "schedule")
        if self.partners == "weighted" and not self.gossip:
            raise FieldError("partners belongs to sessions; use schedule: exchange, or leave it out", "partners")
        return self

    @property
    def gossip(self) -> bool:
        """True if agents exchange in pairs."""
        return not self.closed_form and isinstance(self.schedule, ExchangeSchedule | None)

    @property
    def mu_c(self) -> float:
        """The trade-off mu."""
        if self.mu is not None:
            return self.mu
        alpha = 0.99 if self.alpha is None else self.alpha
        return (1 - alpha) / alpha


class ModelPropagation(Protocol):
    """Model propagation by gossip, by broadcast, in rounds or in closed form; see the module's docstring."""

    Parameters = ModelPropagationParameters
    learns = "linear"
    parameters: ModelPropagationParameters

    @classmethod
    def traits_for(cls, parameters: ModelPropagationParameters) -> Traits:
        """Pairwise exchange, unless the scenario asks for broadcasts, rounds or the closed form."""
        if parameters.gossip:
            return Traits(exchange="pairwise", unanswered="give_up")
        return Traits(central=parameters.closed_form)

    @classmethod
    @override
    def check_scenario(cls, parameters: ModelPropagationParameters, context: Context) -> None:
        task = context.task
        check_length(parameters.confidence, task.agents, "confidence")
        if parameters.solitary == "exact":
            check_unique(task.loss, regularised=task.regularised)
        check_output_noise(parameters.privacy, regularised=task.regularised, loss=task.loss)

    @classmethod
    @override
    def check_problem(cls, parameters: ModelPropagationParameters, problem: Problem) -> None:
        check_all_rows(parameters.privacy, problem.task, norm="l2")

    def prepare(self) -> None:
        """The pull mu c_i of every agent's solitary model."""
        task = self.problem.task
        self.mu_c = self.parameters.mu_c * _confidences(self.parameters.confidence, task)
        self.noise: OutputNoise | None = output_noise(self.parameters.privacy, task)
        self.releases: dict[int, Release] = {}

    def local_data(self, agent: int, shard: Shard) -> Shard:
        """Rows clipped to the bound that the noise relies on."""
        return shard if self.noise is None else self.noise.clipped(shard)

    def layout(self) -> Layout:
        """Own and solitary model; in sessions, the copy of each neighbour's model and whether there is one."""
        p = self.problem.task.dimension
        agent = {"model": p, "solitary": p}
        if self.parameters.closed_form:
            return Layout(agent=agent)
        messages = {"model": MessageKind(p, mirrors="model")}
        if not self.parameters.gossip:
            return Layout(agent=agent, messages=messages)
        messages |= {"request": MessageKind(p), "reply": MessageKind(p)}
        return Layout(agent=agent, edge={"copy": p, "met": 1}, messages=messages)

    def start(self, me: Any) -> None:
        """Learn alone, add the noise if there is any, and tell the neighbours."""
        if self.parameters.closed_form:
            if not self.releases:  # everybody's model is part of the closed form, also that of agents that join later
                for agent in range(self.problem.task.agents):
                    me.disclose(self._reserved(agent, me))
            me.solitary = self._solitary(me)
            me.model = self.closed_form[me.agent]
            me.fall_silent()
            return
        release = self._reserved(me.agent, me)
        me.solitary = me.model = self._solitary(me)
        me.send("model", me.model, release)

    def _solitary(self, me: Any) -> NDArray[np.float64]:
        """(p,) solitary model of an agent as the others get to know it."""
        if len(me.data) == 0:
            return np.zeros(self.problem.task.dimension)
        if self.noise is None:
            return solitary_model(me.data, self.problem.task, me.agent, self.parameters.solitary)
        return self.noise.model(self.problem, me.agent, me.data)

    def _reserved(self, agent: int, me: Any) -> Release:
        recipients = len(self.problem.graph.neighbours(agent))
        if self.problem.task.train.counts[agent] == 0:
            release = Release.public(agent, me.now, "the agent has no data", recipients=recipients)
        elif self.noise is None:
            release = Release.plain(agent, me.now, "the solitary model", recipients=recipients)
        else:
            release = self.noise.release(agent, me.now, recipients)
        me.reserve(release)
        self.releases[agent] = release
        return release

    @cached_property
    def closed_form(self) -> NDArray[np.float64]:
        """(n, p) minimisers (4), from everybody's solitary models, with their noise."""
        if self.noise is None:
            return self.objective().minimise()[0]
        return Propagation(self.problem.graph, self.noise.models(self.problem), self.mu_c).minimise()[0]

    def constants(self) -> Constants:
        """The pull of every agent's solitary model."""
        return Constants(agent={"mu_c": self.mu_c})

    def release(self, me: Any) -> Release:
        """Return the release of the present model: plain for data without noise, else that of the solitary model."""
        if self.noise is None and len(me.data):
            return Release.plain(me.agent, me.now, "models without noise", recipients=len(me.neighbours))
        return self.releases[me.agent]

    def partner_weights(self) -> NDArray[np.float64]:
        """Any neighbour, or neighbours by their weights."""
        return self.problem.graph.weights if self.parameters.partners == "weighted" else NO_WEIGHTS

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Update on the newest of all neighbours, and tell them: (5) in rounds, Bellet's (16) otherwise."""
        if me.closed_form:
            return
        updated = (average(me) + me.mu_c * me.solitary) / (1 + me.mu_c)
        me.model = np.where(me.degree > 0, updated, me.model)
        me.message = me.model

    @staticmethod
    @batched
    def request(me: Any) -> None:
        """Show the own model."""
        me.message = me.model

    @staticmethod
    @batched
    def respond(me: Any, heard: NDArray[np.float64]) -> None:
        """Show the own model as it is before the update, then make the update (6)."""
        me.message = me.model
        _meet(me, heard)

    @staticmethod
    @batched
    def complete(me: Any, heard: NDArray[np.float64]) -> None:
        """Make the update (6)."""
        _meet(me, heard)

    def invariants(self) -> Declared:
        """Models and copies are averages of solitary models, whatever is late, lost or absent."""
        if self.parameters.closed_form:
            return NoInvariant("models are computed centrally, and nothing is exchanged")
        source = "Vanhaesebrouck et al. 2017, (6): an average of solitary models"
        models = Invariant("models within the solitary ones", self._models_outside, self._size, source=source)
        if self.parameters.gossip:
            return models, Invariant("copies within the solitary ones", _copies_outside, _solitary_size, source=source)
        return models, last_sent_is_kept("model", "model", "Bellet et al. 2018, (16): an agent tells its new model")

    def _models_outside(self, instant: Instant) -> NDArray[np.float64]:
        """(n,) how far models are from averages of anything within the box and, with its pull, the own solitary one."""
        mu_c = self.mu_c[:, None] * (instant.graph.degrees > 0)[:, None]
        around = (1 + mu_c) * instant.agent("model") - mu_c * instant.agent("solitary")
        return np.where(instant.started, _outside(instant, around), 0.0)

    def _size(self, instant: Instant) -> float:
        return (1.0 + largest(self.mu_c)) * _solitary_size(instant)

    def objective(self) -> Propagation:
        """Objective (3) around the exact solitary models, without noise: its cost shows as a gap."""
        return self._objective

    @cached_property
    def _objective(self) -> Propagation:
        solitary = solitary_models(self.problem.task, self.parameters.solitary)
        return Propagation(self.problem.graph, solitary, self.mu_c)

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """The numbers of rows, where confidences come from them."""
        return assumed_of(self.parameters.confidence)


def _meet(me: Any, heard: NDArray[np.float64]) -> None:
    """Equation (6) with a neighbour's model and with what is known of the others."""
    me.here.copy, me.here.met = heard, 1.0
    theirs = np.where(me.met > 0.0, me.copy, received(me))
    around = segment_sum(me, me.weights * theirs) / segment_sum(me, me.weights)
    me.model = (around + me.mu_c * me.solitary) / (1 + me.mu_c)


def _confidences(confidence: Literal["uniform"] | Confidence, task: Task) -> NDArray[np.float64]:
    """(n,) c_i; 0 for an agent without data."""
    if confidence == "uniform":
        return np.where(task.train.counts > 0, 0.5, 0.0)
    return confidences(confidence, task)


def _outside(instant: Instant, vectors: NDArray[np.float64]) -> NDArray[np.float64] | float:
    """(k,) how far vectors are outside the box of the solitary models of all who have begun; 0 if none is."""
    solitary = instant.agent("solitary")[instant.started]
    if instant.zero_start or not len(solitary):  # who was not heard counts as zeros
        solitary = np.vstack([solitary, np.zeros((1, vectors.shape[1]))])
    low, high = solitary.min(axis=0), solitary.max(axis=0)
    if (vectors >= low).all() and (vectors <= high).all():  # as a rule
        return 0.0
    return np.maximum(low - vectors, vectors - high).max(axis=1, initial=0.0)


def _copies_outside(instant: Instant) -> NDArray[np.float64]:
    met = instant.edge("met")[:, 0] > 0.0
    return np.where(met, _outside(instant, instant.edge("copy")), 0.0)


def _solitary_size(instant: Instant) -> float:
    return largest(instant.agent("solitary"))
