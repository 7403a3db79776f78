"""Broadcasts with a SimPy event for every wake-up and message, and a process for every agent: for reading and tracing.

Where agents only read the newest of what they have heard, no arrival needs an event (`hushnet.simulator.rules.lazy`);
here each has one, for agents that react to single messages, or keep every one until they step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.inbox import Message
from ....protocols.base import Sent
from ...network.network import KINDS
from ...rules.delivery import count_message, deliver, depart, release_version
from ...tables.effects import ARRIVE
from ...tables.priorities import ARRIVAL
from ...world.world import World
from .driver import EventDriver, RuleEvent


@final
class EventBroadcasts(EventDriver):
    """Every agent steps when its own clock wakes it, and may react to whatever arrives.

    Parameters
    ----------
    world : World
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        rules = count_message, deliver, depart, release_version
        self._count, self._deliver, self._depart, self._release = map(self.plain, rules)
        self._kinds = list(world.layout.messages)
        self._keeps, self._reacts = world.traits.inbox == "every", world.traits.trigger == "message"
        self._most = int(world.setting.graph.degrees.max(initial=0)) + 1

    @override
    def send(self, agent: Agent, messages: Sequence[Sent]) -> None:
        """Charge and send everything that a step gave out; what nobody can hear is not sent."""
        graph, transport = self.world.setting.graph, self.transport
        slots = graph.edges_of(agent.index)
        for sent in messages:
            edges = np.arange(slots.start, slots.stop, dtype=np.int64)[graph.opened[slots]]
            if sent.to is not None:
                edges = edges[np.isin(graph.heads[edges], sent.to)]
            if len(edges):
                transport.ledger.commit(sent.release, sent.vector)
                transport.remember(agent, sent, agent.tick)
                self._send_copies(agent, sent, edges)

    def _send_copies(self, agent: Agent, sent: Sent, edges: NDArray[np.int64]) -> None:
        """Send a copy over each of some edges; with draws of its own where one was sent at the same tick."""
        network, rank, now = self.world.network, self._kinds.index(sent.kind), self.env.now
        attempts = network.attempts(agent.index, self.world.setting.graph.heads[edges], agent.tick, rank)
        size, vectors = network.size(len(sent.vector)), self.world.layout.messages[sent.kind].vectors
        for attempt in dict.fromkeys(attempts):
            part, transmission = edges[np.equal(attempts, attempt)], attempt * KINDS + rank
            row = self.transport.new_version(sent.vector, now, agent.tick)
            self.draw_together(agent, part, transmission, size)
            self._begin_notes()
            run = self.transport.plain
            run.versions.order[row] = self._count(run, vectors * len(part))
            for edge in part.tolist():
                delay = self._depart(run, agent.index, edge, agent.tick, transmission, rank, row, size, now)
                if delay < math.inf:
                    run.versions.references[row] += 1
                    slot = rank * len(run.heads) + run.reverse[edge]
                    self.schedule(None, now + delay, ARRIVAL, ARRIVE, slot, row)
            self._release(run, row)
            self._end_notes()

    @override
    def happen(self, asked: RuleEvent) -> None:
        """A copy arrives: a version, at a slot of its receiver."""
        slot, row, world = asked.subject, asked.serial, self.world
        agent = world.agents[int(world.setting.graph.tails[slot % len(world.setting.graph.heads)])]
        up = self.is_up(None, agent.index, self.env.now, True)
        reacts = up and self._reacts and not agent.silent
        message = self._message(slot, row) if reacts or (up and self._keeps) else None
        self._begin_notes()
        run = self.transport.plain
        self._deliver(run, slot, row, run.versions.order[row], self.env.now, up)
        self._end_notes()
        if message is not None and self._keeps:
            world.inbox.pending[agent.index].append(message)
        if message is not None and reacts:
            self._react(agent, message)

    def _message(self, slot: int, row: int) -> Message:
        """Return a version as the message that the receiver of a channel (directed edge and kind) gets."""
        run = self.transport.tables
        rank, edge = divmod(slot, len(run.heads))
        people = int(run.heads[edge]), int(run.heads[run.reverse[edge]])
        sending = float(run.versions.sent_at[row]), int(run.versions.order[row]), int(run.versions.tick[row])
        vector, size = self.transport.vector_of(row), int(run.versions.bytes[row])
        return Message(*people, self._kinds[rank], vector, *sending, edge, size)

    def _react(self, agent: Agent, message: Message) -> None:
        """Let an agent react to an arrival, and send what it gives out."""
        world = self.world
        world.effort.check(world.now)
        sent = world.act("react", agent, message).sent_
        self.send(agent, sent)
        if sent:
            world.reactions.count(agent.index, (one.kind for one in sent), world.now)
        self.check_vectors()

    def _begin_notes(self) -> None:
        if self.observed:
            self.transport.notes.make_room(self._most)

    def _end_notes(self) -> None:
        if self.observed:
            self.transport.notes.tell()
