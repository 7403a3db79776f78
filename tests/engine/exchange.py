"""What the tests of sessions share: gossip protocols that write down their calls, and a log that checks invariants."""

from __future__ import annotations

from typing import Literal

import numpy as np
from hushnet.agents.agent import Agent
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.simulator.network.clocks import Recorded

from .driving import drive
from .helpers import world_of


class GossipParameters(ProtocolParameters):
    """No parameters but the schedule."""

    kind: Literal["gossip"] = "gossip"


class Gossip(Protocol):
    """Gossip averaging; each end of an edge keeps what it got over it, so that late replies keep the mean."""

    decides = True

    Parameters = GossipParameters
    traits = Traits(exchange="pairwise")

    def prepare(self):
        self.calls = []

    def layout(self):
        messages = {"request": MessageKind(2), "reply": MessageKind(2, vectors=3)}
        return Layout(agent={"model": 2}, edge={"got": 2}, messages=messages)

    def start(self, me):
        me.model = me.agent, (1 + me.agent) ** 2

    def partner(self, me, uniform):
        rank = super().partner(me, uniform)
        self.calls.append(("partner", me.agent, me.tick, rank))
        return rank

    def request(self, me, partner):
        self.calls.append(("request", me.agent, int(me.neighbours[partner])))
        me.send("request", me.model, me.plain(), to=int(me.neighbours[partner]))

    def respond(self, me, partner, vector):
        self.calls.append(("respond", me.agent, int(me.neighbours[partner])))
        got = (vector - me.model) / 2
        me.send("reply", got, me.plain(), to=int(me.neighbours[partner]))
        self._get(me, partner, got)

    def complete(self, me, partner, vector):
        self.calls.append(("complete", me.agent, int(me.neighbours[partner])))
        self._get(me, partner, -vector)

    def _get(self, me, partner, got):
        me.got[partner] += got
        me.model += got

    def count(self, *what):
        return sum(call[: len(what)] == what for call in self.calls)


class Forgetful(Gossip):
    """The same without edge variables: its callers give up, and the mean is lost with a reply."""

    def layout(self):
        return Layout(agent={"model": 2}, messages=super().layout().messages)

    def _get(self, me, partner, got):
        me.model += got


class Scripted(Gossip):
    """Agent i always calls the neighbour of rank 0."""

    def partner(self, me, uniform):
        return 0


def told(me, kind):
    """The neighbours' newest vectors of a kind, one after the other, whether or not exchanges hand them over."""
    values = me.source_.inbox.values[kind]
    return [values[slot] for slot in range(*me.tables_.graph.edges_of(me.agent).indices(len(values)))]


class SessionLog:
    """Observer that keeps what happens, and checks after every SimPy event what must hold then."""

    def __init__(self):
        self.events: list[tuple] = []
        self.quiet_instants = 0
        self.halves = 0

    def woke(self, world, agent: Agent):
        self.events.append(("woke", world.now, agent.index))

    def sent(self, world, message, delay, lost):
        self.events.append(("sent", world.now, message.kind, message.sender, message.receiver, message.tick, lost))

    def arrived(self, world, message, up, newest):
        self.events.append(("arrived", world.now, message.kind, message.sender, message.receiver, message.tick, newest))

    def of(self, *what):
        return [event for event in self.events if (event[0], *event[2:])[: len(what)] == what]

    def watch(self, world):
        step, env = world.env.step, world.env

        def checked():
            before = env.now
            step()
            assert env.now >= before
            assert world.traffic.conserved
            if "got" in world.state.edge:
                self.check(world)

        env.step = checked

    def check(self, world):
        """Quiet edges agree bit for bit; models are their start plus what came over the edges; the mean is kept."""
        graph, got = world.setting.graph, world.state.edge["got"].rows
        quiet = world.quiet_edges
        for edge, back in enumerate(graph.reverse.tolist()):
            if quiet[edge]:
                np.testing.assert_array_equal(got[edge], -got[back])
                self.halves += 1
        size = 1 + np.abs(got).sum()
        started = world.started
        start = np.array([(i, (1 + i) ** 2) for i in range(graph.agents)], dtype=float) * started[:, None]
        sums = np.zeros_like(start)
        np.add.at(sums, graph.tails, got)
        models = world.state.agent["model"].rows
        np.testing.assert_allclose(models, start + sums, atol=1e-13 * size)
        if world.quiet_edges.all():
            np.testing.assert_allclose(models.sum(axis=0), start.sum(axis=0), atol=1e-12 * size)
            self.quiet_instants += 1


def exchange_world(protocol=Gossip, *, schedule=None, **kwargs):
    """A world of sessions with its log, ready to run."""
    log = SessionLog()
    world = world_of(protocol, protocol.Parameters(schedule=schedule or "exchange"), log=log, **kwargs)
    log.watch(world)
    return world, log


def run_exchange(*args, **kwargs):
    """Run a world of sessions and return it with its log."""
    world, log = exchange_world(*args, **kwargs)
    drive(world)
    return world, log


def called(*agents, spacing=1.0):
    """A clock that wakes these agents in this order, one every ``spacing``."""
    return Recorded(kind="recorded", order=list(agents), spacing=spacing)
