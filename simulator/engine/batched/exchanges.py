"""The batched engine for pairwise exchange: compiled windows of arrivals, timers and wake-ups.

The rules of sessions are those of `hushnet.simulator.rules.sessions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....protocols.steps.partners import NO_LAW
from ...network.randomness import check_transmission
from ...rules.sessions import busy
from ...tables import sessions, tallies
from ...tables.priorities import WAKE
from ...tables.sessions import REQUESTING, RESPONDING, SessionTables
from ...world.sessions import REFUSAL, with_more_copies
from ...world.world import World
from . import exchange_windows, windows
from .driver import BatchedDriver, Pause
from .plan import empty_plan


@final
class Exchanges(BatchedDriver):
    """Every agent calls a neighbour when its own clock wakes it.

    Parameters
    ----------
    world : World
    plans : bool
        Whether to plan halves of exchanges, where their protocol admits it.
    """

    empty = REFUSAL

    def __init__(self, world: World, *, plans: bool = True) -> None:
        super().__init__(world, plans=plans)
        law, plan, kinds = NO_LAW, empty_plan(0, 0, 0, 0), 0
        if self.planned is not None:
            plan, kinds = self.planned.plan, self.planned.kinds
            given = world.protocol.partner_law()
            law = np.ascontiguousarray(given, dtype=np.float64) if len(given) else NO_LAW
        self._call: tuple[Any, ...] = self.planned is not None, plan, kinds, law

    @property
    def sessions(self) -> SessionTables:
        """Open sessions, copies under way and timers; replaced when there is need for more room."""
        assert self.world.sessions is not None
        return self.world.sessions

    def busy(self, edge: int) -> bool:
        """Whether the tail of a directed edge knows of an open session there: one that it opened, or accepted."""
        return bool(busy(self.transport.tables, self.sessions, edge))

    @override
    def init_clocks(self) -> Sequence[int]:
        return windows.init_clocks(self.transport.tables)

    @override
    def next_event(self) -> tuple[float, int] | None:
        time, priority = exchange_windows.upcoming(self.transport.tables, self.sessions)
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
        arguments = self.sessions, until, forced, *self._call
        why, index = exchange_windows.run_exchanges(self.transport.tables, *arguments)
        stop.active, stop.short = int(run.counts[tallies.ACTIVE]), int(run.counts[tallies.SHORT])
        self.stopped_at(float(self.sessions.times[sessions.NOW]))
        if self.planned is not None:
            self.world.activations = int(run.counts[tallies.ACTIVATIONS])
        if self.transport.notes.told:
            self.make_planned()
        self.transport.notes.tell()
        if why != exchange_windows.HALF:
            self._check()
        return self._handle(why, int(index))

    def _check(self) -> None:
        """End the run if the vectors asked for were sent; an event that brings this about is completed first."""
        counts = self.sessions.counts
        if counts[sessions.WORN]:
            check_transmission(2**24)
        if counts[sessions.ENOUGH]:
            counts[sessions.ENOUGH] = 0
            self.check_vectors()

    def _handle(self, why: int, index: int) -> Pause:
        """Do what a window stopped for."""
        world, run = self.world, self.transport.tables
        if why == exchange_windows.HALF:
            self._half(index)
        elif why == windows.FULL:
            self._make_room()
        elif why == windows.COUNTED:
            agent = world.agents[index]
            agent.updates = int(run.agents.updates[index])
            self.check_limits(agent)
        elif why == windows.OVER:
            self.clock_ended(index)
            return Pause.WAIT
        elif why == windows.FINISHED:
            world.stop_condition.check()
        elif why == windows.ENDS:
            self.end_as_before()
        elif why == windows.LOOK:
            self.look()
        elif why == windows.IDLE:
            return Pause.DONE
        return Pause.WAIT if why == windows.REACHED else Pause.GO_ON

    def _half(self, index: int) -> None:
        """Make the half of an exchange that a window stopped at; of a planned call, the observer has been told."""
        counts = self.sessions.counts
        phase, edge = int(counts[sessions.PHASE]), int(counts[sessions.EDGE])
        if phase == REQUESTING and self.planned is not None:
            return  # the observer was told of it
        if phase == REQUESTING:
            self._offer(index)
        elif phase == RESPONDING:
            self._accept(edge)
        else:
            self._finish(edge)

    def _catch_up(self, index: int) -> None:
        """Let an agent know of the ticks of its clock."""
        agent, tick = self.world.agents[index], int(self.transport.tables.agents.ticks[index])
        if agent.tick != tick:
            agent.tick, agent.reactions = tick, 0

    def _offer(self, index: int) -> None:
        self._catch_up(index)
        agent, counts = self.world.agents[index], self.sessions.counts
        made = self.world.call(agent, self.busy)
        self.transport.tables.agents.silent[index] = agent.silent
        if made is None:
            counts[sessions.PHASE] = 0
            counts[sessions.SKIPPED] += not agent.silent
        else:
            counts[sessions.EDGE], counts[sessions.ROW] = made[0], self.transport.keep(made[1])

    def _accept(self, edge: int) -> None:
        graph = self.world.setting.graph
        callee, back = int(graph.heads[edge]), int(graph.reverse[edge])
        self._catch_up(callee)
        agent = self.world.agents[callee]
        reply = self.world.meet("respond", agent, back, self._heard(0, int(graph.tails[edge])))
        self.transport.tables.agents.silent[callee] |= agent.silent
        self.sessions.counts[sessions.ROW] = -1 if reply is None else self.transport.keep(reply)

    def _finish(self, edge: int) -> None:
        graph = self.world.setting.graph
        caller = int(graph.tails[edge])
        # A step may end the run as well, but its session is closed first.
        self._check()
        self._catch_up(caller)
        agent = self.world.agents[caller]
        self.world.meet("complete", agent, edge, self._heard(1, int(graph.heads[edge])))
        self.count(agent)
        self.transport.tables.agents.updates[caller] = agent.updates

    def _heard(self, kind: int, sender: int) -> NDArray[np.float64]:
        """A copy of the vector that half of an exchange is made with."""
        width = self.sessions.widths[kind, sender]
        vector = self.transport.tables.pool[self.sessions.counts[sessions.ROW], :width].copy()
        vector.flags.writeable = False
        return vector

    def _make_room(self) -> None:
        """See to it that the next event's version, copy and timer fit in."""
        self.make_if_full()
        self.transport.make_room(1, 0)
        self.transport.notes.make_room(exchange_windows.ROOM)
        old, counts = self.sessions, self.sessions.counts
        if counts[sessions.FREE_COPIES] == 0:
            self.world.sessions = with_more_copies(old)
        if counts[sessions.TIMERS] == len(old.timer_due):
            self._sort_out_timers()

    def _sort_out_timers(self) -> None:
        """Forget timers of sessions that are closed, and see to it that half of the queue is free."""
        old, counts = self.sessions, self.sessions.counts
        size = len(old.timer_due)
        places = (counts[sessions.FIRST_TIMER] + np.arange(size)) % size
        places = places[old.sessions[old.timer_edge[places], sessions.TICK] == old.timer_tick[places]]
        room = max(size, 2 * len(places))
        fresh = {}
        for name in ("timer_due", "timer_edge", "timer_tick"):
            queue = getattr(old, name)
            fresh[name] = np.zeros(room, dtype=queue.dtype)
            fresh[name][: len(places)] = queue[places]
        self.world.sessions = old._replace(**fresh)
        counts[sessions.FIRST_TIMER], counts[sessions.TIMERS] = 0, len(places)
