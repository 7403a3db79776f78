"""The fast engine: lazy delivery and compiled windows of wake-ups between SimPy's events.

SimPy still drives. A pump process waits for the next wake-up of anybody, runs the compiled window up to the next event
of anybody else (record instants, joining and leaving, the end), and waits again. Messages and absences cost no event.
Sequence of events, models and tallies at record instants are those of the reference engine (`hushnet.simulator.world`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import simpy

from ..agents.agent import AVAILABILITY, WAKE, Agent, At
from ..agents.availability import Timeline
from ..agents.compiled import announce
from ..agents.inbox import Message
from ..protocols.kernel import Kernel
from ..protocols.privacy.mechanisms import Release
from . import lazy, windows
from .clocks import PeriodicClock, PoissonClock, RecordedClock
from .lazy_post import LazyPost
from .presence import AHEAD, Presence
from .schedules import Schedule
from .world import TIME_UP, World


class Windows(Schedule):
    """Clocks that a pump follows for all agents; an agent's own process only waits for its clock's end."""

    def run(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """See `Schedule.run`."""
        assert isinstance(self.world, FastWorld)
        yield self.world.clock_ends[agent.index]

    def deliver(self, message: Message) -> bool:
        """See `Schedule.deliver`; nothing arrives by an event."""
        raise AssertionError(message)

    def react(self, message: Message) -> None:
        """See `Schedule.react`."""
        raise AssertionError(message)


class FastWorld(World):
    """One run of one protocol that broadcasts to ``latest`` inboxes; parameters and outside as of `World`.

    An observer is told of steps only, and of compiled ones after they were made.

    Attributes
    ----------
    kernel : Kernel or None
        The protocol's compiled step, if it has one.
    """

    post: LazyPost

    def __init__(self, *args: Any, compiled_step: bool = True, **kwargs: Any) -> None:
        self._time = 0.0
        self._in_step = False
        self.presence: Presence | None = None
        self.clock_ends: dict[int, simpy.Event] = {}
        super().__init__(*args, **kwargs)
        self.schedule = Windows(self)
        self._charged = np.zeros(len(self.agents), dtype=np.int64)
        self.kernel: Kernel | None = self.protocol.kernel(self.state) if compiled_step else None
        self.engine = f"fast ({'compiled' if self.kernel else 'Python'} step)"
        mail = self.post.mail
        stop = self.setting.stop
        mail.rules[5] = float(self.kernel is None)
        mail.rules[6] = math.inf if stop.activations is None else stop.activations
        mail.rules[7] = math.inf if stop.vectors is None else stop.vectors
        mail.rules[8] = -1.0 if stop.updates is None else stop.updates
        if self.kernel is not None:
            self.post.inbox.refresh = lambda: lazy.copy_all(self.post.mail)
        self._set_clocks()
        self._call = self._arguments()

    @property
    def now(self) -> float:
        """Time in expected wake-ups of a rate-1 agent."""
        return max(self.env.now, self._time)

    def run(self) -> None:
        """See `World.run`."""
        announce(windows.run_window, "the fast engine")
        try:
            super().run()
        finally:
            self._settle(final=True)

    def _make_post(self) -> LazyPost:
        return LazyPost(
            self.env,
            self.setting.graph,
            self.layout,
            self.network,
            self.ledger,
            self.agents,
            now=lambda: self.now,
        )

    def _set_clocks(self) -> None:
        mail, clock = self.post.mail, self.clock
        record = self.record_activations if self.recorder and self.record_activations else 0
        mail.clock[3] = 1 if self.observer and self.kernel else record
        mail.clock[4] = float(self.setting.stop.time is not None)
        if isinstance(clock, RecordedClock):
            mail.clock[0] = windows.RECORDED
            times = [np.array(own, dtype=np.float64) for own in clock.times]
            offsets = np.cumsum([0, *(len(own) for own in times)])
            mail = mail._replace(recorded=np.concatenate(times), recorded_offsets=offsets.astype(np.int64))
        elif isinstance(clock, PeriodicClock):
            mail.clock[:3] = windows.PERIODIC, clock.jitter, clock.random_phase
            mail.means[:] = clock.means
        else:
            assert isinstance(clock, PoissonClock)
            mail.clock[0] = windows.POISSON
            mail.means[:] = clock.means
        self.post.mail = mail

    def _arguments(self) -> tuple[Any, ...]:
        """What a window is called with besides the mail and its limit."""
        own = self.setting.network.start != "zero"
        kernel = self.kernel
        if kernel is None:
            none = Kernel(windows.no_step, (), (), np.empty((0, 0)), np.empty(0, dtype=bool), "")
            return False, none.step, *none.arguments, none.model, none.charged, own, 0, 1
        (kind,) = self.layout.messages.values()
        size = self.network.size(int(np.max(kind.width)))
        return True, kernel.step, *kernel.arguments, kernel.model, kernel.charged, own, size, kind.vectors

    def _begin(self, joins: list[float], leaves: list[float], timelines: list[Timeline]) -> None:
        mail = self.post.mail
        mail.joins[:], mail.leaves[:] = joins, leaves
        mail.alone[:] = (mail.joins > 0) | (mail.leaves < math.inf)
        self.presence = Presence(timelines, mail)
        for agent, join, leave in zip(self.agents, joins, leaves, strict=True):
            if mail.alone[agent.index]:
                self.clock_ends[agent.index] = self.env.event()
                self.env.process(self._life(agent, join, leave))
        self.env.process(self._pump())

    def _wind_up(self) -> None:
        """Set all clocks; those of agents that are silent from the start have ended."""
        assert self.presence is not None
        self.post.mail = self.presence.draw(0.0, self.post.mail)
        mail = self.post.mail
        mail.silent[:] = [agent.silent for agent in self.agents]
        ended = windows.start_clocks(mail)
        size = mail.counts[lazy.HEAP]
        order = np.lexsort((mail.heap_agent[:size], mail.heap_time[:size]))
        mail.heap_time[:size], mail.heap_agent[:size] = mail.heap_time[order], mail.heap_agent[order]
        for index in np.flatnonzero(ended).tolist():
            if mail.alone[index]:
                self.clock_ends[index].succeed()
                continue
            self._active -= 1
            if self.setting.stop.updates is not None:
                self._short -= 1
        self._check_finished()

    def _pump(self) -> Generator[simpy.Event, Any, None]:
        yield At(self.env, 0.0, AVAILABILITY)
        self._wind_up()
        why, agent, now, forced = windows.OVER, -1, 0.0, False
        while not self._stopped.triggered:
            mail = self.post.mail
            if why in (windows.REACHED, windows.OVER):
                if mail.counts[lazy.HEAP] == 0 and not mail.counts[lazy.UNFINISHED]:
                    return
                if not mail.counts[lazy.UNFINISHED]:
                    now, agent = float(mail.heap_time[0]), int(mail.heap_agent[0])
                    yield At(self.env, now, WAKE + agent)
                    if self._stopped.triggered:
                        return
                    forced = True
            why, agent, now = self._window(forced)
            forced = False
            if why == windows.IDLE:
                return
            self._handle(why, agent)

    def _window(self, forced: bool) -> tuple[int, int, float]:
        """Run what comes strictly before the next event, as far as availability is known."""
        limit = self.env.peek()
        assert self.presence is not None
        mail, top = self.post.mail, float(self.post.mail.heap_time[0])
        if top > self.presence.drawn - AHEAD / 2:
            until = top + AHEAD if top < limit else top
            settled = min(top, limit)
            mail = self.presence.draw(until, mail)
            unfinished = mail.counts[lazy.UNFINISHED]
            lazy.take_in_all(mail, settled, int(mail.counts[lazy.BARRIER]) if unfinished else lazy.EVER)
            self.post.mail = mail = self.presence.forget(settled, mail)
        mail.counts[lazy.ACTIVE], mail.counts[lazy.SHORT] = self._active, self._short
        why, agent, now = windows.run_window(mail, min(limit, self.presence.drawn), forced, *self._call)
        self._active, self._short = int(mail.counts[lazy.ACTIVE]), int(mail.counts[lazy.SHORT])
        if why not in (windows.REACHED, windows.IDLE, windows.FULL):
            self._time = float(now)
        if self.kernel is not None:
            self.activations = int(mail.counts[lazy.ACTIVATIONS])
        return why, agent, now

    def _handle(self, why: int, index: int) -> None:
        """Do what a window stopped for."""
        agent, mail = self.agents[max(index, 0)], self.post.mail
        if why == windows.FULL:
            self.post.make_room(1, int(self.setting.graph.degrees.max(initial=0)))
        elif why == windows.AWAKE:
            agent.tick = int(mail.ticks[index])
            self._handling(lambda: self.step(agent))
            self.post.mail.silent[index], self.post.mail.updates[index] = agent.silent, agent.updates
        elif why == windows.COUNTED:
            agent.tick, agent.updates = int(mail.ticks[index]), int(mail.updates[index])
            self.traffic.vectors = int(mail.counts[lazy.VECTORS])
            if self.observer:
                self.observer.woke(self, agent)
            self._handling(lambda: self._check_limits(agent))
        elif why == windows.OVER:
            self.clock_ends[index].succeed()
        elif why == windows.FINISHED:
            self._check_finished()
        elif why == windows.DIVERGED:
            agent.updates = int(mail.updates[index])
            self.check_finite(agent)

    def _handling(self, step: Callable[[], None]) -> None:
        self._in_step = True
        step()
        self._in_step = False

    def _start(self, agent: Agent) -> None:
        super()._start(agent)
        self.post.mail.silent[agent.index] = agent.silent

    def _leave(self, agent: Agent) -> None:
        super()._leave(agent)
        self.post.mail.silent[agent.index] = True

    def _sample(self, *, final: bool) -> None:
        if self.recorder:
            self._settle(final=final)
            super()._sample(final=final)

    def _settle(self, *, final: bool) -> None:
        """Take in what has arrived by now, and bring everything up to date that others may look at.

        What a step sends without delay arrives after the record or the end that the step itself brings about.
        """
        if self.presence is None:
            return
        self.post.mail = mail = self.presence.draw(self.now, self.post.mail)
        after_step = self._in_step or (final and self.ended != TIME_UP)
        lazy.take_in_all(mail, self.now, int(mail.counts[lazy.BARRIER]) if after_step else lazy.EVER)
        self.post.count()
        if self.kernel is not None:
            for agent, updates in zip(self.agents, mail.updates.tolist(), strict=True):
                agent.updates = updates
            self._charge(final=final)

    def _charge(self, *, final: bool) -> None:
        """Charge compiled messages: an agent's first at once, which makes its epsilon infinite; the rest at the end."""
        assert self.kernel is not None
        charged = self.post.mail.charged
        due = charged - self._charged
        for index in np.flatnonzero(due if final else (due > 0) & (self._charged == 0)).tolist():
            self.ledger.add(Release.plain(index, self.now, self.kernel.reason), int(due[index]))
            self._charged[index] = charged[index]
