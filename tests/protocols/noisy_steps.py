"""Protocols whose steps draw noise of any mechanism, of a scale that differs by agent."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.privacy.mechanisms import Release, noise_of
from hushnet.protocols.steps import average, batched, local_gradient, perturbed
from hushnet.protocols.steps.declarations import NO_DATA, StepNoise

MECHANISMS = ("laplace", "gaussian", "gamma")
BOUND = 0.7


class NoisyParameters(ProtocolParameters):
    """Mechanism of the noise, and the norm to which gradients of examples are clipped."""

    kind: str = "noisy"
    mechanism: Literal["laplace", "gaussian", "gamma"] | None = "laplace"
    norm: Literal["l1", "l2"] | None = "l2"


class Fixed(StepNoise):
    """Noise for a claimed sensitivity.

    Parameters
    ----------
    given : NoisyParameters
    agents : int
    """

    def __init__(self, given, agents):
        self.given, self.amounts = given, 1.0 + np.arange(float(agents))

    @property
    def mechanism(self):
        return self.given.mechanism

    @property
    def clip(self):
        return None if self.given.norm is None else (self.given.norm, BOUND)

    def scales(self):
        return self.amounts[:, None]

    def release(self, me):
        if not len(me.data) or self.mechanism is None:
            return Release.public(me.agent, me.now, NO_DATA, recipients=len(me.neighbours))
        return Release(
            me.agent,
            me.now,
            self.mechanism,
            noise_of(self.mechanism).norm,
            sensitivity=1.0,
            sensitivity_source="claimed",
            verified_sensitivity=math.inf,
            scale=float(self.amounts[me.agent]),
            claimed_epsilon=1.0,
            claimed_delta=0.0,
            recipients=len(me.neighbours),
        )


class Noisy(Protocol):
    """Averages with its neighbours, and follows a noisy gradient."""

    Parameters = NoisyParameters

    def prepare(self):
        self.step_noise = Fixed(self.parameters, self.problem.task.agents)

    def layout(self):
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p, "met": 1}, edge={"gap": p, "count": 1}, messages={"model": MessageKind(p, "model")}
        )

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))

    @staticmethod
    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        me.model = 0.5 * (me.model + average(me)) - 0.1 * gradient
        me.message = me.model


class NoisyTogether(Noisy):
    """The same in batches."""

    @staticmethod
    @batched
    def step(me):
        Noisy.step(me)


class NoisyPairs(Noisy):
    """Draws in both halves of an exchange."""

    traits = Traits(exchange="pairwise")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"request": MessageKind(p), "reply": MessageKind(p)})

    def start(self, me):
        """Begin at zero."""

    @staticmethod
    def request(me, partner):
        me.message = perturbed(me, me.model)

    @staticmethod
    def respond(me, partner, heard):
        me.message = perturbed(me, me.model + 1.0)
        me.model = (me.model + heard) / 2

    @staticmethod
    def complete(me, partner, heard):
        me.model = (me.model + heard) / 2


class NoisyPairsTogether(NoisyPairs):
    """The same in batches."""

    @staticmethod
    @batched
    def request(me):
        NoisyPairs.request(me, None)

    @staticmethod
    @batched
    def respond(me, heard):
        NoisyPairs.respond(me, None, heard)

    @staticmethod
    @batched
    def complete(me, heard):
        NoisyPairs.complete(me, None, heard)
