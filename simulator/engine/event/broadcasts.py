"""Broadcasts with a SimPy event for every wake-up and message, and a process for every agent: for reading and tracing.

The rules are those of `hushnet.simulator.rules.broadcasts`, run as plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.inbox import Message
from ....protocols.base import Sent
from ...network.network import KINDS
from ...rules.broadcasts import on_arrival, send
from ...tables.broadcasts import IS_SILENT, NOW, RECEIVER
from ...world.world import World
from ..broadcast_state import BroadcastState
from .driver import EventDriver, RuleEvent


@final
class EventBroadcasts(EventDriver):
    """Every agent steps when its own clock wakes it, and may react to whatever arrives.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    state : BroadcastState
    """

    def __init__(self, world: World) -> None:
        super().__init__(world, is_up=self.is_up)
        self.state = BroadcastState(world)
        self._carry, self._on_arrival = map(self.plain, (send, on_arrival))
        self._ranks = {kind: rank for rank, kind in enumerate(world.layout.messages)}
        self._reacts = world.traits.trigger == "message"

    @override
    def wake(self, agent: Agent) -> None:
        """An agent wakes up, and takes a step with all that it has kept."""
        self.state.hand_over(agent.index)
        self.step(agent)

    @override
    def send(self, agent: Agent, messages: Sequence[Sent]) -> None:
        """Charge and send everything that a step gave out; what nobody can hear is not sent."""
        graph, transport = self.world.setting.graph, self.transport
        slots = graph.edges_of(agent.index)
        for sent in messages:
            edges = np.arange(slots.start, slots.stop, dtype=np.int64)
            if sent.to is not None:
                edges = edges[np.isin(graph.heads[slots], sent.to)]
            if len(edges):
                transport.ledger.commit(sent.release, sent.vector)
                transport.remember(agent, sent, agent.tick)
                self._send_copies(agent, sent, edges)

    def _send_copies(self, agent: Agent, sent: Sent, edges: NDArray[np.int64]) -> None:
        """Send a copy over each of some edges, whose arrivals are events; again if one was sent at the same tick."""
        network, rank = self.world.network, self._ranks[sent.kind]
        attempts = network.attempts(agent.index, self.world.setting.graph.heads[edges], agent.tick, rank)
        vectors = self.world.layout.messages[sent.kind].vectors
        for attempt in dict.fromkeys(attempts):
            part, transmission = edges[np.equal(attempts, attempt)], attempt * KINDS + rank
            self.state.make_room()
            row = self.transport.new_version(sent.vector, self.env.now, agent.tick)
            self.draw_together(agent, part, transmission, network.size(len(sent.vector)))
            self._change(self._carry, agent.index, part.tolist(), rank, row, transmission, vectors)

    def _react(self, agent: Agent, message: Message) -> None:
        """Let an agent react to an arrival, and send what it gives out."""
        world = self.world
        world.effort.check(world.now)
        sent = world.act("react", agent, message).sent_
        self.send(agent, sent)
        if sent:
            world.reactions.count(agent.index, (one.kind for one in sent), world.now)
        self.check_vectors()

    @override
    def happen(self, asked: RuleEvent) -> None:
        """A copy arrives."""
        subject = asked.subject
        if not self._reacts:
            self._change(self._on_arrival, subject)
            return
        tables = self.state.tables
        agent = self.world.agents[int(tables.copies[subject, RECEIVER])]
        tables.agents[agent.index, IS_SILENT] = agent.silent
        if self._change(self._on_arrival, subject):
            self._react(agent, self.state.arrived(subject))

    def _change(self, rule: Any, *arguments: Any) -> Any:
        """Let a rule change the tables, and do what it asks for."""
        transport = self.transport
        if self.observed:
            transport.notes.make_room(self.state.room)
        run, tables = transport.plain, self.views(self.state.tables)
        tables.now[NOW] = self.env.now
        result = rule(run, tables, *arguments)
        if self.observed:
            transport.notes.tell()
        return result

    @override
    def settle(self, *, final: bool) -> None:
        super().settle(final=final)
        if final:
            self.state.hand_over_all()
