"""Rounds with a SimPy event for every message and timer, and a process for every agent: for reading and tracing.

The rules are those of `hushnet.simulator.rules.rounds`, run as plain Python. What a rule asks for becomes an event at
its time and priority, and what it notes is told to whoever observes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, final

import simpy
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.availability import Timeline
from ....agents.errors import Stall
from ....protocols.base import Sent
from ...network.randomness import check_transmission
from ...rules.round_messages import say_all
from ...rules.rounds import (
    after_step,
    counts_as_event,
    on_arrival,
    on_available,
    on_patience,
    on_repeat,
    on_round_end,
    start_rounds,
)
from ...tables import tallies
from ...tables.effects import ARRIVE, ENOUGH, FREE_COPIES, PATIENCE, REPEAT, WORN
from ...tables.rounds import DONE, EMPTY, FREE_RECORDS, IS_UP, STALLED
from ...world.world import World
from ..driver import RoundState
from .driver import EventDriver, RuleEvent


@final
class EventRounds(EventDriver):
    """Every agent steps once it has heard a whole round from its neighbours.

    Parameters
    ----------
    world : World
    """

    empty = EMPTY

    def __init__(self, world: World) -> None:
        super().__init__(world, next_time=self._next_time)
        self.state = RoundState(world)
        self._round_ends = [world.env.event() for _ in world.agents]

    def _next_time(self, _mail: Any, agent: int, tick: int, now: float) -> float:
        return self.world.clock.next_time(agent, tick, now)

    # The processes.

    @override
    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        env = self.world.env
        self.transport.notes.begin(self.world, empty=self.empty)
        for agent, timeline in zip(self.world.agents, timelines, strict=True):
            self.transport.tables.agents.silent[agent.index] = agent.silent
            agent.up = self.state.tables.agents[agent.index, IS_UP] = next(timeline)[1]
            env.process(self.presence(agent, timeline))
        for agent in self.world.agents:
            env.process(self.steps(agent))

    @override
    def steps(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """A round ends, the agent steps, and waits for its neighbours."""
        self._change(start_rounds, agent.index)
        while True:
            yield self._round_ends[agent.index]
            self._round_ends[agent.index] = self.world.env.event()
            if self._change(on_round_end, agent.index):
                self._step(agent)
                self._change(after_step, agent.index)

    @override
    def turn(self, agent: Agent) -> None:
        self._change(on_available, agent.index, agent.up, agent.gone)

    @override
    def happen(self, asked: RuleEvent) -> None:
        what, subject, serial = asked.what, asked.subject, asked.serial
        if what == ARRIVE:
            self._change(on_arrival, subject)
            return
        run, tables = self.transport.plain, self.views(self.world.rounds)
        if self.plain(counts_as_event)(run, tables, what, subject, serial):
            self.world.effort.check(self.world.now)
            run.counts[tallies.WAKES] += 1
        if what == REPEAT:
            self._change(on_repeat, subject)
        elif what == PATIENCE:
            self._change(on_patience, subject, serial)
        else:
            self._round_ends[subject].succeed()

    # A step.

    def _step(self, agent: Agent) -> None:
        run, updates = self.transport.tables, agent.updates
        agent.tick = int(run.agents.ticks[agent.index])
        agent.reactions = 0
        self.state.prepare(agent)
        self.step(agent)
        if agent.updates == updates:
            # It fell silent without a word, which its neighbours are told all the same.
            self._say(agent, *self.state.nothing)
        self.transport.plain.agents.updates[agent.index] = agent.updates

    @override
    def send(self, agent: Agent, messages: Sequence[Sent]) -> None:
        """Send what a step says; raises like `RoundState.charge`."""
        self._say(agent, *self.state.charge(agent, messages))

    def _say(self, agent: Agent, said: Any, edges: Any) -> None:
        run = self.transport.tables
        run.agents.silent[agent.index] = agent.silent
        for kind, row, first, last in said.tolist():
            self.draw_together(agent, edges[first:last], kind, int(run.versions.bytes[row]))
        self._change(say_all, agent.index, said.tolist(), edges.tolist())

    # A rule, and what comes of it.

    def _change(self, rule: Any, *arguments: Any) -> Any:
        """Let a rule change the tables, and do what it asks for."""
        transport, world, stop = self.transport, self.world, self.world.stop_condition
        run, tables = transport.plain, self.views(world.rounds)
        if self._is_full(run.counts, tables.counts):
            self.state.make_room()
            run, tables = transport.plain, self.views(world.rounds)
        if self.observed:
            transport.notes.make_room(self.state.room)
            run, tables = transport.plain, self.views(world.rounds)
        tables.now[0] = world.env.now
        run.counts[tallies.ACTIVE], run.counts[tallies.SHORT] = stop.active, stop.short
        result = self.plain(rule)(run, tables, *arguments)
        stop.active, stop.short = run.counts[tallies.ACTIVE], run.counts[tallies.SHORT]
        if self.observed:
            transport.notes.tell()
        self._heed(tables.counts)
        return result

    def _is_full(self, counts: Any, made: Any) -> bool:
        """True if there may be no room for the next event's version, records and copies."""
        return counts[tallies.FREE_ROWS] < 2 or min(made[FREE_RECORDS], made[FREE_COPIES]) < self.state.room

    def _heed(self, counts: Any) -> None:
        """See whether the run, or everybody's part in it, is over."""
        if counts[STALLED]:
            raise Stall(self.state.complaint())
        if counts[WORN]:
            check_transmission(2**24)
        if counts[DONE]:
            counts[DONE] = 0
            self.world.stop_condition.check()
        if counts[ENOUGH]:
            self.check_vectors()
