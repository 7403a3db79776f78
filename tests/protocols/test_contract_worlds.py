"""The contract tries a protocol with messages that it sends itself, in worlds that it admits."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols.base import Layout, MessageKind, Protocol
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.contract import ContractViolation, check_contract

from .sketches import PassiveBroadcast, SketchParameters


class Gossip(Protocol):
    """Perturbs the mean of its labels once, then averages: all that it sends follows from that."""

    decides = True
    asks_for_budget = True

    Parameters = SketchParameters

    def layout(self):
        return Layout(agent={"model": 1}, messages={"model": MessageKind(1, mirrors="model")})

    def start(self, me):
        if len(me.data):
            bound = 2.0 / len(me.data)
            release = Release(
                me.agent, me.now, "laplace", "l1", bound, "clip", bound, 2 * bound, 0.5, 0.0, len(me.neighbours)
            )
            mean = np.clip(me.data.labels, -1.0, 1.0).mean(keepdims=True)
            me.model = release.perturb(mean, rng=me.stream("noise"))
            if len(me.neighbours):
                me.disclose(release)
        me.send("model", me.model, self.said(me))

    def said(self, me):
        return me.post_processing() if len(me.data) else me.public("no data, and nothing but what was heard")

    def step(self, me):
        if len(me.neighbours):
            heard = me.heard
            me.model = (me.model + heard.mean(axis=0)) / 2
        me.send("model", me.model, self.said(me))


class SendsCounts(PassiveBroadcast):
    """Averages with square roots of how many rows others say that they have."""

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p + 1)})

    def said(self, me):
        return np.append(me.model, 1.0 + len(me.data))

    def start(self, me):
        me.send("model", self.said(me), me.plain("how many rows"))

    def step(self, me):
        if len(me.neighbours) and me.was_heard.any():
            heard = me.heard[me.was_heard]
            weights = np.sqrt(heard[:, -1])
            me.model = weights @ heard[:, :-1] / weights.sum()
        if len(me.data):
            me.model += 0.1 * me.data.features.mean(axis=0)
        me.send("model", self.said(me), me.plain("the mean of the rows"))


class NeedsRows(PassiveBroadcast):
    """Divides by the number of its rows, and refuses tasks in which an agent has none, or nobody to hear."""

    @classmethod
    def check_problem(cls, parameters, problem):
        if not problem.task.train.counts.all() or problem.graph.agents == 1:
            raise InputError("every agent needs rows and a neighbour")

    def step(self, me):
        me.model += me.data.features.sum(axis=0) / int(1 / (1 / len(me.data)))
        me.model /= len(me.neighbours) / len(me.neighbours) + 1
        me.send("model", me.model, me.plain("the mean of the rows"))


class NeedsMore(PassiveBroadcast):
    """Refuses every small world."""

    @classmethod
    def check_problem(cls, parameters, problem):
        if problem.graph.agents < 50:
            raise InputError(f"there are {problem.graph.agents} agents; it needs 50 or more")


def test_post_processing_of_an_agent_without_neighbours_reaches_nobody():
    check_contract(Gossip, {})


def test_messages_that_mean_something_are_those_that_the_protocol_sends():
    check_contract(SendsCounts, {})


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

    def start(self, me):
        me.model = me.data.features.mean(axis=0) if len(me.data) else 0.0
        self.states[me.agent] = me.model
        me.send("model", np.zeros(3), me.public("zeros"))

    def step(self, me):
        super().step(me)
        me.model += self.states[(me.agent + 1) % len(self.states)]


def test_what_others_have_is_still_changed_where_messages_are_real():
    with pytest.raises(ContractViolation, match="from something outside its own data, state and inbox"):
        check_contract(PeeksAtConstants, {})
