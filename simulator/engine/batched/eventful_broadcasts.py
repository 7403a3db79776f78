"""The batched engine for broadcasts to agents that react to single messages, or keep every one until they step.

Every arrival is an event of a compiled loop (`hushnet.simulator.engine.batched.broadcast_events`), which calls the
rules of `hushnet.simulator.rules.broadcasts`; steps and reactions are made in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
from ....protocols.steps.charges import NotPlanned
from ...tables.broadcasts import FREE_COPIES, IS_SILENT, NOW
from ...tables.room import extended
from ...world.world import World
from ..broadcast_state import BroadcastState
from . import agenda as agendas
from . import broadcast_events, windows
from .agenda import Agenda
from .driver import Pause
from .wake_windows import WakeWindows


@final
class EventfulBroadcasts(WakeWindows):
    """Every agent steps when its own clock wakes it, and may react to whatever arrives.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    state : BroadcastState
    agenda : Agenda
        Of arrivals; replaced when there is need for more room.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world, plans=True)
        self.state = BroadcastState(world)
        self.transport.carry = self._carry
        none = np.zeros((0, agendas.COLUMNS), dtype=np.int64)
        self.agenda = Agenda(none, none, none, np.zeros(agendas.PLACES, dtype=np.int64))

    @override
    @staticmethod
    def plan_of(world: World) -> Any:
        what = "reacts to single messages" if world.traits.trigger == "message" else "reads every message"
        raise NotPlanned(f"{type(world.protocol).__name__} {what} that it is sent")

    @override
    def init_clocks(self) -> Sequence[int]:
        self.state.tables.agents[:, IS_SILENT] = [agent.silent for agent in self.world.agents]
        return windows.init_clocks(self.transport.tables)

    @override
    def started(self, agent: Agent) -> None:
        super().started(agent)
        self.state.tables.agents[agent.index, IS_SILENT] = agent.silent

    @override
    def next_event(self) -> tuple[float, int] | None:
        wake, arrival = super().next_event(), agendas.first(self.agenda)
        return min(filter(None, (arrival, wake)), default=None)

    @override
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """Run a window, which ends where availability is not known."""
        assert self.presence is not None
        following = self.next_event()
        if following is not None and following[0] >= self.presence.drawn:
            run = self.presence.draw(following[0], self.transport.tables)
            self.transport.tables = self.presence.forget(min(following[0], limit), run)
        arguments = self.state.tables, self.agenda, min(limit, self.presence.drawn), forced
        return broadcast_events.run_broadcast_events(self.transport.tables, *arguments)

    @override
    def handle(self, why: int, index: int) -> Pause:
        if why != broadcast_events.REACTION:
            return super().handle(why, index)
        message = self.state.arrived(index)
        agent, run = self.world.agents[message.receiver], self.transport.tables
        if agent.tick != run.agents.ticks[agent.index]:
            agent.tick, agent.reactions = int(run.agents.ticks[agent.index]), 0
        self.stepping(lambda: self.react(agent, message))
        self.transport.notes.tell()
        self._falls_silent(agent)
        return Pause.GO_ON

    @override
    def take_step(self, agent: Agent) -> None:
        agent.reactions = 0
        self.state.hand_over(agent.index)
        self.step(agent)
        self._falls_silent(agent)

    def _falls_silent(self, agent: Agent) -> None:
        """Note whether an agent has fallen silent."""
        self.state.tables.agents[agent.index, IS_SILENT] = agent.silent
        self.transport.tables.agents.silent[agent.index] |= agent.silent

    def _carry(
        self, agent: Agent, edges: Any, rank: int, vector: NDArray[Any], transmission: int, vectors: int
    ) -> None:
        """Send a vector over edges; its arrivals are events."""
        self.make_room()
        row = self.transport.new_version(vector, self.world.now, agent.tick)
        self.state.tables.now[NOW] = self.world.now
        what = agent.index, edges, rank, row, transmission, vectors
        broadcast_events.send_all(self.transport.tables, self.state.tables, self.agenda, *what)

    @override
    def make_room(self) -> None:
        self.state.make_room()
        made, heap = self.state.tables, self.agenda.heap
        most = len(made.copies) - int(made.counts[FREE_COPIES]) + self.state.room
        if len(heap) < most:
            self.agenda = self.agenda._replace(heap=extended(heap, most - len(heap) + most // 2))

    @override
    def settle(self, *, final: bool) -> None:
        super().settle(final=final)
        if final:
            self.state.hand_over_all()

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        """Deliver nothing: every arrival was taken in when it happened."""
