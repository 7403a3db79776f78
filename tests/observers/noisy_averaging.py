"""Averaging with fresh noise at every step: many releases an agent, of a value that depends on its own data alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Literal

import numpy as np
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.linear_map import LinearMap, LinearStep
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.privacy.budget import Privacy
from hushnet.protocols.steps import Constants, batched, local_gradient, mixed, mixing_weights, perturbed

HALF = 0.5
"""Weight of what is mixed; the rest is that of the agent's own noisy value."""


class NoisyAveragingParameters(ProtocolParameters):
    kind: Literal["noisy_averaging"] = "noisy_averaging"
    privacy: Privacy | None = None
    rounds: int = 3


class NoisyAveraging(Protocol):
    Parameters = NoisyAveragingParameters
    learns = "linear"

    @classmethod
    def traits_for(cls, parameters):
        return Traits(trigger="round", inbox="per_round") if parameters.schedule is None else Traits()

    def prepare(self):
        self.weights = mixing_weights(self.problem.graph, "metropolis")
        self.step_noise = GradientNoise(self.parameters.privacy, self.problem.task)

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p, "origin": p}, messages={"model": MessageKind(p)})

    def start(self, me):
        """Begin at zero; nothing is sent."""

    def constants(self):
        return Constants(edge={"mixing": self.weights})

    @staticmethod
    @batched
    def step(me):
        following = HALF * mixed(me, me.model, me.mixing * me.was_heard)
        me.model = following + (1 - HALF) * perturbed(me, local_gradient(me, me.origin))
        me.message = me.model

    def most_steps(self):
        return self.parameters.rounds

    def linear_map(self):
        task, graph = self.problem.task, self.problem.graph

        def released(agent, number):
            me = {"agent": agent, "now": 0.0, "data": task.shard(agent), "neighbours": graph.neighbours(agent)}
            return self.step_noise.release(SimpleNamespace(**me, updates=number)) if number >= 0 else None

        def step(agent, heard):
            weights = HALF * self.weights[graph.edges_of(agent)] * heard
            own = {"model": {"model": HALF - float(weights.sum())}}
            return LinearStep(own, {"model": weights}, {"model": 1 - HALF})

        return LinearMap(released, {}, step, {"model": "model"})

    def models(self, state):
        return state.agent["model"].rows


class StatesOneRelease(NoisyAveraging):
    """A map that leaves out all releases but each agent's first."""

    def linear_map(self):
        honest = super().linear_map()
        first = lambda agent, number: honest.released(agent, number) if number == 0 else None  # noqa: E731
        return LinearMap(first, honest.start, honest.step, honest.sent)


def averaging(graph, rounds, *, run, **given):
    """A world that averages with noise of multiplier 2 at every step."""
    privacy = {"mechanism": "gaussian", "multiplier": 2.0, "clip": 0.2, "updates": rounds}
    fields = {"rounds": rounds, "privacy": privacy, **given.pop("fields", {})}
    return run(graph, fields, protocol=given.pop("protocol", NoisyAveraging), **given)


def bounds_of(basis, shifts, owners, agents):
    """(n,) squares by a basis in order of time, as in the issue; and those of data that move all values alike."""
    above = np.array([((np.abs(basis) * shifts * (owners == u)).sum(axis=1) ** 2).sum() for u in range(agents)])
    below = np.array([((basis * shifts * (owners == u)).sum(axis=1) ** 2).sum() for u in range(agents)])
    return above, below
