"""Pairwise exchange with a SimPy event for every message and timer, and a process for every agent: for reading.

The rules are those of `hushnet.simulator.rules.sessions`, run as plain Python.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, final

import simpy
from typing_extensions import override

from ....agents.agent import Agent
from ...network.randomness import check_transmission
from ...rules.sessions import busy, carry_on, follow_up, free_edges, look_after, reach_callee, take_copy
from ...tables import session_table as columns
from ...tables import tallies
from ...tables.effects import ARRIVE, ENOUGH, FREE_COPIES, REACH, WORN
from ...tables.session_table import COMPLETING, REFUSED_KIND, REQUESTING, RESPONDING, SessionTables, with_more_copies
from ...world.world import World
from .event_driver import EventDriver, RuleEvent


@final
class EventSessions(EventDriver):
    """Every agent calls a neighbour when its own clock wakes it."""

    empty = REFUSED_KIND

    def __init__(self, world: World) -> None:
        super().__init__(world, is_up=self.is_up, gone=self._gone)
        self._done = [world.env.event() for _ in world.agents]
        rules = busy, carry_on, follow_up, free_edges, look_after, reach_callee, take_copy
        self._busy, self._carry_on, self._follow_up, self._free_edges, self._repeat, self._reach, self._take = map(
            self.plain, rules
        )

    @property
    def tables(self) -> SessionTables:
        """Replaced when there is need for more room."""
        assert self.world.sessions is not None
        return self.world.sessions

    def busy(self, edge: int) -> bool:
        """True if the tail of a directed edge knows of an open session there: one that it opened, or accepted."""
        return self._busy(self.transport.plain, self.views(self.world.sessions), edge)

    def _gone(self, _mail: Any, agent: int, _now: float) -> bool:
        return self.world.agents[agent].gone

    # The processes.

    @override
    def steps(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """An agent whose clock has ended still completes what it has opened."""
        yield from super().steps(agent)
        self.tables.over[agent.index] = True
        if self.tables.watches[agent.index]:
            yield self._done[agent.index]

    # Calls, arrivals and timers.

    def wake(self, agent: Agent) -> None:
        """Open a session with the partner that the protocol picks, if their edge is free.

        An agent all of whose neighbours have left for good, or that never had any, falls silent.
        """
        run, tables = self.transport.plain, self.views(self.world.sessions)
        index, counts = agent.index, tables.counts
        run.agents.ticks[index], run.agents.silent[index] = agent.tick, agent.silent
        tables.times[columns.NOW] = self.env.now
        free = self._free_edges(run, tables, index)
        agent.silent = bool(run.agents.silent[index])
        if not free:
            return
        made = self.world.call(agent, self.busy)
        if made is None:
            counts[columns.SKIPPED] += not agent.silent
        else:
            counts[columns.PHASE], counts[columns.EDGE] = REQUESTING, made[0]
            counts[columns.ROW] = self.transport.keep(made[1])
            self._change(self._carry_on)

    @override
    def happen(self, asked: RuleEvent) -> None:
        """A copy arrives, or a caller's patience is over."""
        if asked.what == ARRIVE:
            self._arrive(asked.subject)
        elif asked.what == REACH:
            self._change(self._reach, asked.subject)
        elif self.tables.sessions[asked.subject, columns.TICK] == asked.serial:
            self.world.watchdog.count(self.world.now)
            self._change(self._repeat, asked.subject)

    def _arrive(self, place: int) -> None:
        self._change(self._take, place)
        tables = self.views(self.world.sessions)
        counts, edge = tables.counts, tables.copies[place][1]
        if counts[columns.CLOSING] >= 0 or counts[columns.AGAIN] >= 0:
            self._change(self._follow_up)
        if counts[columns.PHASE] == RESPONDING:
            self._accept(edge)
        elif counts[columns.PHASE] == COMPLETING:
            self._finish(edge)

    def _accept(self, edge: int) -> None:
        graph = self.world.setting.graph
        callee, back = self.world.agents[int(graph.heads[edge])], int(graph.reverse[edge])
        heard = self.transport.vector_of(int(self.tables.counts[columns.ROW]), "request", int(graph.tails[edge]))
        reply = self.world.meet("respond", callee, back, heard)
        self.tables.counts[columns.ROW] = -1 if reply is None else self.transport.keep(reply)
        self._change(self._carry_on)

    def _finish(self, edge: int) -> None:
        graph = self.world.setting.graph
        caller = self.world.agents[int(graph.tails[edge])]
        vector = self.transport.vector_of(int(self.tables.counts[columns.ROW]), "reply", int(graph.heads[edge]))
        self._change(self._carry_on)
        self.world.meet("complete", caller, edge, vector)
        self.count(caller)

    # A rule, and what comes of it.

    def _change(self, rule: Any, *arguments: Any) -> Any:
        """Let a rule in plain Python change the tables, and see what comes of it."""
        transport, world = self.transport, self.world
        run, tables = transport.plain, self.views(world.sessions)
        counts = tables.counts
        if run.counts[tallies.FREE_ROWS] < 2 or counts[FREE_COPIES] < 2 or self.observed:
            self._grow()
            run, tables = transport.plain, self.views(world.sessions)
        tables.times[columns.NOW] = world.env.now
        result = rule(run, tables, *arguments)
        if self.observed:
            transport.notes.tell()
        if counts[WORN]:
            check_transmission(2**24)
        if counts[ENOUGH]:
            counts[ENOUGH] = 0
            self.check_vectors()
        if counts[columns.ENDED] >= 0:
            self._done[int(counts[columns.ENDED])].succeed()
            counts[columns.ENDED] = -1
        return result

    def _grow(self) -> None:
        """See to it that the next version and copies fit in."""
        self.transport.grow(2, 0)
        self.transport.notes.grow(4)
        if self.tables.counts[FREE_COPIES] < 2:
            self.world.sessions = with_more_copies(self.tables)
