"""The worlds that an audit looks into: one protocol of a scenario as it is run first, on these data and on others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from ...agents.tasks.task import Task
from ...protocols.base import Protocol, ProtocolParameters
from ..contract.forcing import Led
from ..contract.transcript import Recording
from ..engine.selection import Engine, Name, engine_for, run_exactly
from ..experiment.plan import Experiment, Run
from ..language.fitting import naming_fields
from ..network.randomness import Draws
from ..network.setting import Setting
from ..world.watchdog import one_thread
from ..world.watchers import Watch
from ..world.world import World


@dataclass(frozen=True)
class Subject:
    """One protocol of a scenario, in the world of its first run."""

    key: str
    label: str
    """`key` and `label`: What the scenario and its figures call the protocol."""
    setting: Setting
    protocol: type[Protocol]
    parameters: ProtocolParameters
    delta: float
    """At which epsilons are reported."""
    engine: Name = "event"
    """That the scenario asks for: it decides in which form steps are run."""

    @property
    def task(self) -> Task:
        """The scenario's own data."""
        return self.setting.task

    def on(self, task: Task, seed: int | None = None) -> Setting:
        """The setting of a run on some data, with a run seed; by default that of the scenario's first run."""
        return replace(self.setting, task=task, draws=self.setting.draws if seed is None else Draws(seed))

    def made(self, setting: Setting, watch: Watch | None = None) -> tuple[World, Engine]:
        """A world that is ready to run, and the engine that is to run it."""
        with quietly(self.key):
            world = World(setting, self.protocol, self.parameters, watch=watch)
            return world, engine_for(self.engine, world)

    def run(self, task: Task, *, seed: int | None = None, watch: Watch | None = None) -> World:
        """A world after its run."""
        setting = self.on(task, seed)
        with quietly(self.key):
            return run_exactly(
                lambda again: World(setting, self.protocol, self.parameters, watch=watch, again=again),
                lambda world: engine_for(self.engine, world),
            )

    def record(self, task: Task, *, seed: int | None = None) -> tuple[World, Recording]:
        """A run, and what could be observed of it."""
        recording = Recording(task.ids)
        return self.run(task, seed=seed, watch=recording), recording

    def led(self, task: Task, seen: Recording, *, seed: int | None = None) -> Led:
        """A run on other data along the noisy values of a run of the same seed."""
        watch = Led(seen)
        self.run(task, seed=seed, watch=watch)
        return watch


@contextmanager
def quietly(key: str) -> Iterator[None]:
    """One thread for linear algebra, numbers that overflow on their way to an error, and fields by their full names."""
    with naming_fields(key), one_thread(), np.errstate(all="ignore"):
        yield


def subjects(experiment: Experiment) -> list[Subject]:
    """The private protocols of a scenario's first grid point, each in the world of its first seed."""
    found = []
    for run in first_runs(experiment):
        scenario = run.point.scenario
        parameters, kind = scenario.protocols[run.protocol], experiment.loaded.code.protocol
        engine = "event" if scenario.debug else scenario.engine
        protocol, label = kind(scenario.protocols[run.protocol].kind), scenario.label(run.protocol)
        subject = Subject(run.protocol, label, experiment.setting(run), protocol, parameters, math.nan, engine)
        privacy = subject.made(subject.setting)[0].protocol.privacy
        if privacy is not None and not privacy.noiseless:
            found.append(replace(subject, delta=privacy.reported_delta))
    return found


def first_runs(experiment: Experiment) -> list[Run]:
    """The first run of every protocol."""
    found: dict[str, Run] = {}
    for run in experiment.runs():
        if run.protocol in found:
            break
        found[run.protocol] = run
    return list(found.values())
