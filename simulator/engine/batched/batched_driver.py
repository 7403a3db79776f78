"""The batched engine: compiled windows of events between SimPy's.

SimPy still drives. A pump process waits for the next compiled event of anybody, runs the compiled window up to the next
event of anybody else (record instants, joining and leaving, the end), and waits again. Sequence of events, models and
tallies at record instants are those of the event engine (`hushnet.simulator.engine.event.event_driver.EventDriver`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Generator, Sequence
from enum import Enum
from typing import Any, final

import numpy as np
import simpy
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.availability import Timeline
from ....agents.compilation import announce
from ....agents.errors import StepFailure
from ...rules import lazy
from ...rules.lazy import EVER
from ...tables import tallies
from ...tables.effects import AVAILABILITY, TIMER, WAKE
from ...tables.run import EVENTS_BEFORE_POLL, RECORD_EVERY
from ...world.step_form import StepForm
from ...world.stop_condition import TIME_UP
from ...world.world import World
from ..driver import At, Driver
from . import windows
from .changes import AvailabilityArrays, Changes, changes_of
from .lossless_rounds import LosslessRounds, count_arrivals, first_rounds, note_heard
from .planned_batches import StepsInBatches, planned_steps
from .step_plan import EXACT


class Pause(Enum):
    """Action to take after a window."""

    WAIT = "let SimPy's events come first"
    GO_ON = "run the next window"
    DONE = "nothing will ever happen again"


class BatchedDriver(Driver):
    """A driver whose events are run by compiled windows.

    An observer is told of all that happens up to the end of a window, which ends after every step; of a step when it
    was made. The driver has what makes ``planned`` steps, from the run's beginning on the ``presence`` of agents,
    whether arrivals are taken in ``late``, later than they come, and in ``empty`` the kind of copies without numbers
    that are no acknowledgements.
    """

    empty = ""
    late = False

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.planned = planned_steps(world)
        world.peers.keep_weakly()
        self.form = StepForm("batches" if isinstance(self.planned, StepsInBatches) else "planned")
        self.engine = f"batched ({self.form.text})"
        self.presence: AvailabilityArrays | None = None
        self._in_step = False
        self._clock_ends: dict[int, simpy.Event] = {}
        self._charged = np.zeros(len(world.agents), dtype=np.int64)
        self._all_charged = False
        self.transport.set_limits(world.setting.stop, record=world.recorded_steps, compiled=True)
        self.planned.plan.counts[EXACT] = world.exact_end
        world.ledger.settle = self._charge

    def make_if_full(self) -> None:
        """Make the planned steps if there is no room for another one, or somebody looks at each."""
        if self.planned.is_full or self.transport.notes.told:
            self.planned.make()

    def end_as_before(self) -> None:
        """Make the planned steps, of which the last one has failed in an earlier attempt at the run.

        Raises `StepFailure` if it does not fail this time.
        """
        self.planned.make()
        kind = type(self.world.protocol).__name__
        raise StepFailure(
            f"at time {self.world.now:.6g}: a step of {kind} failed, and did not when the run was made once more; it "
            "depends on more than the seed"
        )

    @override
    def steps(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """The pump follows the clocks of all agents; an agent's own process waits for its end."""
        yield self._clock_ends[agent.index]

    @override
    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        announce()
        self.transport.notes.begin(self.world, empty=self.empty, late=self.late)
        run, env = self.transport.tables, self.world.env
        if self.transport.notes.told:
            run.constants[RECORD_EVERY] = 1.0
        run.agents.joins[:], run.agents.leaves[:] = joins, leaves
        run.agents.alone[:] = (run.agents.joins > 0) | (run.agents.leaves < np.inf)
        self.presence = self.follow(timelines)
        for index in np.flatnonzero(run.agents.alone).tolist():
            self._clock_ends[index] = env.event()
            env.process(self.life(self.world.agents[index], joins[index], leaves[index]))
        env.process(self._pump())

    def follow(self, timelines: Sequence[Timeline]) -> AvailabilityArrays:
        """Return the agents' up and down times as arrays, for deferred deliveries."""
        return AvailabilityArrays(self.changes_of(timelines), self.transport.tables)

    def changes_of(self, timelines: Sequence[Timeline]) -> Changes:
        """Return the changes of availability of these timelines, drawn by compiled code where that is possible."""
        world, setting = self.world, self.world.setting
        look = lambda: world.watchdog.poll(self.world.now)  # noqa: E731
        return changes_of(setting.availability, setting.draws, world.numbers, timelines, look)

    @override
    def start_present(self, agents: NDArray[np.int64]) -> None:
        """Make all starts at once where no Python has to look at any."""
        world = self.world
        start = world.protocol.starts_at_once
        if start is None or not world.starts_together(start):
            super().start_present(agents)
            return
        world.start_together(start, agents)
        self.planned.charges.all_started(agents)

    @override
    def starting(self, agent: Agent) -> None:
        """Ticks are counted in the tables."""
        self.tell(self.world.now)
        agent.tick = int(self.transport.tables.agents.ticks[agent.index])

    @override
    def started(self, agent: Agent) -> None:
        self.transport.tables.agents.silent[agent.index] = agent.silent

    @override
    def ready(self, agent: Agent) -> None:
        """Compute the number of steps that an agent can still afford after the charge for its start."""
        self.planned.charges.started(agent.index)

    @override
    def turn(self, agent: Agent) -> None:
        """Turn an agent off for good; only leaving is an event."""
        run = self.transport.tables
        run.agents.silent[agent.index] = True
        run.counts[tallies.BARRIER] = run.counts[tallies.ORDER]  # what steps so far have sent arrives before

    @override
    def settle(self, *, final: bool) -> None:
        """Deliver what is due; what a step sends without delay arrives after the record or end that it causes."""
        if self.presence is None:
            return
        self.planned.make()
        self.transport.tables = run = self.presence.draw(self.world.now, self.transport.tables)
        after_step = self._in_step or (final and self.world.ended != TIME_UP)
        self.deliver_pending(self.world.now, int(run.counts[tallies.BARRIER]) if after_step else lazy.EVER)
        self.transport.notes.tell()
        if final:
            windows.count_last_ticks(run, self.world.now)
            self._charge(final=True)
            self.world.ledger.settle = None
            for agent in self.world.agents.made.values():
                agent.updates = int(run.agents.updates[agent.index])

    @abstractmethod
    def init_clocks(self) -> Sequence[int]:
        """Set all clocks, and say which agents' clocks have ended before they began."""

    @abstractmethod
    def next_event(self) -> tuple[float, int] | None:
        """Time and priority of the next compiled event; None if there is none."""

    @abstractmethod
    def window(self, limit: float, forced: bool) -> Pause:
        """Run the compiled events strictly before a time, and the first one anyway if forced; how to go on."""

    @abstractmethod
    def grow(self) -> None:
        """See to it that whatever the next event brings about fits in."""

    def handle(self, why: int, index: int) -> Pause:
        """Do what a window stopped for."""
        run = self.transport.tables
        if why == windows.FULL:
            self.grow()
        elif why == windows.COUNTED:
            agent = self.world.agents[index]
            agent.tick, agent.updates = int(run.agents.ticks[index]), int(run.agents.updates[index])
            self._in_step = True
            self.check_limits(agent)
            self._in_step = False
        elif why == windows.OVER:
            self.clock_ended(index)
            return Pause.WAIT
        elif why == windows.FINISHED:
            self.world.stop_condition.check()
        elif why == windows.ENDS:
            self.end_as_before()
        elif why == windows.LOOK:
            self.look()
        elif why == windows.OPENS:
            self._open_edges(index)
        elif why == windows.AWAY:
            assert self.presence is not None
            self.transport.tables = self.presence.draw(self.presence.drawn, run)
        elif why == windows.IDLE:
            return Pause.DONE
        return Pause.WAIT if why == windows.REACHED else Pause.GO_ON

    def _open_edges(self, index: int) -> None:
        """Open the edges over which an agent sends at its next step, which is now."""
        run = self.transport.tables
        edges = slice(int(run.offsets[index]), int(run.offsets[index + 1]))
        tick = int(run.counts[tallies.ASKED_TICK])
        run.opened[edges] = self.world.step_tables.open_at(index, tick, self.world.now)
        run.counts[tallies.OPENED] = index + 1

    @abstractmethod
    def deliver_pending(self, now: float, barrier: int) -> None:
        """Settle all arrivals by ``now``, apart from what was sent after the order ``barrier`` at this instant."""

    def tell(self, until: float, barrier: int = lazy.EVER) -> None:
        """Tell an observer, unless it is a notebook, of all that happens up to a time; see `deliver_pending`."""
        if self.transport.notes.told and self.presence is not None and until < math.inf:
            self.planned.make()
            self.transport.tables = self.presence.draw(until, self.transport.tables)
            self.deliver_pending(until, barrier)
            self.transport.notes.tell()

    def _pump(self) -> Generator[simpy.Event, Any, None]:
        env = self.world.env
        yield At(env, 0.0, AVAILABILITY)
        assert self.presence is not None
        self.transport.tables = self.presence.draw(0.0, self.transport.tables)
        for agent in self.world.agents.made.values():
            self.transport.tables.agents.silent[agent.index] = agent.silent
        for index in self.init_clocks():
            self.clock_ended(index)
        pause, forced = Pause.WAIT, False
        while not self.world.stop_condition.stopped.triggered:
            if pause is Pause.WAIT:
                following = self.next_event()
                if following is None:
                    return
                yield At(env, *following)
                if self.world.stop_condition.stopped.triggered:
                    return
                forced = True
            pause = self.window(env.peek(), forced)
            if pause is Pause.DONE:
                return
            forced = False

    def clock_ended(self, index: int) -> None:
        """Note that an agent's clock will not wake it again."""
        if self.transport.tables.agents.alone[index]:
            self._clock_ends[index].succeed()
        else:
            self.world.stop_condition.retire(0)

    def look(self) -> None:
        """Look at the run's limits where a window has stopped before a wake-up or timer, and let it go on."""
        run, watchdog = self.transport.tables, self.world.watchdog
        run.counts[tallies.BARRIER] = run.counts[tallies.ORDER]  # the step before is over
        run.constants[EVENTS_BEFORE_POLL] = watchdog.admit(self.world.events, self.world.now)

    def stopped_at(self, now: float) -> None:
        """Note the time at which a window has stopped to let something happen."""
        self.world.ahead = now

    def _charge(self, *, final: bool = False) -> None:
        """Charge planned messages: an agent's first at once, which makes its epsilon infinite; the rest at the end."""
        self.planned.charges.settle(self.world.ledger, self.world.now)
        if self._all_charged and not final:
            return
        charged = self.transport.tables.agents.charged
        due = charged - self._charged
        for index in np.flatnonzero(due if final else (due > 0) & (self._charged == 0)).tolist():
            self.planned.charges.charge(self.world.ledger, index, int(due[index]), self.world.now)
            self._charged[index] = charged[index]
        self._all_charged = bool((self._charged > 0).all())


class WakeWindows(BatchedDriver):
    """A driver whose compiled events are wake-ups, at each of which an agent takes one step."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.ports, self.rows = self.planned.ports, self.planned.rows
        self._call: tuple[Any, ...] = self.planned.plan, self.ports, self.rows

    @override
    def next_event(self) -> tuple[float, int] | None:
        run = self.transport.plain
        return (run.wakes.time[0], max(TIMER, WAKE + run.wakes.rank[0])) if run.counts[tallies.HEAP] else None

    @override
    def window(self, limit: float, forced: bool) -> Pause:
        counts = self.transport.tables.counts
        why, agent, now = self.run_compiled(limit, forced)
        if why not in (windows.REACHED, windows.IDLE, windows.FULL):
            self.stopped_at(float(now))
        after_step = why in (windows.COUNTED, windows.SHOWN, windows.OVER, windows.FINISHED)
        self.tell(min(limit, float(now)), int(counts[tallies.BARRIER]) if after_step else EVER)
        return self.handle(why, agent)

    @abstractmethod
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """Run the compiled function with `_call`; why it stopped, at which agent and when."""

    @override
    def grow(self) -> None:
        """See to it that whatever the next event brings about fits in."""
        self.make_if_full()
        most = int(self.world.setting.graph.degrees.max(initial=0))
        self.transport.grow(len(self.rows) + 1, most * max(1, len(self.ports)))
        self.transport.notes.grow(most * max(1, len(self.ports)) + 1)


@final
class Broadcasts(WakeWindows):
    """Every agent steps when its own clock wakes it, with the newest of what it has heard."""

    late = True

    @override
    def init_clocks(self) -> Sequence[int]:
        return windows.init_clocks(self.transport.tables)

    @override
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """Run a window, which ends where availability is not known."""
        assert self.presence is not None
        top = self.transport.plain.wakes.time[0]
        if self.presence.drawn <= top < math.inf:
            self._look_ahead(top, limit)
        return windows.run_window(self.transport.tables, None, min(limit, self.presence.drawn), forced, 0, *self._call)

    def _look_ahead(self, top: float, limit: float) -> None:
        """Know availability some way beyond the next wake-up, and forget what lies behind."""
        assert self.presence is not None
        self.transport.notes.grow(0)
        run = self.presence.draw(top, self.transport.tables)
        settled = min(top, limit)
        unfinished = run.counts[tallies.UNFINISHED]
        lazy.deliver_all_pending(run, settled, int(run.counts[tallies.BARRIER]) if unfinished else lazy.EVER)
        self.transport.tables = self.presence.forget(settled, run)

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        self.transport.notes.grow(0)
        lazy.deliver_all_pending(self.transport.tables, now, barrier)


@final
class LazyRounds(WakeWindows):
    """Every agent steps once it has heard a whole round from its neighbours, of which nothing is ever lost."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.rounds: LosslessRounds | None = None
        self.header = world.network.size(0)

    @override
    def init_clocks(self) -> Sequence[int]:
        """Round 1 begins at once, and nobody waits for who is silent from the start."""
        run = self.transport.tables
        ended = windows.init_clocks(run)
        self.rounds = first_rounds(self.world.setting.graph, run.agents.silent)
        return ended

    @override
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        return windows.run_window(self.transport.tables, self.rounds, limit, forced, self.header, *self._call)

    @override
    def grow(self) -> None:
        """Make room, and forget what silent agents were sent."""
        count_arrivals(self.transport.tables, float(self.transport.tables.wakes.time[0]), -1)
        super().grow()

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        if self.rounds is not None:
            count_arrivals(self.transport.tables, now, barrier)
            note_heard(self.transport.tables)
