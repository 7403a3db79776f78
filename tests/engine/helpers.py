"""What the tests of the world share: tiny protocols, an event log, and an oracle that knows nothing of SimPy."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from typing import Literal

import numpy as np
from hushnet.agents.availability import Always
from hushnet.agents.graph import Graph
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import received
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import Network, NetworkParameters
from hushnet.simulator.network.randomness import Draws, Purpose, quantise, stable_ids
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


class Oracle:
    """What must happen in a run of `Stamp` that ends by time, computed message by message without an event loop.

    Only the pure parts are shared with the engine: wake-up times, fates and timelines. Arrivals at an instant come
    before changes of availability, these before wake-ups.
    """

    def __init__(self, setting: Setting):
        self.setting, self.graph = setting, setting.graph
        self.numbers = stable_ids(setting.task.ids)
        self.end = setting.stop.time
        self._presence()
        self._wakes()
        self._messages()

    def _presence(self):
        availability, draws = self.setting.availability, self.setting.draws
        agents = range(self.graph.agents)
        self.joins, self.leaves = [0.0] * len(agents), [math.inf] * len(agents)
        for window, purpose, times in (
            (availability.joins, Purpose.JOIN, self.joins),
            (availability.leaves, Purpose.LEAVE, self.leaves),
        ):
            for i in agents:
                time = window.time(draws.pair(purpose, int(self.numbers[i]))) if window else None
                times[i] = times[i] if time is None else quantise(time)
        timelines = availability.timelines(
            self.setting.task.ids,
            [int(number) for number in self.numbers],
            draw=lambda number, index: draws.pair(Purpose.AVAILABILITY, number, 0, index),
            round_time=quantise,
            base=self.setting.base,
        )
        self.changes = [list(itertools.takewhile(lambda c: c[0] <= self.end, timeline)) for timeline in timelines]

    def up(self, agent, now, *, arrival):
        """Whether an agent is there and up: just before the changes at ``now`` for arrivals, just after otherwise."""
        join, leave = self.joins[agent], self.leaves[agent]
        side = bisect.bisect_left if arrival else bisect.bisect_right
        times = [time for time, _ in self.changes[agent]]
        state = self.changes[agent][max(0, side(times, now) - 1)][1]
        came = join == 0 or (join < now if arrival else join <= now)
        return state and came and join < leave and (now <= leave if arrival else now < leave)

    def _wakes(self):
        clock = self.setting.clock.build(self.setting.task.ids, self.numbers, self.setting.draws, self.setting.base)
        self.wakes = []
        for agent in range(self.graph.agents):
            now, tick = 0.0, 0
            while (now := clock.next_time(agent, tick, now)) <= self.end:
                if self.up(agent, now, arrival=False):
                    self.wakes.append((now, agent, tick))
                tick += 1
        self.wakes.sort()

    def _messages(self):
        """Fates of all messages, by (sender, receiver, tick): sent at, arrival, lost, received."""
        network = Network(self.setting.network, self.setting.task.ids, self.numbers, self.setting.draws)
        self.messages = {}
        for now, sender, tick in self.wakes:
            receivers = self.graph.neighbours(sender)
            delays, lost = network.delays_and_losses(sender, receivers, tick, 0, now, network.size(2))
            for receiver, delay, gone in zip(receivers.tolist(), delays.tolist(), lost.tolist(), strict=True):
                arrival = now + delay
                # What is sent and arrives at one instant comes after the changes of availability there.
                got = not gone and arrival <= self.end and self.up(receiver, arrival, arrival=delay > 0)
                self.messages[sender, receiver, tick] = (now, arrival, gone, got)
        self.by_link = defaultdict(list)
        for (sender, receiver, tick), fate in self.messages.items():
            self.by_link[sender, receiver].append((tick, *fate))

    def told(self, sender, receiver, now):
        """Newest tick that was told reliably by ``now``: -1 for a start, -2 for nothing."""
        if self.setting.network.start != "known":
            return -2
        earlier, later = sorted((sender, receiver), key=lambda agent: (self.joins[agent], agent))
        meeting = self.joins[later]
        # Joining and leaving at one instant follow the agents.
        if meeting > now or self.leaves[later] <= meeting or (self.leaves[earlier], earlier) <= (meeting, later):
            return -2
        if self.joins[receiver] == 0 or self.joins[sender] >= self.joins[receiver]:
            return -1
        return max((tick for tick, at, *_ in self.by_link[sender, receiver] if at < meeting), default=-1)

    def known(self, sender, receiver, now):
        """Newest tick of a sender that a receiver knows when it wakes at ``now``."""
        heard = [
            tick
            for tick, sent_at, arrival, _, got in self.by_link[sender, receiver]
            if got and (arrival < now or (arrival == now and (sent_at, sender) < (now, receiver)))
        ]
        return max([self.told(sender, receiver, now), *heard])


def random_graph(agents, density, rng):
    """A symmetric random graph, perhaps disconnected, perhaps with isolated agents."""
    upper = np.triu(rng.random((agents, agents)) < density, 1) * rng.uniform(0.5, 2.0, (agents, agents))
    return Graph.from_matrix(upper + upper.T)
