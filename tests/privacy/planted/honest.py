"""Honest private protocols, written from the documentation: none of them may be refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hushnet.agents.clipping import clip_rows, norms
from hushnet.agents.tables import Shard
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.privacy.budget import Privacy
from hushnet.protocols.steps import (
    Constants,
    affords,
    average,
    clipped,
    local_gradient,
    loss_gradient,
    perturbed,
    perturbed_minimiser,
    post_processed,
)

from .base import Descent, Waking, gradients, variant
from .harness import ADJACENCIES, NOISES, SAMPLINGS, Case
from .objectives import MU, Objective


class GossipParameters(ProtocolParameters):
    """What a scenario may set."""

    step_size: float = 0.1
    privacy: Privacy | None = None


class PrivateGossip(Protocol):
    """The tutorial's private gossip."""

    Parameters = GossipParameters

    def prepare(self):
        privacy = self.parameters.privacy
        self.updates = privacy.updates if privacy is not None else None
        shares = np.full(self.updates, 1 / self.updates) if self.updates else None
        self.step_noise = GradientNoise(privacy, self.problem.task, weights=shares)

    def constants(self):
        return Constants(run={"limit": self.updates or math.inf})

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("the start does not depend on data"))

    @staticmethod
    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        if me.degree > 0:
            me.model = (me.model + average(me)) / 2
        me.model -= me.step_size * gradient
        me.message = me.model
        return me.updates + 1 >= me.limit


class InRounds(PrivateGossip):
    """Behind a neighbour barrier."""

    traits = Traits(trigger="round", inbox="per_round")


class Relaying(PrivateGossip):
    """Every other step follows from what was released and heard, and costs nothing."""

    @staticmethod
    def step(me):
        if me.updates % 2 == 0:
            if not affords(me):
                return True
            me.model -= me.step_size * perturbed(me, local_gradient(me, me.model))
        else:
            if me.degree > 0:
                me.model = (me.model + average(me)) / 2
            post_processed(me)
        me.message = me.model
        return me.updates + 1 >= 2 * me.limit


class Exchanging(PrivateGossip):
    """Noisy gradients between exchanges in pairs."""

    traits = Traits(exchange="pairwise", unanswered="give_up")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"request": MessageKind(p), "reply": MessageKind(p)})

    def start(self, me):
        if not len(me.neighbours):
            me.fall_silent()

    @staticmethod
    def request(me, partner):
        me.model -= me.step_size * perturbed(me, local_gradient(me, me.model))
        me.message = me.model

    @staticmethod
    def respond(me, partner, heard):
        me.model -= me.step_size * perturbed(me, local_gradient(me, me.model))
        me.message = me.model
        me.model = (me.model + heard) / 2

    @staticmethod
    def complete(me, partner, heard):
        me.model = (me.model + heard) / 2


class TwoReleases(PrivateGossip):
    """Two noisy gradients a step, one after the other."""

    @staticmethod
    def step(me):
        me.model -= me.step_size * perturbed(me, local_gradient(me, me.model))
        me.model -= me.step_size * perturbed(me, loss_gradient(me, me.model))
        me.model = (me.model + average(me)) / 2 if me.degree > 0 else me.model
        me.message = me.model
        return 2 * (me.updates + 1) >= me.limit


class SeveralKinds(PrivateGossip):
    """A model, a noisy gradient and a count of steps, which nobody has to protect."""

    def layout(self):
        p = self.problem.task.dimension
        kinds = {"model": MessageKind(p, mirrors="model"), "gradient": MessageKind(p), "steps": MessageKind(1)}
        return Layout(agent={"model": p}, messages=kinds)

    @staticmethod
    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        if me.degree > 0:
            me.model = (me.model + average(me)) / 2 - me.step_size * me.heard_gradient.sum(axis=0) / 10
        me.model -= me.step_size * gradient
        me.message_model = me.model
        me.message_gradient = gradient
        me.message_steps = me.updates + 1
        return me.updates + 1 >= me.limit


class Addressed(PrivateGossip):
    """Every neighbour is sent its own share of a noisy model."""

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, addressed=True)})

    def start(self, me):
        pass

    @staticmethod
    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        heard = me.heard.sum(axis=0) / max(1, me.degree)
        me.model = (me.model + heard) / 2 - me.step_size * gradient
        me.message = np.outer(np.arange(1, me.degree + 1) / max(1, me.degree), me.model)
        return me.updates + 1 >= me.limit


def momentum(me, vector):
    """A moving sum of noisy gradients."""
    me.velocity = 0.9 * me.velocity + perturbed(me, vector)
    return me.velocity


def two_of_a_sample(me, vector):
    """A second look at the rows of the step, with noise of its own."""
    return (perturbed(me, vector) + perturbed(me, vector)) / 2


def of_signs(me):
    """The signs of the model, after noise: one bit each."""
    return np.sign(me.model) * np.abs(me.model).max()


def largest_only(me):
    """The largest coordinate of what neighbours do not know yet, as Choco sends it."""
    gap = me.model - me.copy
    kept = np.where(np.abs(gap) >= np.abs(gap).max(), gap, 0.0)
    me.copy = me.copy + kept
    return me.copy


def adaptive(me, vector):
    """Steps by the sizes of the noisy gradients so far."""
    noisy = perturbed(me, vector)
    me.velocity = me.velocity + noisy * noisy
    return noisy / np.sqrt(1e-8 + me.velocity)


def clipped_once_more(me, vector):
    """Noisy gradients are clipped again, after the noise."""
    return clipped(perturbed(me, vector), 1.0)


def mean_of_rows(me, ranks):
    """The mean of clipped features, with labels as signs: no gradient."""
    rows = me.labels[ranks][:, None] * me.features[ranks]
    return clip_rows(rows, me.clip, "l1" if me.l1 else "l2").sum(axis=0) / me.parts


def normalised(me, ranks):
    """Gradients of norm exactly the bound, wherever they are not 0."""
    rows = gradients(me, ranks)
    longer = np.where((norms(rows) > 1e-9)[:, None], rows * 1e12, 0.0)
    return clip_rows(np.nan_to_num(longer), me.clip, "l1" if me.l1 else "l2").sum(axis=0) / me.parts


class Decaying(Waking):
    """Less noise from step to step, as planned in public."""

    def terms(self, me):
        found = super().terms(me)
        return {**found, "scale": found["scale"] * 0.9**me.updates}


class Once(Waking):
    """The mean of clipped rows, released once; neighbours then mix what they heard."""

    def step(self, me):
        own = me.model
        if me.updates == 0:
            release = self.release(me)
            if not me.reserve(release):
                me.fall_silent()
                return
            rows = clip_rows(me.data.labels[:, None] * me.data.features, self.parameters.privacy.clip, release.norm)
            exact = rows.sum(axis=0) / self.parts(len(me.data))
            own[:] = release.perturb(exact, rng=me.stream("noise"))
            me.send("model", own, release)
        elif len(me.neighbours):
            own[:] = (own + me.heard.mean(axis=0)) / 2
            me.send("model", own, me.post_processing())
        if me.updates >= 9:
            me.fall_silent()


class OfLabels(Descent):
    """Features are protected; labels are listed as public, and neighbours share them."""

    shared_parts = ("labels",)
    assumed_public = ("labels of the perturbed examples",)


class ByWord(Objective):
    """Objective perturbation by the operator, which knows the Jacobian."""

    decides = False
    observer = "all neighbours"

    @staticmethod
    def step(me):
        goal = average(me) if me.degree > 0 else me.model
        me.model = perturbed_minimiser(me, 1.0, MU, MU * goal, me.model, 1e-11, 1.0)
        me.message = me.model
        return me.updates + 1 >= me.limit


class OutputOnce(Waking):
    """Local minimisers with noise on the result, by a bound that strong convexity gives."""

    def local_data(self, agent, shard):
        return Shard(clip_rows(shard.features, 1.0), shard.labels)

    def terms(self, me):
        found, count = super().terms(me), max(1, len(me.data))
        bound = 2 * self.problem.task.loss.lipschitz / count * (1 + 1e-6)
        bound *= math.sqrt(self.problem.task.dimension) if found["norm"] == "l1" else 1.0
        scale = self.parameters.privacy.multiplier * (bound if math.isfinite(bound) else 1.0)
        return {**found, "sensitivity": bound, "verified_sensitivity": bound, "scale": scale}

    def exact(self, me):
        from hushnet.agents.optimisation.solvers import minimise_local

        zero = np.zeros(self.problem.task.dimension)
        how = {"weight": 1.0, "curvature": 1.0, "linear": zero, "start": zero, "tolerance": 1e-12}
        return minimise_local(me.data, self.problem.task.loss, **how)[0]


class Disclosing(Waking):
    """Sends a sum of two noisy values under one name, and discloses the other."""

    def noisy(self, me, release, exact):
        rng, beside = me.stream("noise"), replace(release)
        noisy = release.perturb(exact / 2, rng=rng) + beside.perturb(exact / 2, rng=rng)
        me.disclose(beside)
        return noisy


def honest(name: str, what: str, protocol: type[Protocol], mechanisms=NOISES, **more: Any) -> Case:
    return Case(name, "honest", protocol, what, mechanisms, **more)


EVERYWHERE: dict[str, Any] = {"samplings": SAMPLINGS, "adjacencies": ADJACENCIES}
TARGET = {"multiplier": None, "target": {"verified": 3.0, "delta": 1e-3}, "sensitivity": "clip"}
BUDGET = {"multiplier": None, "budget": {"epsilon": 2.0, "delta": 1e-3, "by": "advanced_composition"}}
BASIC = {"multiplier": None, "budget": {"epsilon": 2.0, "delta": 0.0, "by": "basic_composition"}}
ALONE = {"topology": {"kind": "erdos_renyi", "probability": 0.15, "allow_isolated": True, "allow_disconnected": True}}
OF_A_NET = {"task.model": {"kind": "perceptron", "hidden": [3]}}

HONEST = [
    honest("descent", "the base of all mistakes", Descent, **EVERYWHERE),
    honest("descent-by-method", "the same as a method", Waking, samplings=("full",), adjacencies=ADJACENCIES),
    honest("tutorial", "the tutorial's, by a target", PrivateGossip, privacy=TARGET),
    honest("tutorial-budget", "by a budget and advanced composition", PrivateGossip, privacy=BUDGET),
    honest("tutorial-basic", "by a pure budget", PrivateGossip, ("laplace", "gamma"), privacy=BASIC),
    honest(
        "tutorial-radius",
        "by a declared radius",
        PrivateGossip,
        privacy={"clip": None, "sensitivity": "data_check", "radius": 4.0},
    ),
    honest("of-a-net", "the tutorial's, with rows of a net that are clipped", PrivateGossip, scenario=OF_A_NET),
    honest("rounds", "behind a barrier", InRounds),
    honest(
        "rounds-with-patience",
        "likewise, with patience",
        InRounds,
        fields={"schedule": {"kind": "rounds", "patience": 2.0}},
    ),
    honest("relaying", "gossip with post-processing", Relaying),
    honest("relaying-alone", "likewise where agents have no neighbours", Relaying, scenario=ALONE),
    honest("exchanging", "exchanges in pairs", Exchanging),
    honest("two-releases", "two releases a step", TwoReleases),
    honest("several-kinds", "several kinds of messages", SeveralKinds),
    honest("addressed", "every neighbour its own message", Addressed),
    honest(
        "momentum",
        "momentum on noisy gradients",
        variant("Momentum", parts={"noisy": momentum}, blocks=("velocity",)),
        **EVERYWHERE,
    ),
    honest(
        "adaptive",
        "steps by noisy sizes",
        variant("Adaptive", parts={"noisy": adaptive}, blocks=("velocity",)),
        samplings=SAMPLINGS,
    ),
    honest("two-looks", "two draws on one sample", variant("TwoLooks", parts={"noisy": two_of_a_sample})),
    honest("signs", "signs of noisy models", variant("Signs", parts={"send": of_signs})),
    honest("choco", "the largest coordinate alone", variant("Choco", parts={"send": largest_only}, blocks=("copy",))),
    honest(
        "clipped-after",
        "clipped again after the noise",
        variant("After", parts={"noisy": clipped_once_more}),
        samplings=SAMPLINGS,
    ),
    honest("mean-of-rows", "means of rows", variant("MeanOfRows", parts={"value": mean_of_rows}), **EVERYWHERE),
    honest(
        "normalised", "gradients of norm the bound", variant("Normalised", parts={"value": normalised}), **EVERYWHERE
    ),
    honest("decaying", "less noise from step to step", Decaying),
    honest("once", "rows once, then post-processing", Once),
    honest("once-alone", "likewise where agents have no neighbours", Once, scenario=ALONE),
    honest("labels-shared", "labels are listed as public", OfLabels),
    honest("objective", "noise in the objective, and its Jacobian", Objective, ("laplace", "gamma")),
    honest("objective-by-word", "likewise, by the operator", ByWord, ("laplace", "gamma")),
    honest("output", "noise on minimisers", OutputOnce, privacy={"updates": 1}),
    honest("disclosing", "two noisy values in one message", Disclosing),
    honest("long", "a long run", Descent, ("gaussian",), privacy={"updates": 60}, scenario={"stop.time": 40}),
    honest(
        "swept",
        "a sweep over sizes",
        Descent,
        scenario={"sweep": {"task.agents": [6, 8]}},
        samplings=("full", "poisson"),
    ),
    honest("seeds", "three seeds", Descent, scenario={"seeds": 3}, samplings=("full", "fixed")),
]
