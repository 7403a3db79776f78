"""The contract tries a protocol with messages that it sends itself, in worlds that it admits."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols.base import Layout, MessageKind, Protocol
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.contract import ContractViolation, check_contract

from .sketches import PairwiseExchange, PassiveBroadcast, SketchParameters


class Gossip(Protocol):
    """Perturbs the mean of its labels once, then averages: all that it sends follows from that."""

    Parameters = SketchParameters

    def layout(self):
        return Layout(agent={"model": 1}, messages={"model": MessageKind(1, mirrors="model")})

    def start(self, view, out):
        if len(view.data):
            bound = 2.0 / len(view.data)
            release = Release(
                view.agent, view.now, "laplace", "l1", bound, "clip", bound, 2 * bound, 0.5, 0.0, len(view.neighbours)
            )
            mean = np.clip(view.data.labels, -1.0, 1.0).mean(keepdims=True)
            view.state["model"][:] = release.perturb(mean, rng=view.stream("noise"))
            if len(view.neighbours):
                out.disclose(release)
        out.send("model", view.state["model"], self.said(view, out))

    def said(self, view, out):
        return out.post_processing() if len(view.data) else out.public("no data, and nothing but what was heard")

    def wake(self, view, out):
        if len(view.neighbours):
            heard = view.received("model")
            view.state["model"][:] = (view.state["model"] + heard.mean(axis=0)) / 2
        out.send("model", view.state["model"], self.said(view, out))


class SendsCounts(PassiveBroadcast):
    """Averages with square roots of how many rows others say that they have."""

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p + 1)})

    def said(self, view):
        return np.append(view.state["model"], 1.0 + len(view.data))

    def start(self, view, out):
        out.send("model", self.said(view), out.plain("how many rows"))

    def wake(self, view, out):
        if len(view.neighbours) and view.heard("model").any():
            heard = view.received("model")[view.heard("model")]
            weights = np.sqrt(heard[:, -1])
            view.state["model"][:] = weights @ heard[:, :-1] / weights.sum()
        if len(view.data):
            view.state["model"] += 0.1 * view.data.features.mean(axis=0)
        out.send("model", self.said(view), out.plain("the mean of the rows"))


class SendsIndices(PassiveBroadcast):
    """Sends its largest coordinate and which one it is; others look it up by that."""

    def layout(self):
        return Layout(agent={"model": self.problem.task.dimension}, messages={"largest": MessageKind(2)})

    def said(self, view):
        largest = int(np.abs(view.state["model"]).argmax())
        return np.array([largest, view.state["model"][largest]])

    def start(self, view, out):
        out.send("largest", self.said(view), out.public("zeros"))

    def wake(self, view, out):
        places = {float(rank): rank for rank in range(self.problem.task.dimension)}
        for index, value in view.received("largest")[view.heard("largest")] if len(view.neighbours) else ():
            view.state["model"][places[float(index)]] += 0.1 * value
        if len(view.data):
            view.state["model"] += 0.1 * (view.data.features.mean(axis=0) - view.state["model"])
        out.send("largest", self.said(view), out.plain("the mean of the rows"))


class AsksForACoordinate(PairwiseExchange):
    """Asks a partner for one coordinate, by its number."""

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"request": MessageKind(1), "reply": MessageKind(2)})

    def make_request(self, view, partner, out):
        out.send("request", np.array([float(view.updates % 3)]), out.public("a number"), to=view.neighbours[partner])

    def make_response(self, view, partner, vector, out):
        wanted = {0.0: 0, 1.0: 1, 2.0: 2}[float(vector[0])]
        said = np.array([wanted, view.state["model"][wanted]])
        out.send("reply", said, out.plain(), to=view.neighbours[partner])

    def complete_exchange(self, view, partner, vector):
        wanted = {0.0: 0, 1.0: 1, 2.0: 2}[float(vector[0])]
        view.state["model"][wanted] = (view.state["model"][wanted] + vector[1]) / 2


class NeedsRows(PassiveBroadcast):
    """Divides by the number of its rows, and refuses tasks in which an agent has none, or nobody to hear."""

    @classmethod
    def check_problem(cls, parameters, problem):
        if not problem.task.train.counts.all() or problem.graph.agents == 1:
            raise InputError("every agent needs rows and a neighbour")

    def wake(self, view, out):
        view.state["model"] += view.data.features.sum(axis=0) / int(1 / (1 / len(view.data)))
        view.state["model"] /= len(view.neighbours) / len(view.neighbours) + 1
        out.send("model", view.state["model"], out.plain("the mean of the rows"))


class NeedsMore(PassiveBroadcast):
    """Refuses every small world."""

    @classmethod
    def check_problem(cls, parameters, problem):
        if problem.graph.agents < 50:
            raise InputError(f"there are {problem.graph.agents} agents; it needs 50 or more")


def test_post_processing_of_an_agent_without_neighbours_reaches_nobody():
    check_contract(Gossip, {})


@pytest.mark.parametrize("protocol", [SendsCounts, SendsIndices, AsksForACoordinate])
def test_messages_that_mean_something_are_those_that_the_protocol_sends(protocol):
    check_contract(protocol, {})


def test_a_protocol_is_tried_in_worlds_that_it_admits():
    check_contract(NeedsRows, {})


def test_a_protocol_that_admits_no_small_world_is_not_tried_and_says_why():
    with pytest.raises(InputError, match="there are 6 agents; it needs 50 or more"):
        check_contract(NeedsMore, {})


class PeeksAtConstants(PassiveBroadcast):
    """Reads what its neighbour keeps to itself, which changes with data only."""

    states: dict[int, np.ndarray]

    def prepare(self):
        self.states = {}

    def start(self, view, out):
        view.state["model"][:] = view.data.features.mean(axis=0) if len(view.data) else 0.0
        self.states[view.agent] = view.state["model"]
        out.send("model", np.zeros(3), out.public("zeros"))

    def wake(self, view, out):
        super().wake(view, out)
        view.state["model"] += self.states[(view.agent + 1) % len(self.states)]


def test_what_others_have_is_still_changed_where_messages_are_real():
    with pytest.raises(ContractViolation, match="from something outside its own data, state and inbox"):
        check_contract(PeeksAtConstants, {})
