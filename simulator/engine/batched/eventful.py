"""The batched engine where every arrival and timer is an event of a compiled queue: exchanges, and troubled rounds.

Rounds are, on networks that lose messages, or among agents that are absent or lose patience. The rules are those of
`hushnet.simulator.rules.sessions` and `hushnet.simulator.rules.rounds`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from typing_extensions import override

from ....agents.availability import Timeline
from ....protocols.steps.kernels import NO_WEIGHTS
from ...network.randomness import check_transmission
from ...tables import round_table as rounds
from ...tables import session_table as sessions
from ...tables.effects import ENOUGH, FREE_COPIES, PATIENCE, WAKE, WORN
from ...tables.round_table import EMPTY, RoundTables
from ...tables.session_table import REFUSED_KIND, SessionTables, with_more_copies
from ...world.world import World
from ..driver import stall
from . import event_queue, windows
from . import event_windows as events
from .batched_driver import BatchedDriver, Pause, WakeWindows
from .changes import AHEAD, AvailabilityArrays, Changes, ToldChanges


@final
class Exchanges(BatchedDriver):
    """Every agent calls a neighbour when its own clock wakes it.

    The queue is of arrivals and timers; it is replaced when there is need for more room.
    """

    empty = REFUSED_KIND

    def __init__(self, world: World) -> None:
        super().__init__(world)
        given = world.protocol.partner_weights()
        weights = np.ascontiguousarray(given, dtype=np.float64) if len(given) else NO_WEIGHTS
        self.queue = event_queue.empty_queue()
        self._call: tuple[Any, ...] = self.planned.plan, self.planned.kinds, weights

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
        time, priority = events.upcoming(self.transport.tables, self.sessions, self.queue)
        if np.isinf(time):
            return None
        return float(time), int(priority) + (int(self.transport.tables.wakes.rank[0]) if priority == WAKE else 0)

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        """Deliver nothing: arrivals are events here."""

    @override
    def window(self, limit: float, forced: bool) -> Pause:
        """Run a window, which ends where availability is not known."""
        assert self.presence is not None
        run, now = self.transport.tables, self.world.now
        if now >= self.presence.drawn:
            run = self.presence.draw(now, run)
            self.transport.tables = run = self.presence.forget(now, run)
        until = min(limit, self.presence.drawn)
        arguments = self.sessions, self.queue, until, forced, *self._call
        why, index = events.run_exchanges(self.transport.tables, *arguments)
        self.stopped_at(float(self.sessions.times[sessions.NOW]))
        if self.transport.notes.told:
            self.planned.make()
        self.transport.notes.tell()
        if why != events.CALL:
            self._check()
        return self.handle(why, int(index))

    def _check(self) -> None:
        """End the run if the vectors asked for were sent; an event that brings this about is completed first."""
        counts = self.sessions.counts
        if counts[WORN]:
            check_transmission(2**24)
        if counts[ENOUGH]:
            counts[ENOUGH] = 0
            self.check_vectors()

    @override
    def grow(self) -> None:
        """See to it that the next event's version, copy and timer fit in."""
        self.make_if_full()
        self.transport.grow(1, 0)
        self.transport.notes.grow(events.CAPACITY)
        if self.sessions.counts[FREE_COPIES] == 0:
            self.world.sessions = with_more_copies(self.sessions)
        if event_queue.capacity_left(self.queue) < len(self.sessions.due):
            self._grow_queue()

    def _grow_queue(self) -> None:
        """Forget timers of sessions that are closed, and see to it that half of the queue is free."""
        loads = self.queue.heap.load[: self.queue.size[event_queue.ON_HEAP]]
        kept, timers = np.ones(len(loads), dtype=bool), event_queue.what_of(loads) == PATIENCE
        edges, ticks = event_queue.subject_of(loads[timers]), loads[timers] >> 33
        kept[timers] = self.sessions.sessions[edges, sessions.TICK] == ticks
        event_queue.keep_events(self.queue, kept)
        self.queue = event_queue.with_capacity(self.queue, max(len(self.queue.heap) // 2, 8 * len(self.sessions.due)))


@final
class EventfulRounds(WakeWindows):
    """Every agent steps once it has heard a whole round from its neighbours, whatever the network does to it.

    The queue is replaced when there is need for more room.
    """

    empty = EMPTY

    def __init__(self, world: World) -> None:
        super().__init__(world)
        assert world.in_rounds is not None
        world.rounds = rounds.round_tables(world.setting, world.layout, world.network, world.in_rounds)
        self._capacity = rounds.capacity_for(world.setting.graph, world.layout)
        self._changes: Changes | None = None
        self.queue = event_queue.empty_queue()

    @property
    def tables(self) -> RoundTables:
        """Replaced when there is need for more room."""
        assert self.world.rounds is not None
        return self.world.rounds

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
        self.tables.agents[:, rounds.IS_UP] = self._changes.up
        for agent in np.flatnonzero(self._changes.gone).tolist():
            self.tables.agents[agent, rounds.IS_GONE] = 1
            self.transport.tables.agents.silent[agent] = True
        self.queue = event_queue.with_capacity(self.queue, len(self.tables.agents) + self._capacity)
        events.start_all(self.transport.tables, self.tables, self.queue)
        self.world.stop_condition.check()
        return ()

    @override
    def next_event(self) -> tuple[float, int] | None:
        assert self._changes is not None
        ahead = AHEAD
        while True:
            first, known = event_queue.first(self.queue), self._changes.known_until
            if known == math.inf or (first is not None and first[0] <= known):
                return first
            # Where nothing else happens, there may be no change for long.
            needed = known + ahead if first is None else first[0]
            changes = self._changes.draw(needed, needed + AHEAD)
            self.queue = event_queue.with_capacity(self.queue, len(changes[0]) + self._capacity)
            event_queue.add_changes(self.queue, *changes)
            ahead *= 2

    @override
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """Run a window, which ends where availability is not known."""
        assert self._changes is not None
        limit = min(limit, math.nextafter(self._changes.known_until, math.inf))
        arguments = self.tables, self.queue, limit, forced, self._capacity, *self._call
        return events.run_round_events(self.transport.tables, *arguments)

    @override
    def handle(self, why: int, index: int) -> Pause:
        if why == events.STALL:
            raise stall(self.world)
        if why == events.SENT_ENOUGH:
            self.check_vectors()
            return Pause.GO_ON
        if why == events.WORN_OUT:
            check_transmission(2**24)
        assert self._changes is not None
        if why == windows.IDLE and self._changes.known_until < math.inf:
            return Pause.WAIT
        return super().handle(why, index)

    @override
    def grow(self) -> None:
        self.planned.make()
        self.world.rounds = rounds.with_capacity(self.tables, self._capacity)
        self.transport.grow(len(self.rows) + 2, 0)
        self.transport.notes.grow(self._capacity)
        self.queue = event_queue.with_capacity(self.queue, self._capacity)

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        """Deliver nothing: every arrival was taken in when it happened."""
