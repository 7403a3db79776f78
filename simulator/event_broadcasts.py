"""Broadcasts with a SimPy event for every wake-up and message, and a process for every agent: for reading and tracing.

The rules are those of `hushnet.simulator.rules.broadcasts`, run as plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from numpy.typing import NDArray

from ..agents.agent import Agent
from .broadcasts import BroadcastState
from .event_driver import EventDriver
from .rules.broadcasts import on_arrival, receiver_of, send
from .tables.broadcasts import IS_SILENT, NOW
from .world import World


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
        super().__init__(world, there=lambda _, agent, *when: world.agents[agent].present and world.agents[agent].up)
        self.state = BroadcastState(world)
        self.post.carry = self._carry
        self._drawn: Iterator[tuple[float, bool]] = iter(())

    def wake(self, agent: Agent) -> None:
        """See `EventDriver.wake`: it takes a step, with all that it has kept."""
        self.state.hand_over(agent.index)
        self.step(agent)

    def _carry(self, agent: Agent, edges: Any, rank: int, vector: NDArray[Any], leg: int, vectors: int) -> None:
        """See `Post.carry`."""
        self.state.make_room()
        row = self.state.version_of(agent, vector)
        mail, world = self.post.mail, self.world
        copies = world.setting.graph.heads[edges], int(mail.tick[row]), leg, world.now, int(mail.size[row])
        self._drawn = zip(*(part.tolist() for part in world.network.fates(agent.index, *copies)), strict=True)
        self._change(send, agent.index, edges, rank, row, leg, vectors)

    def draw(self, *_: Any) -> tuple[float, bool]:
        """See `EventDriver.draw`: those of a message are drawn together."""
        return next(self._drawn)

    def _happen(self, what: int, subject: int, serial: int) -> None:
        """What a rule has asked for happens now: a copy arrives."""
        world, tables = self.world, self.state.tables
        agent = world.agents[self.plain(receiver_of)(self.post.mail, tables, subject)]
        tables.agents[agent.index, IS_SILENT] = agent.silent
        if self._change(on_arrival, subject):
            self.react(agent, self.state.arrived(subject))

    def _change(self, rule: Any, *arguments: Any) -> Any:
        """Let a rule change the tables, and do what it asks for."""
        self.post.notes.make_room(self.state.room)
        tables = self.state.tables
        tables.now[NOW] = self.world.now
        result = self.plain(rule)(self.post.mail, tables, *arguments)
        self.post.notes.tell()
        self.schedule(tables, self._happen)
        return result

    def settle(self, *, final: bool) -> None:
        """See `Driver.settle`."""
        super().settle(final=final)
        if final:
            self.state.hand_over_all()
