"""The batched engine for rounds on networks that lose messages, or among agents that are absent or lose patience.

Every arrival, timer and absence is an event of a compiled loop (`hushnet.simulator.engine.batched.round_events`), which
calls the rules of rounds (`hushnet.simulator.rules.rounds`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np
from typing_extensions import override

from ....agents.availability import Timeline
from ....agents.errors import Stall
from ...network.randomness import check_transmission
from ...tables import rounds as tables
from ...tables import tallies
from ...tables.effects import EFFECTS
from ...tables.rounds import RoundTables
from ...world.rounds import EMPTY
from ...world.world import World
from ..round_state import RoundState
from . import agenda as agendas
from . import round_events, windows
from .availability_arrays import AHEAD, AvailabilityArrays
from .changes import Changes, ToldChanges
from .driver import Pause
from .wake_windows import WakeWindows


@final
class EventfulRounds(WakeWindows):
    """Every agent steps once it has heard a whole round from its neighbours, whatever the network does to it.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    state : RoundState
    agenda : Agenda
        Replaced when there is need for more room.
    """

    empty = EMPTY

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.state = RoundState(world)
        self._changes: Changes | None = None
        self.agenda = agendas.empty_agenda()

    @property
    def tables(self) -> RoundTables:
        """Replaced when there is need for more room."""
        return self.state.tables

    @override
    def follow(self, timelines: Sequence[Timeline]) -> AvailabilityArrays:
        """Changes are events here, and nothing is looked up."""
        self._changes = self.changes_of(timelines)
        return AvailabilityArrays(
            ToldChanges([iter([(0.0, True)]) for _ in timelines], lambda: None), self.transport.tables
        )

    @override
    def init_clocks(self) -> Sequence[int]:
        """Round 1 begins at once, and nobody waits for who is silent from the start."""
        assert self._changes is not None
        stop, counts = self.world.stop_condition, self.transport.tables.counts
        counts[tallies.ACTIVE], counts[tallies.SHORT] = stop.active, stop.short
        self.tables.agents[:, tables.IS_UP] = self._changes.up
        for agent in np.flatnonzero(self._changes.gone).tolist():
            self.tables.agents[agent, tables.IS_GONE] = 1
            self.transport.tables.agents.silent[agent] = True
        round_events.start_all(self.transport.tables, self.tables)
        self.agenda = agendas.with_room(self.agenda, int(self.tables.counts[EFFECTS]) + self.state.room)
        agendas.settle_effects(self.tables, self.agenda)
        stop.active, stop.short = int(counts[tallies.ACTIVE]), int(counts[tallies.SHORT])
        stop.check()
        return ()

    @override
    def next_event(self) -> tuple[float, int] | None:
        assert self._changes is not None
        ahead = AHEAD
        while True:
            first, known = agendas.first(self.agenda), self._changes.known_until
            if known == math.inf or (first is not None and first[0] <= known):
                return first
            # Where nothing else happens, there may be no change for long.
            needed = known + ahead if first is None else first[0]
            changes = self._changes.draw(needed, needed + AHEAD)
            self.agenda = agendas.with_room(self.agenda, len(changes[0]) + self.state.room)
            agendas.add_changes(self.agenda, *changes)
            ahead *= 2

    @override
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """Run a window, which ends where availability is not known."""
        assert self._changes is not None
        limit = min(limit, math.nextafter(self._changes.known_until, math.inf))
        arguments = self.tables, self.agenda, limit, forced, self.state.room, *self._call
        return round_events.run_round_events(self.transport.tables, *arguments)

    @override
    def handle(self, why: int, index: int) -> Pause:
        if why == round_events.STALL:
            raise Stall(self.state.complaint())
        if why == round_events.SENT_ENOUGH:
            self.check_vectors()
            return Pause.GO_ON
        if why == round_events.WORN_OUT:
            check_transmission(2**24)
        assert self._changes is not None
        if why == windows.IDLE and self._changes.known_until < math.inf:
            return Pause.WAIT
        return super().handle(why, index)

    @override
    def make_room(self) -> None:
        self.planned.make()
        self.state.make_room()
        self.transport.make_room(len(self.rows) + 2, 0)
        self.transport.notes.make_room(self.state.room)
        self.agenda = agendas.with_room(self.agenda, self.state.room)

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        """Deliver nothing: every arrival was taken in when it happened."""
