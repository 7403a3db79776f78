"""Toy protocols of the five families that the contract has to carry; the mathematics is as small as it can be."""

from __future__ import annotations

from typing import Literal

import numpy as np
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits


class SketchParameters(ProtocolParameters):
    """No parameters."""

    kind: Literal["sketch"]


class PassiveBroadcast(Protocol):
    """Average with what was heard, then move towards the own data's mean."""

    decides = True

    Parameters = SketchParameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))

    def step(self, me):
        model = me.model
        if len(me.neighbours):
            model[:] = me.weights @ me.heard / me.weights.sum()
        if len(me.data):
            model += 0.1 * (me.data.features.mean(axis=0) - model)
        me.send("model", model, me.plain("the mean of the rows"))


class PairwiseExchange(Protocol):
    """Gossip averaging of data means; each end of an edge keeps what it got over it: late replies keep the mean."""

    decides = True

    Parameters = SketchParameters
    traits = Traits(exchange="pairwise")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p},
            edge={"moved": p},
            messages={"request": MessageKind(p, vectors=1), "reply": MessageKind(p, vectors=1)},
        )

    def start(self, me):
        if len(me.data):
            me.model = me.data.features.mean(axis=0)

    def request(self, me, partner):
        me.send("request", me.model, me.plain(), to=int(me.neighbours[partner]))

    def respond(self, me, partner, vector):
        moved = (vector - me.model) / 2
        me.send("reply", moved, me.plain(), to=int(me.neighbours[partner]))
        me.model += moved
        me.moved[partner] += moved

    def complete(self, me, partner, vector):
        me.model -= vector
        me.moved[partner] -= vector


class NeighbourBarrier(Protocol):
    """Synchronous averaging with equal weights: one matrix product a round."""

    decides = True

    Parameters = SketchParameters
    traits = Traits(trigger="round", inbox="per_round")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        if len(me.data):
            me.model = me.data.features.mean(axis=0)
        me.send("model", me.model, me.plain("the mean of the rows"))

    def step(self, me):
        heard = me.heard
        me.model = (me.model + heard.sum(axis=0)) / (1 + len(heard))
        me.send("model", me.model, me.plain("an average of means"))


class Star(Protocol):
    """Parties send their count of rows to a centre, which answers every message with the sum that it knows."""

    decides = True

    Parameters = SketchParameters
    traits = Traits(trigger="message", inbox="every")

    def layout(self):
        n = self.problem.task.agents
        return Layout(
            agent={"total": 1},
            edge={"part": 1},
            messages={"part": MessageKind(1), "total": MessageKind(1)},
            roles=["centre"] + ["party"] * (n - 1),
        )

    def start(self, me):
        return

    def step(self, me):
        if me.role == "party":
            for neighbour in me.neighbours:
                me.send("part", np.array([float(len(me.data))]), me.plain("a count of rows"), to=int(neighbour))

    def react(self, me, message):
        if me.role == "centre" and message.kind == "part":
            rank = int(np.searchsorted(me.neighbours, message.sender))
            me.part[rank] = message.vector[0]
            me.total = me.part.sum()
            me.send("total", me.total, me.plain("a sum of counts"), to=message.sender)
        elif message.kind == "total":
            me.total = message.vector[0]


class UnevenParties(Protocol):
    """Each party models only its own columns: blocks and messages whose widths differ by agent."""

    decides = True

    Parameters = SketchParameters

    def prepare(self):
        self.columns = 1 + np.arange(self.problem.task.agents) % self.problem.task.dimension

    def local_data(self, agent, shard):
        return type(shard)(shard.features[:, : self.columns[agent]], shard.labels)

    def layout(self):
        return Layout(agent={"model": self.columns}, messages={"model": MessageKind(self.columns)})

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))

    def step(self, me):
        model = me.model
        if len(me.data):
            model += 0.5 * (me.data.features.mean(axis=0) - model)
        model += 0.01 * sum(float(vector.sum()) for vector in me.heard)
        me.send("model", model, me.plain("a mean of columns"))


FAMILIES = {
    "passive broadcast": PassiveBroadcast,
    "pairwise exchange with edge variables": PairwiseExchange,
    "neighbour-barrier rounds": NeighbourBarrier,
    "a star with a centre": Star,
    "parties of different widths": UnevenParties,
}
