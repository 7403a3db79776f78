"""A single step without an end is interrupted once its run has had its processor time, wherever it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from typing import Literal

import numpy as np
import pytest
from hushnet.agents import compilation
from hushnet.agents.errors import LimitReached
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import batched
from hushnet.simulator.contract.bench import small_setting
from hushnet.simulator.contract.verdict import judged
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.network.setting import Limits
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world import watchdog as overdue
from hushnet.simulator.world.watchdog import Interrupter, Overdue, Watchdog
from hushnet.simulator.world.world import World

from .driving import build_world, drive


def endless():
    while True:
        sum(range(100))


class BroodingParameters(ProtocolParameters):
    """Parameters of `Brooding`."""

    kind: Literal["brooding"] = "brooding"
    phase: str
    """In which it broods."""


class Brooding(Protocol):
    """Says what it has, and comes to no end in the third step of one phase."""

    decides = True

    Parameters = BroodingParameters
    traits = Traits(trigger="message")

    def prepare(self):
        self.counted = []

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def brood(self, phase):
        if phase == self.parameters.phase:
            self.counted.append(phase)
        while len(self.counted) == 3:
            with contextlib.suppress(Exception):
                sum(range(100))

    def start(self, me):
        self.brood("start")

    def step(self, me):
        self.brood("step")
        me.send("model", me.model + 1.0, me.plain())

    def react(self, me, message):
        self.brood("react")


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(overdue, "GRACE", 0.01)
    monkeypatch.setattr(overdue, "AGAIN", 0.05)


@pytest.mark.parametrize("phase", ["start", "step", "react"])
def test_a_step_without_an_end_ends_its_run_and_what_was_recorded_is_kept(phase, monkeypatch):
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)  # so that nobody else notices
    setting = dataclasses.replace(small_setting(), limits=Limits(seconds=0.2))
    recorder = Recorder(["traffic"])
    world = World(setting, Brooding, BroodingParameters(phase=phase), recorder=recorder, every=0.01)
    with pytest.raises(LimitReached, match=r"limits\.seconds admits 0\.2") as error:
        drive(world)
    assert (error.value.limit, error.value.most) == ("seconds", 0.2)
    assert 1 <= len(world.protocol.counted) <= 3
    assert world.traffic.conserved
    assert (phase == "start") == recorder.trace().empty
    assert not any(thread.name == "limits.seconds" for thread in threading.enumerate())


def brooding(me):
    """Say what there is; from the third step of any agent on, come to no end."""
    while np.any(me.updates == 2):
        with contextlib.suppress(Exception):
            sum(range(100))
    me.message = me.model


class BroodingStep(Brooding):
    """Its steps are functions of one agent."""

    traits = Traits()
    decides = False
    step = staticmethod(brooding)


class BroodingAtOnce(BroodingStep):
    """Its steps are made for many agents at once."""

    step = staticmethod(batched(lambda me: brooding(me)))


FORMS = {BroodingStep: "batched (planned steps)", BroodingAtOnce: "batched (steps in batches)"}


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize("protocol", FORMS)
@pytest.mark.parametrize("engine", ["batched", "event"])
def test_a_step_function_without_an_end_ends_its_run_planned_or_not(engine, protocol, schedule, monkeypatch):
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)
    setting = dataclasses.replace(small_setting(), limits=Limits(seconds=0.2))
    recorder, parameters = Recorder(["traffic"]), BroodingParameters(phase="", schedule=schedule)
    world = build_world(engine, setting, protocol, parameters, recorder=recorder, every=0.01)
    assert world.engine == (FORMS[protocol] if engine == "batched" else "event, as asked")
    with pytest.raises(LimitReached, match=r"limits\.seconds admits 0\.2"):
        drive(world)
    assert not recorder.trace().empty
    assert world.traffic.conserved


def test_a_contract_is_not_checked_for_longer_than_a_run_may_take():
    def make(setting, watch):
        return World(setting, Brooding, parameters, watch=watch), EventEngine()

    parameters = BroodingParameters(phase="step")
    setting = dataclasses.replace(small_setting(), limits=Limits(seconds=0.05))
    with pytest.raises(LimitReached, match=r"limits\.seconds admits 0\.05"):
        judged(Brooding, parameters, setting, make)


def test_a_step_that_catches_everything_is_interrupted_again():
    caught = []

    def stubborn():
        while len(caught) < 3:
            try:
                while True:
                    sum(range(100))
            except BaseException as error:
                caught.append(type(error))

    fourth = contextlib.suppress(Overdue)  # may come before the step is over
    with Interrupter(0.05) as interrupter, fourth:
        interrupter.step(stubborn)
    assert caught == [Overdue] * 3


def test_only_steps_are_interrupted():
    done = []
    with Interrupter(0.0) as interrupter:
        end = time.process_time() + 0.5
        while time.process_time() < end:
            with contextlib.suppress(Overdue):
                interrupter.step(int)
            done.append(len(done))
    assert done == list(range(len(done)))


def test_another_thread_makes_a_run_as_well():
    """Workers of a cluster make runs in a thread of theirs."""
    met = []

    def run():
        try:
            with Interrupter(0.05) as interrupter:
                interrupter.step(endless)
        except Overdue as error:
            met.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(met) == 1


def test_time_that_is_put_aside_does_not_count(monkeypatch):
    """A run would otherwise reach its limit only where nothing is compiled yet."""
    monkeypatch.setattr(overdue, "GRACE", 0.0)
    watchdog = Watchdog(Limits(seconds=0.05), [0], lambda: 0)
    with watchdog.interrupter:
        with watchdog.aside():
            end = time.thread_time() + 0.2
            while time.thread_time() < end:
                pass
        watchdog.poll(0.0)
        with pytest.raises(Overdue):
            watchdog.interrupter.step(endless)
    with pytest.raises(LimitReached):
        watchdog.poll(0.0)


class Compiling(Brooding):
    """Compiles something in its third step, which takes longer than its whole run may."""

    def brood(self, phase):
        self.counted.append(phase)
        if len(self.counted) == 3:
            assert compilation.compiled(lambda x: np.sort(x[::-1]).sum())(np.ones(3)) == 3.0
            self.counted.append("compiled")


def test_compiling_in_a_step_is_neither_interrupted_nor_counted(tmp_path, monkeypatch):
    """It came to "no compiled object yet" and to tracebacks of numba's, and ended runs where nothing was stored."""
    monkeypatch.setenv(compilation.FOLDER, str(tmp_path / "no folder"))
    (tmp_path / "no folder").touch()
    compilation.store.cache_clear()
    setting = dataclasses.replace(small_setting(), limits=Limits(seconds=0.3))
    world = World(setting, Compiling, BroodingParameters(phase="step"))
    drive(world)
    compilation.store.cache_clear()
    assert "compiled" in world.protocol.counted
