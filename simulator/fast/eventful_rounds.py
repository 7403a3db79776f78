"""The batched engine for rounds on networks that lose messages, or among agents that are absent or lose patience.

Every arrival, timer and absence is an event of a compiled loop (`hushnet.simulator.fast.round_events`), which calls the
rules of rounds (`hushnet.simulator.rules.rounds`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ...agents.agent import AVAILABILITY, Agent
from ...agents.availability import Timeline
from ...agents.compiled import announce
from ...agents.errors import Stall
from ...agents.inbox import Message
from ...protocols.base import Out
from ...protocols.schedule import RoundsSchedule
from ..randomness import check_leg
from ..rounds import addressed, check_setting, complaint, durations
from ..rules.forms import plain
from ..rules.round_messages import holds
from ..table_post import extended
from ..tables import rounds as tables
from ..tables import tallies
from ..tables.effects import EFFECT_COLUMNS, EFFECTS, NOTE_COLUMNS
from ..tables.rounds import RoundTables
from . import agenda as agendas
from . import round_events, windows
from .agenda import Agenda
from .changes import Changes
from .wake_windows import WakeWindows
from .windowed import Pause

if TYPE_CHECKING:
    from ..world import World

AHEAD = 16.0
"""Time units that changes of availability are drawn ahead."""


@final
class EventfulRounds(WakeWindows):
    """Every agent steps once it has heard a whole round from its neighbours, whatever the network does to it.

    Parameters
    ----------
    world : World
    parameters : RoundsSchedule
    compiled : bool
        Whether to use the protocol's compiled step, if it has one.

    Attributes
    ----------
    tables : RoundTables
    agenda : Agenda
        Both replaced when there is need for more room.

    Raises
    ------
    InputError
        If the clock is recorded, or agents join or leave.
    ValueError
        If the protocol's compiled form is one of an exchange.
    """

    def __init__(self, world: World, parameters: RoundsSchedule, *, compiled: bool = True) -> None:
        check_setting(world)
        super().__init__(world, compiled=compiled)
        graph, kinds = world.setting.graph, world.layout.messages
        self._kinds = list(kinds)
        self._room = int(graph.degrees.max(initial=0)) * (len(kinds) + 1) + 2
        self._changes: Changes | None = None
        self._due_changes = 0
        self.tables = self._make_tables(parameters)
        self.agenda = Agenda(
            np.zeros((0, agendas.COLUMNS), dtype=np.int64),
            np.zeros((self._room, agendas.COLUMNS), dtype=np.int64),
            np.zeros(agendas.PLACES, dtype=np.int64),
        )
        self._grow_agenda()

    def _make_tables(self, parameters: RoundsSchedule) -> RoundTables:
        world, room = self.world, self._room
        agents, edges = len(world.agents), len(world.setting.graph.heads)
        records = edges + room

        def whole(*shape: int) -> NDArray[np.int64]:
            return np.zeros(shape, dtype=np.int64)

        made = RoundTables(
            now=np.zeros(1),
            counts=whole(tables.COUNTS),
            constants=np.array([*durations(world, self.post, parameters), world.network.size(0)]),
            vectors=np.array([kind.vectors for kind in world.layout.messages.values()], dtype=np.int64),
            agents=whole(agents, tables.AGENT_COLUMNS),
            links=whole(edges, tables.LINK_COLUMNS),
            records=whole(records, tables.RECORD_COLUMNS),
            free_records=np.arange(records),
            copies=whole(records, tables.COPY_COLUMNS),
            free_copies=np.arange(records),
            shown=whole(room, 2),
            queue=whole(agents + records),
            due=np.zeros(agents + records + room),
            effects=whole(agents + records + room, EFFECT_COLUMNS),
            note_times=np.zeros((room, 2)),
            notes=whole(room, NOTE_COLUMNS),
        )
        made.agents[:, tables.QUEUE_FIRST] = -1
        made.links[:, [tables.LAST, tables.FIRST_HELD, tables.SAYING]] = -1
        made.counts[[tables.FREE_RECORDS, tables.FREE_COPIES]] = records
        return made

    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        """See `Schedule.begin`."""
        self._changes = Changes(timelines, lambda: self.world.effort.look(self.now))
        super().begin(joins, leaves, [iter([(0.0, True)]) for _ in timelines])

    def wind_up(self) -> Sequence[int]:
        """See `Windowed.wind_up`: round 1 begins at once, and nobody waits for who is silent from the start."""
        assert self._changes is not None
        finish, counts = self.world.finish, self.post.mail.counts
        counts[tallies.ACTIVE], counts[tallies.SHORT] = finish.active, finish.short
        self.tables.agents[:, tables.IS_UP] = self._changes.up
        for agent in np.flatnonzero(self._changes.gone).tolist():
            self.tables.agents[agent, tables.IS_GONE] = 1
            self.post.mail.silent[agent] = True
        round_events.start_all(self.post.mail, self.tables)
        agendas.settle_effects(self.tables, self.agenda)
        finish.active, finish.short = int(counts[tallies.ACTIVE]), int(counts[tallies.SHORT])
        finish.check()
        return ()

    def next_event(self) -> tuple[float, int] | None:
        """See `Windowed.next_event`."""
        assert self._changes is not None
        ahead = AHEAD
        while True:
            first = agendas.first(self.agenda)
            if first is not None and first[0] <= self._changes.known_until:
                return first
            if self._changes.known_until == math.inf:
                return first
            self._look_ahead((self.now if first is None else first[0]) + ahead)
            ahead *= 2

    def _look_ahead(self, until: float) -> None:
        """Know all changes of availability up to a time."""
        assert self._changes is not None
        found = self._changes.draw(until)
        self._due_changes += len(found)
        self._grow_agenda()
        due, effects = self.tables.due, self.tables.effects
        for first in range(0, len(found), len(due)):
            part = found[first : first + len(due)]
            due[: len(part)] = [time for time, _, _ in part]
            effects[: len(part)] = [(AVAILABILITY, what, agent, 0) for _, what, agent in part]
            self.tables.counts[EFFECTS] = len(part)
            agendas.settle_effects(self.tables, self.agenda)

    def at_work(self) -> tuple[int, float, str]:
        """See `Windowed.at_work`."""
        return int(self.tables.counts[tables.STEPPING]), float(self.tables.now[0]), "step"

    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """See `WakeWindows.run_compiled`; the window ends where availability is not known."""
        announce(round_events.run_round_events, "the rounds of the batched engine")
        assert self._changes is not None
        limit = min(limit, math.nextafter(self._changes.known_until, math.inf))
        arguments = self.tables, self.agenda, limit, forced, self._room, *self._call
        return self.in_window(round_events.run_round_events, *arguments)

    def handle(self, why: int, index: int) -> Pause:
        """See `WakeWindows.handle`."""
        world = self.world
        if why == round_events.STALL:
            raise Stall(self._complaint())
        if why == round_events.SENT_ENOUGH:
            world.traffic.vectors = int(self.post.mail.counts[tallies.VECTORS])
            world.check_vectors()
            return Pause.GO_ON
        if why == round_events.WORN_OUT:
            check_leg(2**24)
        assert self._changes is not None
        if why == windows.IDLE and self._changes.known_until < math.inf:
            return Pause.WAIT
        return super().handle(why, index)

    def make_room(self) -> None:
        """See `WakeWindows.make_room`."""
        self.post.make_room(2, 0)
        made, room = self.tables, self._room
        if made.counts[tables.FREE_RECORDS] < room or made.counts[tables.FREE_COPIES] < room:
            old, more = len(made.records), len(made.records) + room
            names = ("records", "free_records", "copies", "free_copies", "queue", "due", "effects")
            made = made._replace(**{name: extended(getattr(made, name), more) for name in names})
            for free, count in (
                (made.free_records, tables.FREE_RECORDS),
                (made.free_copies, tables.FREE_COPIES),
            ):
                free[made.counts[count] : made.counts[count] + more] = np.arange(old, old + more)
                made.counts[count] += more
            self.tables = made
        self._grow_agenda()

    def _grow_agenda(self) -> None:
        """See to it that everything fits that may be due: ends of rounds, copies, repeats and changes."""
        agenda, made = self.agenda, self.tables
        most = len(made.agents) + len(made.records) + len(made.copies) + self._due_changes + self._room
        if len(agenda.heap) < most:
            agenda = agenda._replace(heap=extended(agenda.heap, most - len(agenda.heap) + most // 2))
        if len(agenda.ring) - agenda.size[agendas.TIMERS] < self._room:
            ring = np.roll(agenda.ring, -int(agenda.size[agendas.FIRST_TIMER]), axis=0)
            agenda.size[agendas.FIRST_TIMER] = 0
            agenda = agenda._replace(ring=extended(ring, len(ring) + self._room))
        self.agenda = agenda

    def take_step(self, agent: Agent) -> None:
        """See `WakeWindows.take_step`; it ends the agent's round."""
        world, index = self.world, agent.index
        world.views[index].round = agent.tick + 1
        if world.traits.inbox == "every":
            world.inbox.pending[index] += self._shown(agent)
        updates = agent.updates
        world.step(agent)
        if agent.updates == updates:
            # It fell silent without a word, which its neighbours are told all the same.
            self._speak(agent, np.empty((0, 4), dtype=np.int64), np.empty(0, dtype=np.int64))

    def _shown(self, agent: Agent) -> list[Message]:
        """The messages that an agent's inbox shows for the first time, by neighbour and order of sending."""
        world, inbox = self.world, self.world.inbox
        heads, messages = world.setting.graph.heads, []
        for place, order in self.tables.shown[: self.tables.counts[tables.SHOWN_MESSAGES]].tolist():
            rank, slot = divmod(place, len(heads))
            kind = self._kinds[rank]
            vector = inbox.values[kind][slot].copy()
            vector.flags.writeable = False
            sent_at, tick = float(inbox.sent_at[kind][slot]), int(inbox.tick[kind][slot])
            size = world.network.size(len(vector))
            messages.append(Message(int(heads[slot]), agent.index, kind, vector, sent_at, order, tick, slot, size))
        return messages

    def send(self, agent: Agent, out: Out) -> None:
        """See `Schedule.send`.

        Raises
        ------
        ValueError
            If a step sends two messages of one kind to one neighbour.
        """
        graph, post = self.world.setting.graph, self.post
        addressed(graph, agent.index, out.sent)
        slots = graph.edges_of(agent.index)
        said: list[tuple[int, int, int, int]] = []
        over: list[int] = []
        for sent in out.sent:
            edges = [e for e in range(slots.start, slots.stop) if sent.to is None or int(graph.heads[e]) in sent.to]
            if edges:
                post.remember(agent, sent, agent.tick)
                row = post.keep(sent, agent.tick)
                said.append((self._kinds.index(sent.kind), row, len(over), len(over) + len(edges)))
                over += edges
        self._speak(agent, np.array(said, dtype=np.int64).reshape(-1, 4), np.array(over, dtype=np.int64))

    def _speak(self, agent: Agent, said: NDArray[np.int64], over: NDArray[np.int64]) -> None:
        self.post.mail.silent[agent.index] = agent.silent
        round_events.speak(self.post.mail, self.tables, agent.index, said, over)
        self.world.traffic.vectors = int(self.post.mail.counts[tallies.VECTORS])

    def take_in(self, now: float, barrier: int) -> None:
        """See `Windowed.take_in`: every arrival was taken in when it happened."""

    def _complaint(self) -> str:
        """Who waits for whom, in the earliest round that cannot begin: all others follow from it."""
        mail, made = self.post.mail, self.tables
        waiting = np.flatnonzero(made.agents[:, tables.WAITS])
        agent = int(waiting[np.argmin(mail.ticks[waiting])])
        number = int(mail.ticks[agent]) + 1
        slots = range(int(mail.offsets[agent]), int(mail.offsets[agent + 1]))
        slot = next(slot for slot in slots if not plain(holds)(made, slot, number))
        posted = bool(mail.ticks[mail.heads[slot]] + 1 >= number)
        return complaint(self.world, agent, slot, number, posted=posted)
