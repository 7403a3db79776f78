"""Rounds with a SimPy event for every message and timer, and a process for every agent: for reading and tracing.

The rules are those of `hushnet.simulator.rules.rounds`, run as plain Python. What a rule asks for becomes an event at
its time and priority, and what it notes is told to whoever observes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, final

import numpy as np
import simpy
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.availability import Timeline
from ....agents.inbox import Message
from ....protocols.base import Sent
from ...network.randomness import check_transmission
from ...rules.round_messages import reach, say_all
from ...rules.rounds import (
    after_step,
    counts_as_event,
    on_arrival,
    on_available,
    on_computed,
    on_patience,
    on_repeat,
    on_round_end,
    start_rounds,
)
from ...tables import tallies
from ...tables.effects import ARRIVE, ENOUGH, FREE_COPIES, PATIENCE, REACH, REPEAT, ROUND_END, WORN
from ...tables.round_table import (
    DONE,
    EMPTY,
    FREE_RECORDS,
    IS_UP,
    SHOWN_MESSAGES,
    STALLED,
    RoundTables,
    addressed,
    capacity_for,
    round_tables,
    with_capacity,
)
from ...world.world import World
from ..driver import stall
from .event_driver import EventDriver, RuleEvent


@final
class EventRounds(EventDriver):
    """Every agent steps once it has heard a whole round from its neighbours."""

    empty = EMPTY

    def __init__(self, world: World) -> None:
        super().__init__(world, next_time=self._next_time)
        assert world.in_rounds is not None
        world.rounds = round_tables(world.setting, world.layout, world.network, world.in_rounds)
        self._capacity = capacity_for(world.setting.graph, world.layout)

    @property
    def _rounds(self) -> RoundTables:
        """Replaced when there is need for more room."""
        assert self.world.rounds is not None
        return self.world.rounds

    def _next_time(self, _mail: Any, agent: int, tick: int, now: float) -> float:
        return self.world.clock.next_time(agent, tick, now)

    # The processes.

    @override
    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        env = self.world.env
        self.transport.notes.begin(self.world, empty=self.empty)
        for agent, timeline in zip(self.world.agents, timelines, strict=True):
            self.transport.tables.agents.silent[agent.index] = agent.silent
            agent.up = self._rounds.agents[agent.index, IS_UP] = next(timeline)[1]
            env.process(self.presence(agent, timeline))
        for agent in self.world.agents:
            env.process(self.steps(agent))

    @override
    def steps(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """The first round begins; what follows are events that rules ask for."""
        self._change(start_rounds, agent.index)
        yield from ()

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
            self.world.watchdog.check(self.world.now)
            run.counts[tallies.WAKES] += 1
        if what == REACH:
            self._change(reach, subject)
        elif what == REPEAT:
            self._change(on_repeat, subject)
        elif what == PATIENCE:
            self._change(on_patience, subject, serial)
        else:
            self._go_on(self.world.agents[subject], on_round_end if what == ROUND_END else on_computed)

    # A step.

    def _go_on(self, agent: Agent, rule: Any) -> None:
        """A round ends, or a step was computed; the agent steps if it has not to wait, and waits for its neighbours."""
        made = self._change(rule, agent.index)
        if rule is on_round_end and self.world.traits.inbox == "every":
            self.world.inbox.pending[agent.index] += self._shown(agent)
        if made:
            self._step(agent)
            self._change(after_step, agent.index)

    def _step(self, agent: Agent) -> None:
        run, updates = self.transport.tables, agent.updates
        agent.tick = int(run.agents.ticks[agent.index])
        agent.reactions = 0
        self.step(agent)
        if agent.updates == updates:
            self.send(agent, ())  # it fell silent without a word, which its neighbours are told all the same

    def _shown(self, agent: Agent) -> list[Message]:
        """The messages that an agent's inbox shows for the first time, by neighbour and order of sending."""
        world, inbox, messages = self.world, self.world.inbox, list[Message]()
        heads, kinds = world.setting.graph.heads, list(world.layout.messages)
        for place, order in self._rounds.shown[: self._rounds.counts[SHOWN_MESSAGES]].tolist():
            rank, slot = divmod(place, len(heads))
            kind = kinds[int(rank)]
            vector = self.transport.vector_of(int(inbox.slots["known"][int(place)]), kind, int(heads[slot]))
            sent_at, tick = float(inbox.sent_at[kind][slot]), int(inbox.tick[kind][slot])
            size = self.transport.size(kind, len(vector))
            messages.append(Message(int(heads[slot]), agent.index, kind, vector, sent_at, order, tick, slot, size))
        return messages

    @override
    def send(self, agent: Agent, messages: Sequence[Sent]) -> None:
        """Charge, keep and send what a step gave out.

        Raises `ValueError` if a step sends two messages of one kind to one neighbour.
        """
        kinds, per_edge = list(self.world.layout.messages), addressed(self.world.setting.graph, agent.index, messages)
        said, edges = list[tuple[int, int, int, int]](), list[int]()
        first, opened = self.world.setting.graph.edges_of(agent.index).start, self.opened(agent)
        for sent in messages:
            over = [
                edge for edge, sents in per_edge.items() if opened[edge - first] and any(one is sent for one in sents)
            ]
            if over:
                self.transport.remember(agent, sent, agent.tick)
                row, kind = self.transport.keep(sent, agent.tick), kinds.index(sent.kind)
                self.draw_together(agent, np.array(over), kind, self.transport.size(sent.kind, len(sent.vector)))
                said.append((kind, row, len(edges), len(edges) + len(over)))
                edges += over
            else:
                self.transport.withhold(agent, sent)
        self.transport.tables.agents.silent[agent.index] = agent.silent
        self._change(say_all, agent.index, said, edges)

    # A rule, and what comes of it.

    def _change(self, rule: Any, *arguments: Any) -> Any:
        """Let a rule change the tables, and do what it asks for."""
        transport, world = self.transport, self.world
        run, tables = transport.plain, self.views(world.rounds)
        if self._is_full(run.counts, tables.counts):
            self.transport.grow(2, 0)
            world.rounds = with_capacity(self._rounds, self._capacity)
            run, tables = transport.plain, self.views(world.rounds)
        if self.observed:
            transport.notes.grow(self._capacity)
            run, tables = transport.plain, self.views(world.rounds)
        tables.now[0] = world.env.now
        result = self.plain(rule)(run, tables, *arguments)
        if self.observed:
            transport.notes.tell()
        self._heed(tables.counts)
        return result

    def _is_full(self, counts: Any, made: Any) -> bool:
        """True if there may be no room for the next event's version, records and copies."""
        return counts[tallies.FREE_ROWS] < 2 or min(made[FREE_RECORDS], made[FREE_COPIES]) < self._capacity

    def _heed(self, counts: Any) -> None:
        """See whether the run, or everybody's part in it, is over."""
        if counts[STALLED]:
            raise stall(self.world)
        if counts[WORN]:
            check_transmission(2**24)
        if counts[DONE]:
            counts[DONE] = 0
            self.world.stop_condition.check()
        if counts[ENOUGH]:
            self.check_vectors()
