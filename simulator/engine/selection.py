"""The engines that run a world: one SimPy event for whatever happens, or plans of many events between SimPy's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, final

from typing_extensions import override

from ...agents.compilation import is_stored
from ...agents.errors import HushnetError, InputError
from ...protocols.steps.step_charges import NotPlanned
from ..network.distributions import forms_of
from ..world.step_form import Rewind, StepForm
from ..world.world import World
from .driver import Driver

Name = Literal["auto", "event", "batched"]
"""What a scenario may ask for."""


class Engine(ABC):
    """Runs worlds; what happens in one does not depend on the engine, only when it is worked out.

    `why` says why it is this engine, for the summary.
    """

    def __init__(self, why: str = "") -> None:
        self.why = why

    @abstractmethod
    def driver(self, world: World) -> Driver:
        """Return the driver that makes a world's agents step."""

    def prepare(self, world: World) -> Driver:
        """Return the driver of a world that was not run yet, and name the engine in the world."""
        driver = self.driver(world)
        world.engine = f"{driver.engine}, {self.why}" if self.why else driver.engine
        world.form = driver.form
        return driver

    def run(self, world: World) -> None:
        """Run a world that was not run yet from its start to its end; raises like `Driver.run`."""
        self.prepare(world).run()


@final
class EventEngine(Engine):
    """A SimPy process for every agent, and an event for every wake-up, message and timer: for reading and tracing.

    The rules of the world run as plain Python.
    """

    @override
    def driver(self, world: World) -> Driver:
        from .event.event_broadcasts import EventBroadcasts
        from .event.event_rounds import EventRounds
        from .event.event_sessions import EventSessions

        if world.in_rounds:
            return EventRounds(world)
        return EventBroadcasts(world) if world.sessions is None else EventSessions(world)


class BatchedEngine(Engine):
    """SimPy drives a pump; between its events, compiled windows run the same rules and plan steps.

    It runs networks and clocks that have compiled forms (see `declined`). Where steps cannot be planned, the event
    engine runs a world in its place.
    """

    @override
    def prepare(self, world: World) -> Driver:
        try:
            return super().prepare(world)
        except NotPlanned as why:
            protocol = world.protocol
            declared = protocol.decides or protocol.asks_for_budget or world.watch is not None
            if protocol.step_functions and not declared:
                world.warnings = (f"{why}, so its steps are made one by one",)
            driver = EventEngine(f"because {why}").prepare(world)
            world.form = StepForm("one by one", str(why))
            return driver

    @override
    def driver(self, world: World) -> Driver:
        """Return the batched driver of a world; raises `NotPlanned` where the event engine has to make its steps."""
        why = declined(world)
        if why is not None:
            raise refusal(world, why)
        from .batched.batched_driver import Broadcasts, LazyRounds
        from .batched.eventful import EventfulRounds, Exchanges

        if world.sessions is not None:
            return Exchanges(world)
        if world.in_rounds is None:
            return Broadcasts(world)
        setting, network = world.setting, world.setting.network
        calm = network.lossless and network.uplink is None and network.downlink is None and setting.always_up
        calm = calm and not (setting.graph.directed or setting.changing or world.computing.takes_time)
        calm = calm and world.observer is None
        if calm and world.in_rounds.patience is None and not world.in_rounds.repeats(unfailing=True):
            return LazyRounds(world)
        return EventfulRounds(world)


def engine_for(name: Name, world: World, *, debug: bool = False, short: bool = False) -> Engine:
    """The engine for a world that was not run yet, by the name that the scenario gives.

    Steps that are to be debugged take plain Python; a run is short if it, and all that runs beside it, is over sooner
    than the batched engine is compiled. Raises `InputError` if the batched engine is asked for and cannot run this.
    """
    if name == "event" or debug:
        return EventEngine("to debug its steps in Python" if debug else "as asked")
    if short and name == "auto":
        return EventEngine("for all runs together are short")
    why = declined(world)
    if why is None:
        return BatchedEngine()
    if name == "batched":
        raise refusal(world, why)
    return EventEngine(f"because {why}")


def is_ready() -> bool:
    """True if windows of the batched engine have been compiled on this machine."""
    return is_stored("*windows.run_*")


def declined(world: World) -> str | None:
    """Reason why the batched engine cannot run a world, whatever the protocol; None if it can."""
    try:
        forms_of(world.setting.network, world.clock)
    except InputError as error:
        return str(error)
    return None


def refusal(world: World, why: str) -> InputError:
    """Error for a world that the batched engine was asked to run and cannot."""
    return InputError(
        f"{world.protocol.parameters.kind!r} cannot run on the batched engine: {why}; use engine: auto",
        field=("engine",),
    )


def run_together(drivers: Sequence[Driver]) -> None:
    """Run worlds side by side to their ends: `hushnet.simulator.engine.batched.side_by_side.run_side_by_side`."""
    from .batched.side_by_side import run_side_by_side

    run_side_by_side(drivers)


def run_exactly(
    make: Callable[[Rewind | None], World],
    engine: Callable[[World], Engine],
    failed: Callable[[World], None] = lambda _: None,
) -> World:
    """Run a world to its end, once more where its plan has gone beyond the step that ends it; returns it after its run.

    A world that was not run, with new recorders and observers, is made by ``make(again)``; what that was given is
    passed on to `World`. Of a run that has ended with an error `failed` is told, which may raise `Rewind`, too. Raises
    like `hushnet.simulator.engine.driver.Driver.run`.
    """
    again: Rewind | None = None
    while True:
        world = make(again)
        try:
            try:
                engine(world).run(world)
                return world
            except HushnetError:
                failed(world)
                raise
        except Rewind as rewind:
            again = Rewind(rewind.number, rewind.why or world.one_by_one)
