"""A private protocol over samples, written twice, with any mechanism, to plant mistakes of noise and samples in.

Every agent averages with its neighbours and follows a clipped, perturbed gradient over a sample of its rows.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hushnet.agents.losses import clipped_gradient
from hushnet.agents.tables import Shard
from hushnet.protocols.algorithms.subgradient_noise import SubgradientNoise, drawn_gradient, drawn_rows
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.privacy.budget import Privacy
from hushnet.protocols.privacy.mechanisms import noise_of
from hushnet.protocols.steps import average, perturbed
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.contract.verdict import judged
from hushnet.simulator.engine.selection import engine_for
from hushnet.simulator.world.world import World

MECHANISMS = ("laplace", "gaussian", "gamma")


def by_turns(cases):
    """Pairs of a case and a mechanism: every case under one, which change by turns, and slowly under the others."""
    return [
        pytest.param(case, mechanism, marks=[pytest.mark.slow] * ((rank - turn) % len(MECHANISMS) > 0))
        for rank, case in enumerate(cases)
        for turn, mechanism in enumerate(MECHANISMS)
    ]


class GossipParameters(ProtocolParameters):
    kind: str = "gossip"
    privacy: Privacy | None = None
    sampling: Literal["uniform", "poisson", "full"] = "full"
    batch: int = 1


class AnyNoise(SubgradientNoise):
    """Noise of the mechanism that a scenario names, for samples."""

    @property
    def mechanism(self):
        return None if self.privacy is None else self.privacy.mechanism

    def release(self, me):
        usual = super().release(me)
        if not usual.noisy:
            return usual
        return replace(usual, mechanism=self.mechanism, norm=noise_of(self.mechanism).norm)


class Texts(Protocol):
    """As a step function of operators."""

    Parameters = GossipParameters

    def prepare(self):
        given = self.parameters
        self.step_noise = AnyNoise(
            given.privacy, self.problem.task, sampling=given.sampling, batch=given.batch, radius=None
        )

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))

    def most_steps(self):
        return self.parameters.privacy.updates

    @staticmethod
    def step(me: Any):
        """Sample, gradient, noise, mixing."""
        rows = drawn_rows(me)
        noisy = perturbed(me, drawn_gradient(me, me.model, rows))
        if me.degree > 0:
            me.model = (me.model + average(me)) / 2
        me.model -= 0.1 * noisy
        me.message = me.model


class Methods(Texts):
    """The same by methods."""

    decides = True
    asks_for_budget = True

    def rows(self, me):
        """(k,) ranks of the sample."""
        stream, count, given = me.stream("sampling"), len(me.data), self.parameters
        if given.sampling == "full":
            return np.arange(count)
        if given.sampling == "poisson":
            return np.flatnonzero(stream.random(count) < min(1.0, given.batch / count))
        return stream.choice(count, min(given.batch, count), replace=False)

    def noisy(self, me, release, exact):
        """(p,) the gradient with the release's noise."""
        return release.perturb(exact, rng=me.stream("noise"))

    def step(self, me):
        release = self.step_noise.release(me)
        if me.updates >= (self.most_steps() or np.inf) or not me.reserve(release):
            return me.fall_silent()
        rows, model = np.asarray(self.rows(me), dtype=np.int64), me.model
        shard = Shard(me.data.features[rows], me.data.labels[rows])
        usual = len(me.data) if self.parameters.sampling == "full" else min(self.parameters.batch, len(me.data))
        gradient = clipped_gradient(model, shard, self.problem.task.loss, 0.0, *self.step_noise.clip)
        noisy = self.noisy(me, release, len(rows) / usual * gradient)
        if len(me.neighbours):
            model[:] = (model + me.weights @ me.heard / me.weights.sum()) / 2
        model -= 0.1 * noisy
        me.send("model", model, release)
        return None


def fields_of(mechanism, **fields):
    """A protocol's parameters."""
    return {"privacy": {"mechanism": mechanism, "multiplier": 2.0, "updates": 8, "clip": 0.5}, **fields}


def verdict_of(protocol, fields, *, engine="event", seed=7):
    """What `hushnet run` finds about a protocol whose own world has eight agents."""
    parameters = protocol_parameters(protocol, fields)

    def make(setting, watch):
        world = World(setting, protocol, parameters, watch=watch)
        return world, engine_for(engine, world)

    return judged(protocol, parameters, small_setting(agents=8, time=10.0, empty=False, seed=seed), make, engine)


@contextmanager
def drawing(change):
    """Mechanisms draw what ``change(usual, size, scale, rng)`` gives, where ``usual(size, scale)`` draws as they do."""
    kinds = {name: type(noise_of(name)) for name in MECHANISMS}
    before = {name: kind.draw for name, kind in kinds.items()}

    def replaced(name):
        def draw(self, size, scale, *, rng):
            return change(lambda size, scale: before[name](self, size, scale, rng=rng), size, scale, rng)

        return draw

    try:
        for name, kind in kinds.items():
            kind.draw = replaced(name)
        yield
    finally:
        for name, kind in kinds.items():
            kind.draw = before[name]
