"""Coordinate descent on locally perturbed examples (Bellet, Guerraoui, Taziki, Tommasi 2018, appendix D.1).

The appendix asks whether collaboration helps where every example was perturbed once: it runs the collaborative
algorithm on what `hushnet.protocols.algorithms.local_dp` learns from. An agent perturbs the features of its examples
before its first step, is charged once for that, and then makes update (4) on them without further noise,

    Theta_i <- (1 - alpha) Theta_i + alpha (sum_j W_ij Theta_j / D_ii - mu c_i L~_i'(Theta_i)),

where L~_i is its loss on the perturbed examples and alpha = 1 / (1 + mu c_i L_loc). All that it tells its neighbours
follows from rows that were released already, and costs nothing more; so does L_loc, which comes from those rows.

Where we depart: the paper does not say what happens to labels. Here they are kept, and listed among the inputs that are
treated as public. The objective that is recorded is (2) on the agents' true examples.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import override

from ...agents.losses import spectral_smoothness
from ...agents.objectives.objectives import GraphRegularised, Objective
from ...agents.parameters import Positive, Size
from ...agents.tables import Shard
from ..base import Layout, MessageKind, Problem
from ..context import Context, check_length
from ..invariants import Declared, last_sent_is_kept
from ..privacy.mechanisms import Release
from .coordinate_descent import Confidence, CoordinateDescent, assumed_of, check_smooth, confidences
from .local_dp import LocalDP, LocalDPParameters

FOLLOWS = "it follows from examples that were perturbed, and charged, before"
"""Why what an agent tells its neighbours costs nothing more."""


class LocalDPDescentParameters(LocalDPParameters):
    """Coordinate descent on examples that were perturbed once: local differential privacy (Bellet et al. 2018)."""

    kind: Literal["local_dp_descent"]  # pyright: ignore[reportIncompatibleVariableOverride]
    mu: Positive = 0.04
    """Trade-off between own data and agreement with neighbours; larger trusts own data more."""
    confidence: Confidence = "count"
    """c_i: m_i / max m (``relative``, as printed), m_i (``count``), or one value per agent."""
    updates: Size | None = None
    """An agent stops after so many updates of its own."""


class LocalDPDescent(LocalDP):
    """Coordinate descent on perturbed examples; see the module's docstring."""

    Parameters = LocalDPDescentParameters
    parameters: LocalDPDescentParameters  # pyright: ignore[reportIncompatibleVariableOverride]

    @classmethod
    @override
    def check_scenario(cls, parameters: LocalDPDescentParameters, context: Context) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().check_scenario(parameters, context)
        check_smooth(context.task.loss)
        check_length(parameters.confidence, context.task.agents, "confidence")

    @override
    def prepare(self) -> None:
        """The perturbed rows of all agents, where there is a run to draw their noise."""
        super().prepare()
        task = self.problem.task
        check_smooth(task.loss)
        self.confidence = confidences(self.parameters.confidence, task)
        self.rows: list[Shard] | None = None
        if self.problem.stream is not None:
            self.rows = [self._perturbed(self.problem, agent, task.shard(agent)) for agent in range(task.agents)]

    def _perturbed(self, problem: Problem, agent: int, shard: Shard) -> Shard:
        assert problem.stream is not None
        if len(shard) == 0:
            return shard
        release, features = self.release_of(agent, 0.0, 0), shard.features
        if release.noisy:
            features = self._within_bound(features, agent)
        return Shard(release.perturb(features, rng=problem.stream("perturbed examples", agent)), shard.labels)

    @override
    def local_data(self, agent: int, shard: Shard) -> Shard:
        """The perturbed examples, which are the same all through a run."""
        return shard if self.rows is None else self.rows[agent]

    @override
    def layout(self) -> Layout:
        """Model, step size alpha and mu c_i of each agent; one broadcast kind."""
        p = self.problem.task.dimension
        return Layout(agent={"model": p, "alpha": 1, "mu_c": 1}, messages={"model": MessageKind(p, mirrors="model")})

    @override
    def start(self, me: Any) -> None:
        """Pay for the perturbed examples, and begin at zero."""
        mu_c = self.parameters.mu * self.confidence[me.agent]
        me.mu_c = mu_c
        smoothness = 0.0
        if len(me.data):
            release = self._release(me)
            me.reserve(release)
            me.disclose(release)
            regularisation = float(self.problem.task.regularisation[me.agent])
            smoothness = spectral_smoothness(me.data.features, self.problem.task.loss, regularisation)
        me.alpha = 1 / (1 + mu_c * smoothness)
        me.send("model", me.model, me.public("the start does not depend on data"))

    @override
    def most_steps(self) -> float | None:
        """The number of an agent's updates."""
        return self.parameters.updates

    step = staticmethod(CoordinateDescent.step)

    @override
    def release(self, me: Any) -> Release:
        """Nothing more: what a step says follows from the perturbed examples."""
        return Release.public(me.agent, me.now, FOLLOWS, recipients=len(me.neighbours))

    @override
    def invariants(self) -> Declared:
        """An agent goes on from the very model that it has sent."""
        return (last_sent_is_kept("model", "model", "Bellet et al. 2018, (4): the new block is what is broadcast"),)

    @override
    def objective(self) -> Objective:
        """Objective (2) on the task's own data."""
        return GraphRegularised(self.problem.task, self.problem.graph, self.parameters.mu, self.confidence)

    @property
    @override
    def assumed_public(self) -> tuple[str, ...]:
        """Labels, and confidences where they come from the data."""
        return super().assumed_public + assumed_of(self.parameters.confidence)
