"""Asynchronous broadcast block coordinate descent, plain and private (Bellet, Guerraoui, Taziki, Tommasi 2018).

Agent i minimises its block of the graph-regularised objective (2),

    Q(Theta) = 1/2 sum_{i<j} W_ij |Theta_i - Theta_j|^2 + mu sum_i D_ii c_i L_i(Theta_i).

=================  ==================================================================================
equation           here
=================  ==================================================================================
(3), block of Q'   D_ii (Theta_i + mu c_i L_i') - sum_j W_ij Theta_j
(4), update        ``step``, with alpha = 1 / (1 + mu c_i L_loc)
(6), private       the same update with noise added to L_i'
theorem 1          scale 2 L0 / (eps m): `GradientNoise.sensitivities` times the plan's multipliers
proposition 2      ``privacy.allocation``
appendix C         ``start: {kind: private_propagation}``, see `hushnet.protocols.algorithms.warm_start`
=================  ==================================================================================

Where we depart: Lipschitz constants L0 bound the *dual* norm of the gradient, so a claimed L0 is kept beside the
sensitivity that can be proved; the step size of a private run comes from a public bound, because the spectral one
depends on the data; ``proposition2`` is the order as printed and ``late`` the one that the corrected theorem 2
(weights C^(T-1-t)) asks for. A neighbour that was never heard is taken to agree with the agent's own model, which
removes its pull; an agent without neighbours works alone.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator
from typing_extensions import override

from ...agents.clipping import clip_rows
from ...agents.errors import FieldError, InputError
from ...agents.losses import Loss, public_smoothness, spectral_smoothness
from ...agents.objectives.objectives import GraphRegularised, Objective, local_models
from ...agents.parameters import Finite, NotNegative, Positive, Size
from ...agents.tables import Shard
from ...agents.tasks.task import Task
from ..base import Layout, MessageKind, Problem, Protocol, ProtocolParameters, PublicStart, Traits
from ..context import Context, check_length, check_slope
from ..invariants import Declared, last_sent_is_kept
from ..noise import GradientNoise, active, check_all_rows, row_bounds, unit_of
from ..privacy.budget import GradientPrivacy, Privacy
from ..privacy.plans import allocation_weights
from ..steps import average, batched, local_gradient, perturbed
from .warm_start import PrivatePropagation, WarmStart, check_bound, check_minimiser, check_start

Confidence = Literal["relative", "count"] | list[NotNegative]


SPECTRA = "step sizes (smoothness: data, the spectrum of each agent's own rows)"
"""What is assumed to be public where L_loc is not."""


class CoordinateDescentParameters(ProtocolParameters):
    """Asynchronous coordinate descent on a graph-regularised objective, plain or private (Bellet et al. 2018)."""

    kind: Literal["coordinate_descent"]
    mu: Positive = 0.04
    """Trade-off between own data and agreement with neighbours; larger trusts own data more."""
    confidence: Confidence = "count"
    """c_i: m_i / max m (``relative``, as printed), m_i (``count``), or one value per agent."""
    smoothness: Literal["data", "public"] | None = None
    """L_loc from the agent's own spectrum (``data``) or from a public bound on its rows (``public``, the default of
    private runs)."""
    radius: Positive | None = None
    """Rows are clipped to this l2 norm, which then bounds them publicly."""
    start: Literal["zero", "constant", "local"] | PrivatePropagation = "zero"
    """First models: zeros, a constant vector, the purely local models, or noisy local models propagated over the graph,
    whose cost is part of the budget."""
    start_value: Finite | None = None
    """Every coordinate of a constant start."""
    updates: Size | None = None
    """An agent stops after so many updates of its own; in a private run this is ``privacy.updates``."""
    privacy: GradientPrivacy | None = None
    """Noise on every gradient, and what it may cost."""

    @model_validator(mode="after")
    def _consistent(self) -> CoordinateDescentParameters:
        if active(self.privacy) and self.start == "local":
            raise FieldError(
                "a private run cannot start from local models: the start is sent to the neighbours without noise, and "
                "theorem 1 holds only for a start that does not depend on the data; use start: zero, constant or "
                "{kind: private_propagation}",
                "start",
            )
        if isinstance(self.start, PrivatePropagation) and unit_of(self.privacy) == "agent":
            raise FieldError("protects records alone; with unit: agent start from zero or constant", "start")
        if self.privacy is not None and self.privacy.updates is not None and self.updates is not None:
            raise FieldError("give the number of updates once: as privacy.updates in a private run", "updates")
        if (self.start == "constant") != (self.start_value is not None):
            raise FieldError("start_value belongs to start: constant, and is needed there", "start")
        return self


class CoordinateDescent(Protocol):
    """Broadcast block coordinate descent; see the module's docstring."""

    Parameters = CoordinateDescentParameters
    learns = "linear"
    parameters: CoordinateDescentParameters

    @classmethod
    def traits_for(cls, parameters: CoordinateDescentParameters) -> Traits:
        """Broadcasts; a private warm start is computed centrally."""
        return Traits(central=isinstance(parameters.start, PrivatePropagation))

    @classmethod
    @override
    def check_scenario(cls, parameters: CoordinateDescentParameters, context: Context) -> None:
        check_smooth(context.task.loss)
        check_length(parameters.confidence, context.task.agents, "confidence")
        check_slope(parameters.privacy, context.task.loss)
        task, privacy = context.task, parameters.privacy
        bounded = task.bounds("l2", parameters.radius)
        check_public(parameters, bounded=bounded, task=task.kind)
        if privacy is not None and active(privacy) and privacy.oracle_schedule:
            check_oracle(context.always_up and not context.in_rounds)
        if isinstance(parameters.start, PrivatePropagation):
            if privacy is not None and active(privacy):
                check_start(parameters.start, privacy)
            check_bound(parameters.start, bounded=bounded, task=task.kind)
            check_minimiser(parameters.start, regularised=task.regularised, loss=task.loss)

    @classmethod
    @override
    def check_problem(cls, parameters: CoordinateDescentParameters, problem: Problem) -> None:
        check_all_rows(parameters.privacy, problem.task, radius=parameters.radius)

    def prepare(self) -> None:
        """Confidences, bounds and the noise plan: everything that is public or listed as assumed to be."""
        task = self.problem.task
        self.confidence = confidences(self.parameters.confidence, task)
        privacy = self.parameters.privacy
        self.bounds = row_bounds(task, self.parameters.radius)
        check_smooth(task.loss)
        self.public = check_public(self.parameters, bounded=math.isfinite(self.bounds["l2"]), task=task.name)
        self.smoothness = self._smoothness()
        self.limit = self.parameters.updates
        weights = None
        if privacy is not None and privacy.updates is not None:
            self.limit = privacy.updates
            weights = self._weights(privacy, self.limit) if active(privacy) else None
        self.warm, asked = None, self.parameters.start
        if isinstance(asked, PrivatePropagation):
            mu_c = self.parameters.mu * self.confidence
            self.warm = WarmStart(asked, self.problem, mu_c, self.bounds["l2"])
            privacy = self.warm.left_of(privacy, weights)
        self.step_noise = self.noise = GradientNoise(privacy, task, weights=weights, radius=self.parameters.radius)

    def _weights(self, privacy: Privacy, updates: int) -> NDArray[np.float64]:
        """Shares of the budget by update; the k-th wake-up is expected at the global index k n."""
        count, agents = updates, self.problem.graph.agents
        contraction = None
        if privacy.allocation != "uniform":
            contraction = self._contraction() if privacy.contraction is None else privacy.contraction
        kind, contraction = ("uniform", 1.0) if contraction is None else (privacy.allocation, contraction)
        indices = np.arange(count, dtype=np.float64)[None, :] * agents
        if privacy.oracle_schedule:
            check_oracle(self.problem.oracle is not None)
            assert self.problem.oracle is not None
            indices = self.problem.oracle(count).astype(np.float64)
        return np.array([allocation_weights(kind, count, contraction=contraction, indices=row) for row in indices])

    def _contraction(self) -> float | None:
        """C = 1 - sigma / (n L_max) of proposition 1, over agents with data and neighbours; None if there are none."""
        task, graph, mu = self.problem.task, self.problem.graph, self.parameters.mu
        strength, trust = graph.strengths, self.confidence
        inside = (strength > 0) & (trust > 0)
        if not inside.any():
            return None
        convexity = mu * np.min((strength * trust * 2 * task.regularisation)[inside])
        largest = np.max((strength * (1 + mu * trust * self.smoothness))[inside])
        return float(1 - convexity / (graph.agents * largest))

    def _smoothness(self) -> NDArray[np.float64]:
        """(n,) L_loc: curvature of the loss times a bound on X'X / m, plus 2 lambda; 0 for agents without data."""
        task = self.problem.task
        if self.public:
            bound = public_smoothness(self.bounds["l2"], task.loss, task.regularisation)
            return np.where(task.train.counts > 0, bound, 0.0)
        own = (self.local_data(agent, task.shard(agent)) for agent in range(task.agents))
        spectra = [
            spectral_smoothness(shard.features, task.loss, float(task.regularisation[agent]))
            for agent, shard in enumerate(own)
        ]
        return np.array(self.problem.assumed(SPECTRA, spectra))

    def local_data(self, agent: int, shard: Shard) -> Shard:
        """Rows clipped to the radius, where there is one."""
        if self.parameters.radius is None:
            return shard
        return Shard(clip_rows(shard.features, self.parameters.radius), shard.labels)

    def layout(self) -> Layout:
        """Model, step size alpha and mu c_i of each agent; one broadcast kind."""
        p = self.problem.task.dimension
        return Layout(agent={"model": p, "alpha": 1, "mu_c": 1}, messages={"model": MessageKind(p, mirrors="model")})

    def public_start(self) -> PublicStart | None:
        """Zero or constant models, and the step sizes."""
        if self.parameters.start not in ("zero", "constant"):
            return None
        value = self.parameters.start_value
        return PublicStart({**self.step_blocks, "model": 0.0 if value is None else value}, sent={"model": "model"})

    def start(self, me: Any) -> None:
        """Start from public values, from the purely local model or from the propagated one, and send it."""
        if self.first is not None:
            self.first.make(me)
            return
        for name, values in self.step_blocks.items():
            setattr(me, name, values[me.agent])
        release = me.public("the start does not depend on data")
        if self.warm is not None:
            me.model, release = self.warm.share(me)
        elif len(me.data):
            me.model = local_models(self.problem.task, np.array([me.agent]))[0]
            release = me.plain("the purely local model")
        me.send("model", me.model, release)

    @cached_property
    def step_blocks(self) -> dict[str, NDArray[np.float64]]:
        """The agents' mu c_i and step sizes alpha = 1 / (1 + mu c_i L_loc), by the blocks that they are in."""
        mu_c = self.parameters.mu * self.confidence
        return {"mu_c": mu_c, "alpha": 1 / (1 + mu_c * self.smoothness)}

    def most_steps(self) -> float | None:
        """The number of an agent's updates."""
        return self.limit

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Update (4), or (6) with noise, and broadcast."""
        gradient = perturbed(me, local_gradient(me, me.model))
        me.model = (1 - me.alpha) * me.model + me.alpha * (average(me) - me.mu_c * gradient)
        me.message = me.model

    def invariants(self) -> Declared:
        """An agent goes on from the very model that it has sent, with its noise: theorem 1 relies on it."""
        return (
            last_sent_is_kept("model", "model", "Bellet et al. 2018, (4) and (6): the new block is what is broadcast"),
        )

    @property
    def changes_rows(self) -> bool:
        """True if there is a radius, which samples are clipped to."""
        return self.parameters.radius is not None

    def objective(self) -> Objective:
        """Objective (2) on the task's own data."""
        return GraphRegularised(self.problem.task, self.problem.graph, self.parameters.mu, self.confidence)

    @property
    def privacy(self) -> Privacy | None:
        """Noise and budget; a private start is one release more."""
        given = self.parameters.privacy
        if self.warm is None or given is None or given.updates is None:
            return given
        return given.model_copy(update={"updates": given.updates + 1})

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Confidences and step sizes, where they come from the data."""
        steps = () if self.public else (SPECTRA,)
        return assumed_of(self.parameters.confidence) + steps


def assumed_of(confidence: Confidence | Literal["uniform"]) -> tuple[str, ...]:
    """Inputs that confidences compute from the data and treat as public."""
    return ("numbers of rows (confidences)",) if confidence in ("count", "relative") else ()


def check_smooth(loss: Loss) -> None:
    """Raise an `InputError` if a loss has no step sizes."""
    if not loss.smooth:
        raise InputError(
            f"coordinate descent needs a smooth loss for its step sizes, and {loss.name!r} is not smooth",
            field=("task", "loss"),
        )


def check_public(parameters: CoordinateDescentParameters, *, bounded: bool, task: str) -> bool:
    """True if step sizes follow from a public bound on samples; an `InputError` if they should and there is none."""
    public = (parameters.smoothness or ("public" if active(parameters.privacy) else "data")) == "public"
    if public and not bounded:
        raise InputError(
            f"smoothness: public needs a bound on the rows, and the task {task!r} has none; set radius",
            field=("smoothness",),
        )
    return public


def check_oracle(known: bool) -> None:
    """Raise an `InputError` unless the true indices of wake-ups are known in advance."""
    if not known:
        raise InputError(
            "oracle_schedule needs agents that are always there and wake by their own clocks; use "
            "availability: {kind: always} and schedule: async",
            field=("privacy", "oracle_schedule"),
        )


def confidences(confidence: Confidence, task: Task) -> NDArray[np.float64]:
    """(n,) c_i; 0 for an agent without data; raises `InputError` if a list does not have one value per agent."""
    counts = task.train.counts.astype(np.float64)
    if confidence == "count":
        return counts
    if confidence == "relative":
        return counts / max(1.0, counts.max())
    check_length(confidence, task.agents, "confidence")
    return np.where(counts > 0, np.array(confidence, dtype=np.float64), 0.0)
