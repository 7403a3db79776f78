"""Broadcasts with a SimPy event for every wake-up and message, and a process for every agent: for reading and tracing.

The rules are those of `hushnet.simulator.rules.broadcasts`, run as plain Python.
"""

from __future__ import annotations

from typing import Any, final

from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
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
        self.transport.carry = self._carry
        self._send, self._on_arrival = map(self.plain, (send, on_arrival))
        self._reacts = world.traits.trigger == "message"

    @override
    def wake(self, agent: Agent) -> None:
        """An agent wakes up, and takes a step with all that it has kept."""
        self.state.hand_over(agent.index)
        self.step(agent)

    def _carry(
        self, agent: Agent, edges: Any, rank: int, vector: NDArray[Any], transmission: int, vectors: int
    ) -> None:
        """Send a vector over edges; its arrivals are events."""
        self.state.make_room()
        row = self.transport.new_version(vector, self.env.now, agent.tick)
        self.draw_together(agent, edges, transmission, self.world.network.size(len(vector)))
        self._change(self._send, agent.index, edges.tolist(), rank, row, transmission, vectors)

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
            self.react(agent, self.state.arrived(subject))

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
