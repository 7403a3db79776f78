"""Muffliato: private averaging by gossip (Cyffers, Even, Bellet, Massoulie 2022, algorithm 1).

==========================  =====================================================================================
line of algorithm 1         here
==========================  =====================================================================================
x_v^0 = x_v + noise         the start: the agent's value, released once with Gaussian noise
x_v^{t+1}                   a round: gamma sum_w W_vw x_w^t + (1 - gamma) x_v^{t-1}, with x_v^{-1} = x_v^0
gamma                       2 (1 - sqrt(l (1 - l/4))) / (1 - l/2)^2 with the spectral gap l of W for
                            ``gossip: chebyshev``, 1 for ``gossip: simple``
==========================  =====================================================================================

With ``shared_noise`` neighbours draw noise from a seed that they share, which one adds to its value and the other
subtracts (DECOR, Allouah et al. 2024, arXiv 2405.01031, for one value an agent): it hides values and leaves the mean of
all as it is. The ledger counts each agent's own noise alone, which holds against whoever knows all seeds; ``observers``
have what their own seeds tell. Noise of an agent that never joins stays in the mean, and so does noise whose other half
does not arrive; a seed that was not exchanged (``seeds_lost``) hides nothing and harms nobody's accuracy.

Everybody's epsilon is that of the one release. What a single agent learns of another is less the further they are
apart, for noises of others are mixed in: ``observers`` of a scenario computes it for what the network delivered.

An agent's value is what one gradient step from zero gives, x_v = -alpha mean_k phi'(0, y_k) x_k. With the squared loss
(s - y)^2 and alpha = 1/2 it is the mean of y_k x_k, so that the task ``mean_estimation`` is averaging of means. W has
Metropolis's weights, w_ij = 1 / (1 + max(degree i, degree j)).

Where we depart: gamma is that of the authors' own code (`totilas/muffliato`), whose figures begin with
x^1 = W x^0 where we take x^{-1} = x^0; both keep the mean. The paper's network is synchronous and loses nothing. A
neighbour that was never heard counts as the agent itself, and with ``patience`` the newest that is known of a neighbour
stands for what did not come; the mean of all models then moves. The first message carries x_v^0, and the last one
x_v^{T-1}, T = ``rounds``.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.blocks import State
from ...agents.errors import FieldError
from ...agents.graph import Graph
from ...agents.objectives.average_objective import SquaredErrorOfAverage
from ...agents.parameters import NotNegative, Positive, Size
from ...agents.tables import Shard
from ..base import Layout, MessageKind, Problem, Protocol, ProtocolParameters, Traits
from ..context import Context, check_slope
from ..invariants import Declared, last_sent_is_kept
from ..linear_map import START, LinearMap, LinearStep, SharedNoise
from ..noise import GradientNoise, active, check_all_rows
from ..privacy.budget import GradientPrivacy
from ..privacy.mechanisms import Release
from ..schedule import AsyncSchedule
from ..steps import Constants, batched, mixed, mixing_weights

Array = NDArray[np.float64]
FOLLOWS = "it follows from values that were released, and charged, at the start"
"""Why what an agent sends costs nothing more."""


class MuffliatoParameters(ProtocolParameters):
    """Muffliato: averaging of values that each agent made noisy once, by gossip (Cyffers et al. 2022)."""

    kind: Literal["muffliato"]
    step_size: Positive = 0.5
    """Step size alpha of the gradient step that gives an agent its value."""
    gossip: Literal["simple", "chebyshev"] = "chebyshev"
    """Whether a round mixes once (``simple``), or with the momentum of algorithm 1 (``chebyshev``)."""
    rounds: Size | None = None
    """Messages that an agent sends before it falls silent; as long as the run lasts by default."""
    shared_noise: NotNegative = 0.0
    """Deviation of the noise that two neighbours share, which cancels in the mean, over that of their own noise."""
    seeds_lost: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Probability with which two neighbours have failed to exchange their seed, and have no noise in common."""
    privacy: GradientPrivacy | None = None
    """Noise on the agents' values, for one release: ``updates`` is 1 or left out."""

    @model_validator(mode="after")
    def _consistent(self) -> MuffliatoParameters:
        if self.asynchronous and self.gossip == "chebyshev":
            raise FieldError("has momentum over rounds; with schedule: async use simple", "gossip")
        if self.privacy is not None and self.privacy.updates not in (None, 1):
            raise FieldError("must be 1: a value is released once", "privacy", "updates")
        if self.shared_noise > 0 and not active(self.privacy):
            raise FieldError("is a multiple of the own noise, so it needs privacy with noise", "shared_noise")
        if self.seeds_lost > 0 and self.shared_noise == 0:
            raise FieldError("is of seeds for shared_noise, which is 0", "seeds_lost")
        return self

    @property
    def asynchronous(self) -> bool:
        """True if agents step by their own clocks."""
        return self.schedule == "async" or isinstance(self.schedule, AsyncSchedule)


class Muffliato(Protocol):
    """Muffliato, in rounds or by the agents' own clocks; see the module's docstring."""

    Parameters = MuffliatoParameters
    parameters: MuffliatoParameters
    learns = "linear"

    @classmethod
    def traits_for(cls, parameters: MuffliatoParameters) -> Traits:
        """Rounds, unless the scenario asks for the agents' own clocks."""
        return Traits() if parameters.asynchronous else Traits(trigger="round", inbox="per_round")

    @classmethod
    @override
    def check_scenario(cls, parameters: MuffliatoParameters, context: Context) -> None:
        check_slope(parameters.privacy, context.task.loss)

    @classmethod
    @override
    def check_problem(cls, parameters: MuffliatoParameters, problem: Problem) -> None:
        check_all_rows(parameters.privacy, problem.task)

    def prepare(self) -> None:
        """Mixing weights, momentum and the noise."""
        self.weights = mixing_weights(self.problem.graph, "metropolis")
        self.gamma = momentum(self.problem.graph, self.weights) if self.parameters.gossip == "chebyshev" else 1.0
        self.noise = GradientNoise(self.parameters.privacy, self.problem.task)
        self.releases: dict[int, Release] = {}
        self.shared = self._shared_noise()

    def _shared_noise(self) -> SharedNoise | None:
        given, stream = self.parameters, self.problem.stream
        if given.shared_noise == 0 or stream is None:
            return None
        own = np.where(self.problem.task.train.counts > 0, self.noise.scales()[:, 0], 0.0)
        width = self.problem.task.dimension
        scales = given.shared_noise * own
        return SharedNoise(self.problem.graph, scales, width, lost=given.seeds_lost, stream=stream)

    def layout(self) -> Layout:
        """The model and the one before; one broadcast kind."""
        p = self.problem.task.dimension
        return Layout(agent={"model": p, "before": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me: Any) -> None:
        """Release the value x_v once; nothing is sent yet."""
        self.releases[me.agent] = release = self.noise.release(me)
        value = self._gradient(me.data)
        if self.shared is not None:
            value = self.shared.added(me.agent, value)
        me.reserve(release)
        noisy = release.perturb(value, rng=me.stream("noise"))
        me.disclose(release)
        me.model = me.before = -self.parameters.step_size * noisy

    def _gradient(self, shard: Shard) -> Array:
        """(p,) mean gradient of a shard at zero, clipped where the noise relies on it."""
        return self.noise.mean_gradient(np.zeros(self.problem.task.dimension), shard)

    def constants(self) -> Constants:
        """Mixing weights of edges, and gamma."""
        return Constants(run={"gamma": self.gamma}, edge={"mixing": self.weights})

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Mix what was heard, with momentum, and send it."""
        following = me.gamma * mixed(me, me.model, me.mixing * me.was_heard) + (1 - me.gamma) * me.before
        me.before = me.model
        me.model = following
        me.message = me.model

    def most_steps(self) -> float | None:
        """The number of rounds."""
        return self.parameters.rounds

    def release(self, me: Any) -> Release:
        """Nothing more: what an agent sends follows from what was released at the start."""
        return Release.public(me.agent, me.now, FOLLOWS, recipients=len(me.neighbours))

    @override
    def linear_map(self) -> LinearMap:
        def released(agent: int, number: int) -> Release | None:
            return self.releases[agent] if number == START else None

        def step(agent: int, heard: NDArray[np.bool_]) -> LinearStep:
            weights = self.gamma * self.weights[self.problem.graph.edges_of(agent)] * heard
            own = {"model": self.gamma - float(weights.sum()), "before": 1 - self.gamma}
            return LinearStep({"model": own, "before": {"model": 1.0}}, {"model": weights})

        alpha = -self.parameters.step_size
        return LinearMap(released, {"model": alpha, "before": alpha}, step, {"model": "model"}, self.shared)

    def models(self, state: State) -> Array:
        """Every agent's estimate of the average."""
        return state.agent["model"].rows

    @cached_property
    def _objective(self) -> SquaredErrorOfAverage:
        task = self.problem.task
        values = [-self.parameters.step_size * self._gradient(task.shard(agent)) for agent in range(task.agents)]
        return SquaredErrorOfAverage(np.array(values))

    def objective(self) -> SquaredErrorOfAverage:
        """Squared error against the average of the exact values, clipped as they are."""
        return self._objective

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (
            last_sent_is_kept("model", "model", "Cyffers et al. 2022, algorithm 1: what is mixed is what was sent"),
        )


def momentum(graph: Graph, weights: Array) -> float:
    """Gamma of algorithm 1, in [1, 2), from the spectral gap of W = I - diag(sum_j w_ij) + (w_ij).

    Of a graph in parts, the gap of the part that mixes most slowly; 1 where nothing is mixed.
    """
    matrix = np.zeros((graph.agents, graph.agents))
    matrix[graph.tails, graph.heads] = weights
    matrix[np.diag_indices(graph.agents)] = 1.0 - matrix.sum(axis=1)
    gaps = 1.0 - np.linalg.eigvalsh(matrix)
    if not (gaps > 1e-9).any():
        return 1.0
    gap = min(1.0, float(gaps[gaps > 1e-9].min()))
    return 2.0 * (1.0 - math.sqrt(gap * (1.0 - gap / 4.0))) / (1.0 - gap / 2.0) ** 2
