"""The proof of an epsilon by replay: a run, and the same run on neighbouring data along the same transcript.

See `hushnet.simulator.contract.transcript` for what has to be equal and what may differ. Each agent's steps depend on
others only by what these have sent, and that is forced to be the same; so one forced run can change one record of
*every* agent at once, and finds a leak of any of them. Others change one agent alone: then nothing at all may change
for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from ...agents.errors import HushnetError, InputError, LimitReached
from ...agents.tasks.base import Task
from ..engine.selection import Engine
from ..network.randomness import Draws
from ..network.setting import Setting
from ..world.effort import OF_THE_MACHINE
from ..world.watchers import Watch
from ..world.world import World
from .charges import check_charges
from .draws import difference
from .forcing import Forcing
from .neighbours import Domain, domain_of, replaced, shortened, some_agents
from .samples_seen import Witness
from .transcript import Recording, TooLarge
from .violation import ContractViolation

Make = Callable[[Setting, Watch], tuple[World, Engine]]
"""Makes the world of a setting that is watched."""

SINGLE = 5
"""Agents whose data are changed alone, at least, where there are so many."""


@dataclass(frozen=True)
class Replayed:
    """What a replay has shown.

    Parameters
    ----------
    runs : int
        Runs that it took.
    steps : int
        Completed steps of all agents in the run that was noted.
    agents : int
        Agents whose data were changed alone; all others' were changed together.
    ratio : float
        The largest realised change in relation to the sensitivity that was charged for.
    held : bool
        Whether constants that the protocol takes from records and treats as public had to be held fixed.
    changed : int
        Agents whose data were changed at all.
    failure : str
        How the run that was noted has failed; empty where it has reached its end.
    witnesses : tuple of Witness
        What every run that was noted has shown of noise and samples.
    """

    runs: int
    steps: int
    agents: int
    ratio: float
    held: bool
    changed: int
    failure: str = ""
    witnesses: tuple[Witness, ...] = ()


class Noted:
    """A run that was noted, to be led along again on other data.

    Parameters
    ----------
    make : callable
    setting : Setting

    Raises
    ------
    ContractViolation
        If noise and charges do not match.
    """

    def __init__(self, make: Make, setting: Setting) -> None:
        self.make, self.setting = make, setting
        self.recording = Recording(setting.task.ids)
        try:
            self.world, engine = _made(make, setting, self.recording)
            self.ended = _run(self.world, engine)
        except Failed as error:
            raise Broken(str(error)) from error
        check_listed(self.recording.constants, self.world.assumed_public)
        self.exposed, self.witness = self.recording.exposed, Witness(self.recording)
        self.forced: Forcing | None = None
        if self.world.ended:  # a step that was broken off has not sent what it drew
            check_charges(self.world, self.recording)

    @property
    def able(self) -> list[int]:
        """Agents with data about which there is something to show."""
        task = self.setting.task
        holds = task.train.counts > 0 if task.columns is None else np.ones(task.agents, dtype=bool)
        return [agent for agent in np.flatnonzero(holds).tolist() if agent not in self.exposed]

    def force(self, task: Task, changed: Iterable[int]) -> tuple[float, bool]:
        """Lead a run on other data along this one: the largest ratio, and whether constants had to be held fixed.

        Constants are prepared from the other data first. Only where that does not do, those which the protocol treats
        as public (`Problem.assumed`) are held fixed, and no others.

        Raises
        ------
        ContractViolation
            If what can be observed differs, or an exact value moves by more than was charged.
        Inadmissible
            If the protocol refuses the data.
        """
        changed = frozenset(changed)
        try:
            return self._force(task, changed, held=False), False
        except ContractViolation:
            if not self.recording.constants:
                raise
        return self._force(task, changed, held=True), True

    def _force(self, task: Task, changed: frozenset[int], *, held: bool) -> float:
        forcing = self.forced = Forcing(self.recording, changed=changed, held=held)
        try:
            world, engine = _made(self.make, replace(self.setting, task=task), forcing)
            ended = _run(world, engine)
        except InputError as error:
            if not forcing.steps:
                raise Inadmissible(str(error)) from error
            raise
        if forcing.violation is not None:
            raise forcing.violation
        if ended != self.ended:
            raise ContractViolation(f"on neighbouring data the run ends otherwise: {ended}, instead of {self.ended}")
        forcing.finished()
        self._compare_ends(world, changed)
        self.witness.saw(self.setting.task, task, forcing, changed)
        return forcing.ratio

    def _compare_ends(self, world: World, changed: frozenset[int]) -> None:
        """Charges, traffic, and what is judged as the model: of those with other data, where there is noise at all."""
        if (world.activations, world.traffic) != (self.world.activations, self.world.traffic):
            raise ContractViolation("on neighbouring data other traffic is counted")
        for agent in range(self.setting.graph.agents):
            if world.ledger.histogram(agent) != self.world.ledger.histogram(agent):
                raise ContractViolation(f"what {self.recording.agent(agent)} is charged depends on data")
        models = [one.protocol.models(one.state) for one in (self.world, world)]
        if models[0] is None or models[1] is None or not world.protocol.model_released:
            return
        privacy = world.protocol.privacy
        kept = changed if privacy is None or privacy.noiseless else frozenset()
        for agent, (before, now) in enumerate(zip(*models, strict=True)):
            if agent not in kept and before.tobytes() != now.tobytes():
                own = agent in changed
                whose = "its own" if own else "other agents'"
                raise ContractViolation(
                    f"the model of {self.recording.agent(agent)}, by which runs are judged, depends on "
                    f"{whose} data beyond what was released: {difference(before, now)}"
                    + ("; set model_released = False if agents keep their models to themselves" if own else "")
                )


def check_listed(names: Iterable[str], listed: Iterable[str]) -> None:
    """Constants that a protocol takes from records by name are listed among what is assumed public."""
    unlisted = [name for name in names if name not in listed]
    if unlisted:
        raise ContractViolation(f"the protocol treats {unlisted[0]!r} as public, which is not listed in assumed_public")


class Failed(ContractViolation):
    """A run ends in an error that nobody foresaw."""


class Broken(ContractViolation):
    """A run fails on usual data, which says nothing about privacy."""


class Inadmissible(Exception):
    """A protocol refuses a data set before anybody has made a step."""


def replay(make: Make, setting: Setting, *, planted: bool, together: int, alone: int, seed: int = 0) -> Replayed:
    """Run a world, and run it again on neighbouring data sets along the same transcript.

    Parameters
    ----------
    make : callable
    setting : Setting
    planted : bool
        Whether a worst record is put into the first data set as well, so that two opposite ones are compared.
    together : int
        Runs in which every agent has another record.
    alone : int
        Agents, at least, to look at one by one, in a run each.
    seed : int
        Chooses some of those.

    Raises
    ------
    ContractViolation
        As of `Noted`.
    """
    with np.errstate(all="ignore"):
        return _replay(make, setting, planted=planted, together=together, alone=alone, seed=seed)


def _replay(make: Make, setting: Setting, *, planted: bool, together: int, alone: int, seed: int) -> Replayed:
    noted = Noted(make, setting)
    runs, ratio, held, single, witnesses = 1, 0.0, False, 0, [noted.witness]
    whole = _whole(noted)
    models = _models(noted.world)
    domain = domain_of(setting.task, noted.world.protocol, noted.recording)
    for number in range(together if noted.able else 0):
        first = noted
        try:
            if planted:
                task = replaced(setting.task, noted.able, domain, models, number=number, side=0, whole=whole)
                draws = Draws(setting.draws.seed + number + 1)  # other noise and samples than those that were seen
                first, runs = _planted(make, replace(setting, task=task, draws=draws)), runs + 1
                witnesses.append(first.witness)
            able = first.able
            for task in _neighbours(first, able, domain, models, number, whole=whole):
                runs += 1
                most, fixed = first.force(task, able)
                ratio, held = max(ratio, most), held or fixed
        except Inadmissible:
            continue
    if noted.able and alone:
        roles = noted.world.layout.roles or ["peer"] * setting.graph.agents
        chosen = some_agents(noted.able, setting.graph.degrees, roles, count=alone, seed=seed)
        for rank, agent in enumerate(chosen):
            task = _neighbours(noted, [agent], domain, models, rank, whole=whole)[0]
            runs, single = runs + 1, single + 1
            most, fixed = noted.force(task, [agent])
            ratio, held = max(ratio, most), held or fixed
    failure = "" if noted.world.ended else noted.ended
    return Replayed(runs, noted.world.activations, single, ratio, held, len(noted.able), failure, tuple(witnesses))


def _planted(make: Make, setting: Setting) -> Noted:
    """A run on worst records: that it does not fail is part of what is promised."""
    try:
        return Noted(make, setting)
    except Broken as error:
        raise ContractViolation(f"with an extreme record {error}, which gives the record away") from error


def _neighbours(
    noted: Noted, agents: Sequence[int], domain: Domain, models: np.ndarray | None, number: int, *, whole: bool
) -> list[Task]:
    """Neighbouring data sets by the adjacency that the releases name."""
    task = noted.setting.task
    if "add-or-remove-one" in noted.world.ledger.adjacencies(agents):
        return [shortened(task, agents)]
    return [replaced(task, agents, domain, models, number=number, side=1, whole=whole)]


def _whole(noted: Noted) -> bool:
    """Whether releases protect more than single records."""
    return any(unit != "record" for unit in noted.world.ledger.units(noted.able))


def _models(world: World) -> np.ndarray | None:
    """(n, p) models of a run, along which worst records lie."""
    models, task = world.protocol.models(world.state), world.setting.task
    if models is None or models.shape != (task.agents, task.dimension):
        return None
    return models.copy()


def _made(make: Make, setting: Setting, watch: Watch) -> tuple[World, Engine]:
    """A world that is ready to run, and the engine that is to run it."""
    with _failing():
        return make(setting, watch)


def _run(world: World, engine: Engine) -> str:
    """Run a world: why it has ended, or how it has failed, unless that depends on the machine."""
    try:
        with _failing():
            engine.run(world)
    except HushnetError as error:
        if isinstance(error, InputError) or (isinstance(error, LimitReached) and error.limit in OF_THE_MACHINE):
            raise
        return f"{type(error).__name__}: {error}"
    return world.ended


@contextmanager
def _failing() -> Iterator[None]:
    """Call errors that nobody foresaw failures of the protocol."""
    try:
        yield
    except (ContractViolation, HushnetError, TooLarge):
        raise
    except Exception as error:
        words = str(error).strip().splitlines()
        raise Failed(f"the run ends in {type(error).__name__}: {words[0] if words else ''}") from error
