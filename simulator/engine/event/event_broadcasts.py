"""Event loop of agents who step when their own clocks wake them, and may react to whatever arrives."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.inbox import Message
from ....protocols.base import Sent
from ...network.network import KINDS
from ...rules.delivery import count_message, deliver, depart, end_of_way, release_version
from ...tables.effects import ARRIVAL, ARRIVE, REACH
from ...tables.run import DOWNLINK
from ...world.world import World
from ..driver import At
from .event_driver import EventDriver, RuleEvent

RESERVED = 64
"""Events whose notes fit in before it is looked again whether there is room."""


@final
class EventBroadcasts(EventDriver):
    """Every agent steps when its own clock wakes it, and may react to whatever arrives."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        rules = count_message, deliver, depart, end_of_way, release_version
        self._count, self._deliver, self._depart, self._end_of_way, self._release = map(self.plain, rules)
        self._kinds = list(world.layout.messages)
        self._shares = [world.layout.shares_of(kind) for kind in self._kinds]
        self._keeps, self._reacts = world.traits.inbox == "every", world.traits.trigger == "message"
        self._most, self._reserved = int(world.setting.graph.degrees.max(initial=0)) + 1, 0
        self._receivers: list[int] = world.setting.graph.tails.tolist()
        self._unread = defaultdict[int, list[Message]](list)

    @override
    def ready(self, agent: Agent) -> None:
        """Let starts that an agent has told, and that it was told as it joined, arrive where messages are read.

        Who reacts to them and is down reacts when it comes up.
        """
        if not (self._keeps or self._reacts):
            return
        graph, run = self.world.setting.graph, self.transport.tables
        own = graph.edges_of(agent.index)
        slots = graph.reverse[own].tolist() + (list(range(own.start, own.stop)) if self.env.now > 0.0 else [])
        for rank, kind in enumerate(self._kinds):
            for slot in (rank * len(run.heads) + edge for edge in slots if self.world.inbox.tick[kind][edge] == -1):
                message = self._message(slot, int(run.slots.known[slot]), int(run.slots.heard_order[slot]))
                arrival = At(self.env, self.env.now, ARRIVAL)
                arrival.callbacks.append(lambda _, message=message: self._take_start(message))  # type: ignore[union-attr]

    def _take_start(self, message: Message) -> None:
        if self._keeps:
            self.world.inbox.pending[message.receiver].append(message)
        if self._reacts:
            self._unread[message.receiver].append(message)
            self._react_to_starts(self.world.agents[message.receiver])

    def _react_to_starts(self, agent: Agent) -> None:
        while self._unread[agent.index] and self.is_awake(agent):
            self._react(agent, self._unread[agent.index].pop(0))

    @override
    def turn(self, agent: Agent) -> None:
        super().turn(agent)
        if agent.index in self._unread:
            self._react_to_starts(agent)

    @override
    def send(self, agent: Agent, messages: Sequence[Sent]) -> None:
        """Charge and send everything that a step gave out; what nobody can hear is not sent."""
        graph, transport = self.world.setting.graph, self.transport
        offsets: list[int] = transport.plain.offsets[agent.index : agent.index + 2].tolist()
        own = np.arange(*offsets)
        if messages and len(transport.tables.opened):
            own = own[self.opened(agent)]
        for sent in messages:
            edges = own
            if sent.to is not None:
                edges = edges[np.isin(graph.heads[edges], sent.to)]
            if len(edges):
                transport.ledger.commit(sent.release, sent.vector)
                transport.remember(agent, sent, agent.tick)
                self._send_copies(agent, sent, edges)
            else:
                transport.withhold(agent, sent)

    def _send_copies(self, agent: Agent, sent: Sent, edges: NDArray[np.int64]) -> None:
        """Send a copy over each of some edges; with draws of its own where one was sent at the same tick."""
        network, rank, now = self.world.network, self._kinds.index(sent.kind), self.env.now
        attempts = network.attempts(agent.index, self.world.setting.graph.heads[edges], agent.tick, rank)
        size, vectors = self.transport.size(sent.kind, len(sent.vector)), self._shares[rank]
        for attempt in dict.fromkeys(attempts):
            part, transmission = edges[np.equal(attempts, attempt)], attempt * KINDS + rank
            row = self.transport.new_version(sent, now, agent.tick)
            self.draw_together(agent, part, transmission, size)
            if self.observed:
                self._begin_notes()
            run, first = self.transport.plain, rank * len(self._receivers)
            run.versions.order[row], way = self._count(run, vectors * len(part)), self._end_of_way(run)
            depart, references, reverse = self._depart, run.versions.references, run.reverse
            for edge in part.tolist():
                delay = depart(run, agent.index, edge, agent.tick, transmission, rank, row, size, now)
                if delay < math.inf:
                    references[row] += 1
                    self.schedule(None, now + delay, ARRIVAL, way, first + reverse[edge], row)
            self._release(run, row)
            if self.observed:
                self._end_notes()

    @override
    def heard(self, agent: Agent) -> Callable[[], AbstractContextManager[None]]:
        """Keep a copy of the agent's inbox; what arrives later is heard by its next step."""
        inbox, graph, index = self.world.inbox, self.world.setting.graph, agent.index
        first, last, edges = int(graph.offsets[index]), int(graph.offsets[index + 1]), len(graph.heads)
        own = (np.arange(len(self._kinds))[:, None] * edges + np.arange(first, last)).reshape(-1)
        slots, messages = inbox.slots[own], inbox.pending.pop(index, [])
        rows = slots["known"][slots["known"] >= 0].tolist()
        for row in rows:
            self.transport.plain.versions.references[row] += 1

        def exchange() -> None:
            nonlocal slots, messages
            slots, inbox.slots[own] = inbox.slots[own], slots
            messages, later = inbox.pending.pop(index, []), messages
            inbox.pending[index] = later

        @contextmanager
        def shown() -> Generator[None]:
            exchange()
            try:
                yield
            finally:
                exchange()
                for row in rows:
                    self._release(self.transport.plain, row)

        return shown

    @override
    def happen(self, asked: RuleEvent) -> None:
        """A copy arrives, or reaches a shared downlink: a version, at a slot of its receiver."""
        slot, row, now = asked.subject, asked.serial, self.env.now
        index, run = self._receivers[slot % len(self._receivers)], self.transport.plain
        if asked.what == REACH:
            turn = run.constants[DOWNLINK], run.agents.downlink_free, index, run.versions.bytes[row], now
            self.schedule(None, self._take_turn(*turn), ARRIVAL, ARRIVE, slot, row)
            return
        up, order = self.is_up(None, index, now, True), run.versions.order[row]
        reacts = up and self._reacts and not self.world.agents[index].silent
        message = self._message(slot, row, order) if reacts or (up and self._keeps) else None
        if self.observed:
            self._begin_notes()
            run = self.transport.plain
        self._deliver(run, slot, row, order, now, up, message is not None)
        if self.observed:
            self._end_notes()
        if message is not None and self._keeps:
            self.world.inbox.pending[index].append(message)
        if message is not None and reacts:
            self._react(self.world.agents[index], message)

    def _message(self, slot: int, row: int, order: int) -> Message:
        """Return a version as the message that the receiver of a channel (directed edge and kind) gets."""
        run = self.transport.tables
        rank, edge = divmod(slot, len(run.heads))
        people = int(run.heads[edge]), int(run.heads[run.reverse[edge]])
        sending = float(run.versions.sent_at[row]), order, int(run.versions.tick[row])
        vector, size = self.transport.vector_of(row, self._kinds[rank], people[0]), int(run.versions.bytes[row])
        return Message(*people, self._kinds[rank], vector, *sending, edge, size)

    def _react(self, agent: Agent, message: Message) -> None:
        """Let an agent react to an arrival, and send what it gives out."""
        world = self.world
        world.watchdog.check(world.now)
        sent = world.act("react", agent, message).sent_
        self.send(agent, sent)
        if sent:
            world.reactions.count(agent.index, (one.kind for one in sent), world.now)
        self.check_vectors()

    def _begin_notes(self) -> None:
        if not self._reserved:
            self.transport.notes.grow(RESERVED * self._most)
            self._reserved = RESERVED
        self._reserved -= 1

    def _end_notes(self) -> None:
        if self.transport.notes.told:
            self.transport.notes.tell()
