"""The batched engine: compiled windows of events between SimPy's.

SimPy still drives. A pump process waits for the next compiled event of anybody, runs the compiled window up to the next
event of anybody else (record instants, joining and leaving, the end), and waits again. Sequence of events, models and
tallies at record instants are those of the event engine (`hushnet.simulator.engine.event.driver.EventDriver`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from enum import Enum
from typing import Any, TypeVar

import numpy as np
import simpy
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.availability import Timeline
from ....agents.errors import StepFailure, words_of
from ....protocols.base import Out, View
from ....protocols.kernel import Compiled, Kernel, PairKernel
from ...rules import lazy
from ...tables import tallies
from ...tables.priorities import AVAILABILITY
from ...tables.run import EVENTS_BEFORE_LOOK, RECORD_EVERY
from ...world.stop_condition import TIME_UP
from ...world.world import World
from ..driver import Driver
from ..timed_event import At
from .availability_arrays import AvailabilityArrays
from .changes import Changes, changes_of
from .step_forms import kernel_of, said_form, watched_steps

Form = TypeVar("Form", Kernel, PairKernel)


class Pause(Enum):
    """How to go on after a window."""

    WAIT = "let SimPy's events come first"
    GO_ON = "run the next window"
    DONE = "nothing will ever happen again"


class BatchedDriver(Driver):
    """A driver whose events are run by compiled windows.

    An observer is told of all that happens up to the end of a window, which ends after every step; of a compiled step
    after it was made.

    Parameters
    ----------
    world : World
    compiled : bool
        Whether to use the protocol's compiled step, if it has one.

    Attributes
    ----------
    kernel : Compiled or None
        The protocol's compiled step, if it is used.
    compiled : bool
        Whether it is; a watched one is not, for it is called for each step.
    presence : AvailabilityArrays or None
        When agents are up; None until the run begins.
    empty : str
        Kind of copies without numbers that are no acknowledgements.
    late : bool
        Whether arrivals are taken in later than they come.
    """

    empty = ""
    late = False

    def __init__(self, world: World, *, compiled: bool) -> None:
        super().__init__(world)
        self.kernel, watched, why = None, None, ""
        if compiled and world.watch is None:
            self.kernel, why = kernel_of(world)
        elif compiled:
            watched, why = watched_steps(world)
            world.steps = watched or world.protocol
        self.compiled = compiled = self.kernel is not None
        if compiled:
            world.views.keep_weakly()
        form = "compiled" if compiled or watched else "Python"
        self.form = said_form(world, why, compiled=form == "compiled")
        self.engine = f"batched ({form} step{', watched' if watched else ''}{f', because {why}' if why else ''})"
        if why:
            world.remarks = (f"{why}, so its steps run in Python",)
        self.presence: AvailabilityArrays | None = None
        self._in_step = False
        self._clock_ends: dict[int, simpy.Event] = {}
        self._charged = np.zeros(len(world.agents), dtype=np.int64)
        self._all_charged = False
        if self.kernel is not None and len(self.kernel.cached_losses):
            world.cached_losses = self.kernel.cached_losses
        self.transport.set_limits(world.setting.stop, record=world.recorded_steps, compiled=compiled)

    @override
    def steps(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """The pump follows the clocks of all agents; an agent's own process waits for its end."""
        yield self._clock_ends[agent.index]

    @override
    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        self.transport.notes.begin(self.world, empty=self.empty, late=self.late)
        run, env = self.transport.tables, self.world.env
        if self.compiled and self.transport.notes.told:
            run.clock[RECORD_EVERY] = 1.0
        run.joins[:], run.leaves[:] = joins, leaves
        run.alone[:] = (run.joins > 0) | (run.leaves < np.inf)
        self.presence = self.follow(timelines)
        if self.compiled:
            self.transport.inbox.refresh = self.transport.copy_out
        for index in np.flatnonzero(run.alone).tolist():
            self._clock_ends[index] = env.event()
            env.process(self.life(self.world.agents[index], joins[index], leaves[index]))
        env.process(self._pump())

    def follow(self, timelines: Sequence[Timeline]) -> AvailabilityArrays:
        """What lazy deliveries know of when agents are up."""
        return AvailabilityArrays(self.changes_of(timelines), self.transport.tables)

    def changes_of(self, timelines: Sequence[Timeline]) -> Changes:
        """When the agents of these timelines come up and go down, drawn compiled where that is possible."""
        world, setting = self.world, self.world.setting
        look = lambda: world.effort.look(self.world.now)  # noqa: E731
        return changes_of(setting.availability, setting.draws, world.numbers, timelines, look)

    @override
    def start_present(self, agents: NDArray[np.int64]) -> None:
        """Make all starts at once where no Python has to look at any."""
        world = self.world
        start = world.protocol.starts_at_once if self.kernel is not None else None
        if self.kernel is None or start is None or not world.starts_together(start):
            super().start_present(agents)
            return
        world.start_together(start, agents)
        self.kernel.charges.all_started(agents)

    @override
    def starting(self, agent: Agent) -> None:
        """Ticks are counted in the tables."""
        self.tell(self.world.now)
        agent.tick = int(self.transport.tables.ticks[agent.index])

    @override
    def started(self, agent: Agent) -> None:
        self.transport.tables.silent[agent.index] = agent.silent

    @override
    def ready(self, agent: Agent) -> None:
        """What was charged for the start is no longer there for steps."""
        if self.kernel is not None:
            self.kernel.charges.started(agent.index)

    @override
    def turn(self, agent: Agent) -> None:
        """Turn an agent off for good; only leaving is an event."""
        self.transport.tables.silent[agent.index] = True

    @override
    def settle(self, *, final: bool) -> None:
        """What a step sends without delay arrives after the record or the end that the step itself brings about."""
        if self.presence is None:
            return
        self.transport.tables = run = self.presence.draw(self.world.now, self.transport.tables)
        after_step = self._in_step or (final and self.world.ended != TIME_UP)
        self.deliver_pending(self.world.now, int(run.counts[tallies.BARRIER]) if after_step else lazy.EVER)
        self.transport.notes.tell()
        if final:
            self.transport.notes.keep()
        if self.compiled:
            self._charge(final=final)
        if self.compiled and final:
            for agent in self.world.agents.made.values():
                agent.updates = int(run.updates[agent.index])

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
    def at_work(self) -> tuple[int, float, str]:
        """Which agent's compiled step a window is making, when, and what kind of step it is."""

    def in_window(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        """Call a compiled window.

        Raises
        ------
        StepFailure
            If the protocol's compiled step raises anything; what it has written until then is part of no record.
        """
        try:
            return function(self.transport.tables, *arguments)
        except Exception as error:
            if not self.compiled:
                raise
            index, now, step = self.at_work()
            self.stopped_at(now)
            self.world.activations = int(self.transport.tables.counts[tallies.ACTIVATIONS])
            self.again_in_python(index)
            name, updates = type(self.world.protocol).__name__, int(self.transport.tables.updates[index])
            raise StepFailure(
                f"agent {self.world.setting.task.ids[index]!r} at time {now:.6g}: the compiled {step} of {name} raised "
                f"{type(error).__name__} ({words_of(error)}) after {updates} updates; "
                "mend it, or use engine: event to run the Python step"
            ) from error

    def again_in_python(self, index: int) -> None:
        """Make the step of a text again that failed compiled: Python knows the author's line.

        What the compiled step has written until then stays; no record is taken of it.

        Raises
        ------
        StepFailure
            With that line.
        """
        world, agent = self.world, self.world.agents[index]
        if not world.protocol.texts:
            return
        run = self.transport.tables
        agent.tick, agent.updates = int(run.ticks[index]), int(run.updates[index])
        view, out = world.open(agent)
        self.text_again(view, out)

    @abstractmethod
    def text_again(self, view: View, out: Out) -> None:
        """Run the text of the step that a window is making, in Python."""

    @abstractmethod
    def deliver_pending(self, now: float, barrier: int) -> None:
        """Settle all arrivals by ``now``, apart from what was sent after the order ``barrier`` at this instant."""

    def tell(self, until: float, barrier: int = lazy.EVER) -> None:
        """Tell an observer, unless it is a notebook, of all that happens up to a time; see `deliver_pending`."""
        if self.transport.notes.told and self.presence is not None and until < math.inf:
            self.transport.tables = self.presence.draw(until, self.transport.tables)
            self.deliver_pending(until, barrier)
            self.transport.notes.tell()

    def _pump(self) -> Generator[simpy.Event, Any, None]:
        env = self.world.env
        yield At(env, 0.0, AVAILABILITY)
        assert self.presence is not None
        self.transport.tables = self.presence.draw(0.0, self.transport.tables)
        for agent in self.world.agents.made.values():
            self.transport.tables.silent[agent.index] = agent.silent
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
        if self.transport.tables.alone[index]:
            self._clock_ends[index].succeed()
        else:
            self.world.stop_condition.retire(int(self.transport.tables.updates[index]))

    def look(self) -> None:
        """Look at the run's limits where a window has stopped before a wake-up or timer, and let it go on."""
        run = self.transport.tables
        run.counts[tallies.BARRIER] = run.counts[tallies.ORDER]  # the step before is over
        run.constants[EVENTS_BEFORE_LOOK] = self.world.effort.admit(self.world.events, self.world.now)

    def stopped_at(self, now: float) -> None:
        """Note the time at which a window has stopped to let something happen."""
        self.world.ahead = now

    def stepping(self, step: Callable[[], None]) -> None:
        """Let something happen outside compiled code, as part of the step that a window stopped at."""
        self._in_step = True
        step()
        self._in_step = False

    def _charge(self, *, final: bool) -> None:
        """Charge compiled messages: an agent's first at once, which makes its epsilon infinite; the rest at the end."""
        assert self.kernel is not None
        self.kernel.charges.settle(self.world.ledger, self.world.now)
        if self._all_charged and not final:
            return
        charged = self.transport.tables.charged
        due = charged - self._charged
        for index in np.flatnonzero(due if final else (due > 0) & (self._charged == 0)).tolist():
            self.kernel.charges.charge(self.world.ledger, index, int(due[index]), self.world.now)
            self._charged[index] = charged[index]
        self._all_charged = bool((self._charged > 0).all())


def checked(kernel: Compiled | None, kind: type[Form], complaint: str) -> Form | None:
    """A compiled step of the kind that a schedule runs.

    Raises
    ------
    ValueError
        With this complaint, if it is of another kind.
    """
    if kernel is not None and not isinstance(kernel, kind):
        raise ValueError(complaint)
    return kernel
