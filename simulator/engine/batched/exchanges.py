"""The batched engine for pairwise exchange: compiled windows of arrivals, timers and wake-ups.

The rules of sessions are those of `hushnet.simulator.rules.sessions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from typing_extensions import override

from ....protocols.steps.partners import NO_LAW
from ...network.randomness import check_transmission
from ...tables import sessions, tallies
from ...tables.effects import PATIENCE
from ...tables.priorities import WAKE
from ...tables.sessions import SessionTables
from ...world.sessions import REFUSAL, with_more_copies
from ...world.world import World
from . import agenda as agendas
from . import exchange_windows, windows
from .driver import BatchedDriver, Pause


@final
class Exchanges(BatchedDriver):
    """Every agent calls a neighbour when its own clock wakes it.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    agenda : Agenda
        Of arrivals and timers; replaced when there is need for more room.
    """

    empty = REFUSAL

    def __init__(self, world: World) -> None:
        super().__init__(world)
        given = world.protocol.partner_law()
        law = np.ascontiguousarray(given, dtype=np.float64) if len(given) else NO_LAW
        self.agenda = agendas.empty_agenda()
        self._call: tuple[Any, ...] = self.planned.plan, self.planned.kinds, law

    @property
    def sessions(self) -> SessionTables:
        """Open sessions, copies under way and timers; replaced when there is need for more room."""
        assert self.world.sessions is not None
        return self.world.sessions

    @override
    def init_clocks(self) -> Sequence[int]:
        return windows.init_clocks(self.transport.tables)

    @override
    def next_event(self) -> tuple[float, int] | None:
        time, priority = exchange_windows.upcoming(self.transport.tables, self.sessions, self.agenda)
        if np.isinf(time):
            return None
        return float(time), int(priority) + (int(self.transport.tables.wakes.agent[0]) if priority == WAKE else 0)

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        """Deliver nothing: arrivals are events here."""

    @override
    def window(self, limit: float, forced: bool) -> Pause:
        """Run a window, which ends where availability is not known."""
        assert self.presence is not None
        stop, run, now = self.world.stop_condition, self.transport.tables, self.world.now
        if now >= self.presence.drawn:
            run = self.presence.draw(now, run)
            self.transport.tables = run = self.presence.forget(now, run)
        run.counts[tallies.ACTIVE], run.counts[tallies.SHORT] = stop.active, stop.short
        until = min(limit, self.presence.drawn)
        arguments = self.sessions, self.agenda, until, forced, *self._call
        why, index = exchange_windows.run_exchanges(self.transport.tables, *arguments)
        stop.active, stop.short = int(run.counts[tallies.ACTIVE]), int(run.counts[tallies.SHORT])
        self.stopped_at(float(self.sessions.times[sessions.NOW]))
        self.world.activations = int(run.counts[tallies.ACTIVATIONS])
        if self.transport.notes.told:
            self.planned.make()
        self.transport.notes.tell()
        if why != exchange_windows.CALL:
            self._check()
        return self.handle(why, int(index))

    def _check(self) -> None:
        """End the run if the vectors asked for were sent; an event that brings this about is completed first."""
        counts = self.sessions.counts
        if counts[sessions.WORN]:
            check_transmission(2**24)
        if counts[sessions.ENOUGH]:
            counts[sessions.ENOUGH] = 0
            self.check_vectors()

    @override
    def make_room(self) -> None:
        """See to it that the next event's version, copy and timer fit in."""
        self.make_if_full()
        self.transport.make_room(1, 0)
        self.transport.notes.make_room(exchange_windows.ROOM)
        if self.sessions.counts[sessions.FREE_COPIES] == 0:
            self.world.sessions = with_more_copies(self.sessions)
        if agendas.room_left(self.agenda) < len(self.sessions.due):
            self._make_agenda_room()

    def _make_agenda_room(self) -> None:
        """Forget timers of sessions that are closed, and see to it that half of the agenda is free."""
        loads = self.agenda.heap[: self.agenda.size[agendas.ON_HEAP], agendas.LOAD]
        kept, timers = np.ones(len(loads), dtype=bool), loads & 7 == PATIENCE
        edges, ticks = agendas.subject_of(loads[timers]), loads[timers] >> 33
        kept[timers] = self.sessions.sessions[edges, sessions.TICK] == ticks
        agendas.keep_events(self.agenda, kept)
        self.agenda = agendas.with_room(self.agenda, max(len(self.agenda.heap) // 2, 8 * len(self.sessions.due)))
