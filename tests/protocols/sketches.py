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

    Parameters = SketchParameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, view, out):
        out.send("model", view.state["model"], out.public("zeros"))

    def wake(self, view, out):
        model = view.state["model"]
        if len(view.neighbours):
            model[:] = view.weights @ view.received("model") / view.weights.sum()
        if len(view.data):
            model += 0.1 * (view.data.features.mean(axis=0) - model)
        out.send("model", model, out.plain("the mean of the rows"))


class PairwiseExchange(Protocol):
    """Gossip averaging of data means; each end of an edge keeps what it got over it: late replies keep the mean."""

    Parameters = SketchParameters
    traits = Traits(exchange="pairwise")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p},
            edge={"moved": p},
            messages={"request": MessageKind(p, vectors=1), "reply": MessageKind(p, vectors=1)},
        )

    def start(self, view, out):
        if len(view.data):
            view.state["model"][:] = view.data.features.mean(axis=0)

    def make_request(self, view, partner, out):
        out.send("request", view.state["model"], out.plain(), to=int(view.neighbours[partner]))

    def make_response(self, view, partner, vector, out):
        moved = (vector - view.state["model"]) / 2
        out.send("reply", moved, out.plain(), to=int(view.neighbours[partner]))
        view.state["model"] += moved
        view.edge["moved"][partner] += moved

    def complete_exchange(self, view, partner, vector):
        view.state["model"] -= vector
        view.edge["moved"][partner] -= vector


class NeighbourBarrier(Protocol):
    """Synchronous averaging with equal weights: one matrix product a round."""

    Parameters = SketchParameters
    traits = Traits(trigger="round", inbox="per_round")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, view, out):
        if len(view.data):
            view.state["model"][:] = view.data.features.mean(axis=0)
        out.send("model", view.state["model"], out.plain("the mean of the rows"))

    def wake(self, view, out):
        heard = view.received("model")
        view.state["model"][:] = (view.state["model"] + heard.sum(axis=0)) / (1 + len(heard))
        out.send("model", view.state["model"], out.plain("an average of means"))


class Star(Protocol):
    """Parties send their count of rows to a centre, which answers every message with the sum that it knows."""

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

    def start(self, view, out):
        return

    def wake(self, view, out):
        if view.role == "party":
            for neighbour in view.neighbours:
                out.send("part", np.array([float(len(view.data))]), out.plain("a count of rows"), to=int(neighbour))

    def receive(self, view, message, out):
        if view.role == "centre" and message.kind == "part":
            rank = int(np.searchsorted(view.neighbours, message.sender))
            view.edge["part"][rank] = message.vector
            view.state["total"][0] = view.edge["part"].sum()
            out.send("total", view.state["total"], out.plain("a sum of counts"), to=message.sender)
        elif message.kind == "total":
            view.state["total"][:] = message.vector


class UnevenParties(Protocol):
    """Each party models only its own columns: blocks and messages whose widths differ by agent."""

    Parameters = SketchParameters

    def prepare(self):
        self.columns = 1 + np.arange(self.problem.task.agents) % self.problem.task.dimension

    def local_data(self, agent, shard):
        return type(shard)(shard.features[:, : self.columns[agent]], shard.labels)

    def layout(self):
        return Layout(agent={"model": self.columns}, messages={"model": MessageKind(self.columns)})

    def start(self, view, out):
        out.send("model", view.state["model"], out.public("zeros"))

    def wake(self, view, out):
        model = view.state["model"]
        if len(view.data):
            model += 0.5 * (view.data.features.mean(axis=0) - model)
        model += 0.01 * sum(float(vector.sum()) for vector in view.received("model"))
        out.send("model", model, out.plain("a mean of columns"))


FAMILIES = {
    "passive broadcast": PassiveBroadcast,
    "pairwise exchange with edge variables": PairwiseExchange,
    "neighbour-barrier rounds": NeighbourBarrier,
    "a star with a centre": Star,
    "parties of different widths": UnevenParties,
}
