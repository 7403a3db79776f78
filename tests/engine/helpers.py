"""What the tests of the world share: tiny protocols, an event log, and an oracle that knows nothing of SimPy."""

from __future__ import annotations

from typing import Literal

import numpy as np
from hushnet.agents.availability import Always
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import received
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World

from .driving import drive


class StampParameters(ProtocolParameters):
    """Parameters of `Stamp`."""

    kind: Literal["stamp"] = "stamp"


class Stamp(Protocol):
    """Every message says who sent it at which tick: (agent + 1, tick)."""

    decides = True

    Parameters = StampParameters

    def layout(self):
        return Layout(agent={"model": 2}, messages={"model": MessageKind(2, mirrors="model")})

    def start(self, me):
        me.model = me.agent + 1, -1
        me.send("model", me.model, me.public("a stamp"))

    def step(self, me):
        me.model = me.agent + 1, me.tick
        me.send("model", me.model, me.public("a stamp"))


class Echo(Stamp):
    """Agents answer every stamp with a random number, to everybody."""

    traits = Traits(trigger="message")

    def layout(self):
        kinds = {"model": MessageKind(2, mirrors="model"), "answer": MessageKind(1)}
        return Layout(agent={"model": 2}, messages=kinds)

    def react(self, me, message):
        if message.kind == "model":
            me.send("answer", me.stream("noise").normal(size=1), me.public("no data in it"))


class Chatter(Echo):
    """One step sends a model to the last neighbour, two to everybody, and two answers."""

    traits = Traits()

    def step(self, me):
        free = me.public("zeros")
        for to in (*me.neighbours[-1:].tolist(), None, None):
            me.send("model", me.model, free, to=to)
        for _ in range(2):
            me.send("answer", [0.0], free)


class Collect(Stamp):
    """A protocol that keeps every message until its next step, and counts them in its model."""

    traits = Traits(inbox="every")

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))

    def step(self, me):
        me.model[0] += len(me.messages)
        me.send("model", me.model, me.public("a count"))


class Whisper(Stamp):
    """The start is told to the first neighbour only."""

    def start(self, me):
        me.model = me.agent + 1, -1
        if len(me.neighbours):
            me.send("model", me.model, me.public("a stamp"), to=int(me.neighbours[0]))


class EventLog:
    """Observer and recorder in one: everything that happens, in order; balances are checked at every SimPy event."""

    def __init__(self):
        self.events: list[tuple] = []
        self.departed = self.landed = self.steps = 0

    def woke(self, world, agent):
        slots = world.setting.graph.edges_of(agent.index)
        heard = tuple(world.inbox.tick["model"][slots].tolist())
        read = tuple(map(tuple, np.asarray(received(world.peers[agent.index], "model")).tolist()))
        self.events.append(("woke", world.now, agent.index, agent.tick, heard, read))

    def sent(self, world, message, delay, lost):
        self.departed += not lost
        key = (message.sender, message.receiver, message.tick)
        self.events.append(("sent", world.now, key, delay, lost, message.kind, tuple(message.vector.tolist())))

    def arrived(self, world, message, up, newest):
        self.landed += 1
        key = (message.sender, message.receiver, message.tick)
        self.events.append(("arrived", world.now, key, message.sent_at, up, newest))

    def sample(self, world, *, final):
        self.events.append(("final" if final else "record", world.now, world.activations))

    def of(self, *what):
        return [event for event in self.events if event[0] in what]

    def wakes(self):
        """(time, agent, tick) of every step."""
        return [event[1:4] for event in self.of("woke")]

    def delays(self):
        return {event[2]: event[3] for event in self.of("sent")}

    def losses(self):
        return {event[2] for event in self.of("sent") if event[4]}

    def watch(self, world):
        """Check after every SimPy event that time does not decrease and that nothing sent is unaccounted for.

        A run that should have ended fails here instead of going on for ever.
        """
        step, env = world.env.step, world.env

        def checked():
            before = env.now
            step()
            assert env.now >= before
            self.steps += 1
            assert self.steps < 100_000
            traffic = world.traffic
            assert traffic.conserved
            assert traffic.links.in_flight == self.departed - self.landed

        env.step = checked


def world_of(
    protocol=Stamp,
    parameters=None,
    *,
    agents=6,
    task=None,
    graph=None,
    clock=None,
    availability=None,
    stop=None,
    seed=1,
    base=None,
    compute=None,
    log=None,
    recorder=None,
    every=None,
    activations=None,
    **network,
):
    """A world that is ready to run; further arguments are fields of the network."""
    setting = Setting(
        task=task or small_task(agents, empty=False),
        graph=graph or small_graph(agents),
        clock=clock or Poisson(kind="poisson"),
        network=NetworkParameters.model_validate(network),
        availability=availability or Always(kind="always"),
        stop=stop or Stop(time=12.0),
        draws=Draws(seed),
        base=base,
        compute=compute,
    )
    parameters = parameters or protocol.Parameters()
    return World(setting, protocol, parameters, observer=log, recorder=recorder, every=every, activations=activations)


def run(*args, **kwargs):
    """Run a world and return it with its log."""
    log = EventLog()
    world = world_of(*args, log=log, **kwargs)
    log.watch(world)
    drive(world)
    return world, log
