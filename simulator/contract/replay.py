"""The proof of an epsilon by replay: a run, and the same run on neighbouring data along the same transcript.

See `hushnet.simulator.contract.transcript` for what has to be equal and what may differ. Each agent's steps depend on
others only by what these have sent, and that is forced to be the same; so one forced run can change one record of
*every* agent at once, and finds a leak of any of them. Others change a group of agents: then nothing at all may change
for the rest, and of any two agents each is in some group without the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...agents.errors import INTERRUPTED, HushnetError, InputError, LimitReached, Undeclared, words_of
from ...agents.tasks.task import Task
from ..engine.selection import Engine
from ..network.randomness import Draws
from ..network.setting import Setting
from ..world.watchdog import OF_THE_MACHINE
from ..world.watchers import Watch
from ..world.world import World
from .charge_checks import check_charges, exposed
from .decision_checks import check_decisions, flipped
from .draws import difference, protects_nothing
from .forcing import Forcing
from .linear_checks import check_linear_map, note_messages
from .neighbours import Beside, Domain, Rows, crowded, differing, domain_of, groups, in_turn, last, replaced, resized
from .samples_seen import Witness
from .transcript import Recording, TooLarge
from .violation import ContractViolation

Make = Callable[[Setting, Watch], tuple[World, Engine]]
"""Makes the world of a setting that is watched."""


@dataclass
class Replayed:
    """Result of a replay."""

    steps: int
    """Completed steps of all agents in the recorded run."""
    exposed: frozenset[int]
    """Agents that were charged for a release that protects nothing."""
    adjacencies: tuple[str, ...]
    """Relations between the neighbouring data sets that were compared."""
    failure: str
    """Why the recorded run has failed; empty where it has reached its end."""
    witnesses: list[Witness]
    """Evidence about noise and samples, from every recorded run."""
    runs: int = 1
    """Number of runs that were made."""
    groups: int = 0
    """Runs in which a group of agents had other data and the others their own."""
    ratio: float = 0.0
    """The largest realised change in relation to the sensitivity that was charged for."""
    held: bool = False
    """Whether constants that the protocol takes from records and treats as public had to be held fixed."""
    looked: frozenset[int] = frozenset()
    """Agents whose data were changed in a run that held."""
    unlooked: dict[int, str] = field(default_factory=dict)
    """Agents with data about which nothing was shown, with the reason."""


class Noted:
    """A run that was noted, to be led along again on other data.

    Raises `ContractViolation` if noise and charges do not match, or a linear map does not give what was sent.
    """

    def __init__(self, make: Make, setting: Setting) -> None:
        self.make, self.setting = make, setting
        self.recording = Recording(setting.task.ids)
        try:
            self.world, engine = ready(make, setting, self.recording)
            note_messages(self.world)
            self.ended = _run(self.world, engine)
        except Failed as error:
            raise Broken(str(error)) from error
        check_listed(self.recording.constants, self.world.assumed_public)
        self.exposed = frozenset(agent for agent in range(setting.graph.agents) if exposed(self.world, agent))
        self.witness = Witness(self.recording)
        self.forced: Forcing | None = None
        if self.world.protocol.decides_by_draws:
            other = Recording(setting.task.ids)
            world, engine = ready(make, flipped(setting), other)
            _run(world, engine)
            check_decisions(world, self.recording, other)
        if self.world.ended:  # a step that was broken off has not sent what it drew
            check_charges(self.world, self.recording)
            check_linear_map(self.world, self.recording)

    @property
    def holders(self) -> list[int]:
        """Agents with data."""
        task = self.setting.task
        return np.flatnonzero(task.train.counts).tolist() if task.columns is None else list(range(task.agents))

    @property
    def able(self) -> list[int]:
        """Agents with data about which there is something to show."""
        return [agent for agent in self.holders if agent not in self.exposed]

    @property
    def adjacencies(self) -> tuple[str, ...]:
        """Between what data sets the releases of these agents are charged for, each once."""
        return self.world.ledger.adjacencies(self.able) or ("replace-one",)

    def force(self, task: Task, changed: Iterable[int], *, records: int = 1) -> tuple[float, bool]:
        """Lead a run on other data along this one: the largest ratio, and whether constants had to be held fixed.

        Constants are prepared from the other data first. Only where that does not do, those which the protocol treats
        as public (`Problem.assumed`) are held fixed, and no others. For ``records`` see `Forcing`. Raises
        `ContractViolation` if what can be observed differs, or an exact value moves by more than was charged, and
        `Inadmissible` if the protocol refuses the data.
        """
        changed = frozenset(changed)
        try:
            return self._force(task, changed, held=False, records=records), False
        except ContractViolation:
            if not self.recording.constants:
                raise
        return self._force(task, changed, held=True, records=records), True

    def _force(self, task: Task, changed: frozenset[int], *, held: bool, records: int) -> float:
        how: dict[str, Any] = {"exposed": self.exposed, "changed": changed, "held": held, "records": records}
        forcing = self.forced = Forcing(self.recording, **how)
        try:
            world, engine = ready(self.make, replace(self.setting, task=task), forcing)
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


def replay(
    make: Make, setting: Setting, *, planted: bool, together: int, apart: int, first: int = 0, seed: int = 0
) -> Replayed:
    """Run a world, and run it again on neighbouring data sets along the same transcript.

    If planted, a worst record is put into the first data set as well, so that two opposite ones are compared; the first
    number chooses it (see `replaced`). In runs together every agent has another record, for each adjacency that
    releases name; apart, at most so many, a group of agents that the seed chooses has, and the others must not notice.
    Raises `ContractViolation` as of `Noted`.
    """
    with np.errstate(all="ignore"):
        return _Replay(make, setting, seed=seed).all(planted=planted, together=together, apart=apart, first=first)


class _Replay:
    """The runs of one world on neighbouring data, and what they have shown."""

    def __init__(self, make: Make, setting: Setting, *, seed: int) -> None:
        self.make, self.setting, self.seed = make, setting, seed
        self.noted = Noted(make, setting)
        self.whole = any(unit != "record" for unit in self.noted.world.ledger.units(self.noted.able))
        self.models = _models(self.noted.world)
        draws = (draw for draws in self.noted.recording.draws.values() for draw in draws)
        self.sampled = any(draw.release.sampling < 1 for draw in draws)
        self.domain = domain_of(setting.task, self.noted.world.protocol, self.noted.recording)
        self.beside = Beside(0)
        world, failure = self.noted.world, "" if self.noted.world.ended else self.noted.ended
        known = self.noted.exposed, self.noted.adjacencies, failure, [self.noted.witness]
        self.found = Replayed(world.activations, *known)

    def all(self, *, planted: bool, together: int, apart: int, first: int) -> Replayed:
        """Everybody at once, then groups."""
        noted, adjacencies, self.beside = self.noted, self.found.adjacencies, Beside(first)
        for number in range(first, first + together if noted.able else first):
            for adjacency in adjacencies:
                with suppress(Inadmissible):
                    base = self._planted(number, adjacency) if planted else noted
                    self._force(base, base.able, number, adjacency, planted=planted)
        chosen = groups(noted.able, most=apart, seed=self.seed) if apart else []
        for rank, group in enumerate(chosen):
            with suppress(Inadmissible):
                adjacency = adjacencies[rank % len(adjacencies)]
                twice = planted or rank % 2 == 0
                self._force(noted, group, first + together + rank, adjacency, planted=False, twice=twice)
                self.found.groups += 1
        if self.sampled and planted:  # one row more of everybody
            with suppress(Inadmissible):
                number = first + together + len(chosen)
                self._force(noted, noted.able, number, adjacencies[0], planted=False, twice=True)
        self.found.unlooked = self._unlooked()
        return self.found

    def _planted(self, number: int, adjacency: str) -> Noted:
        """A run on worst records: that it does not fail is part of what is promised."""
        self.found.runs += 1
        before = self.setting.task
        rows = self._rows(before, self.noted.able, number, adjacency, planted=True)
        task = self._replaced(before, rows, number, side=0, planted=True)
        task = task if self.whole else crowded(task, rows, number=number)
        draws = Draws(self.setting.draws.seed + number + 1)  # other noise and samples than those that were seen
        try:
            noted = Noted(self.make, replace(self.setting, task=task, draws=draws))
        except InputError as error:
            raise Inadmissible(str(error)) from error
        except Broken as error:
            raise ContractViolation(f"with an extreme record {error}, which gives the record away") from error
        self.found.witnesses.append(noted.witness)
        return noted

    def _force(
        self, base: Noted, agents: Sequence[int], number: int, adjacency: str, *, planted: bool, twice: bool = False
    ) -> None:
        """One run on a neighbouring data set.

        Where a removed record would have others sampled otherwise, unless it is the last, ``twice`` replaces one in its
        place: as far as removing one and adding another.
        """
        before = base.setting.task
        twice = twice and adjacency != "replace-one" and self.sampled and not self.whole
        rows = self._rows(before, agents, number, "replace-one" if twice else adjacency, planted=planted)
        if adjacency == "replace-one" or twice:
            task = self._replaced(before, rows, number, side=1, planted=planted)
        else:
            # Where rows are sampled, few runs are left for either: both come with planted records, and without.
            remove = number // 2 % 2 == 1 if self.sampled else planted or number % 2 == 1
            task = resized(before, rows, self._domain(planted=True), self.models, number=number, remove=remove)
        changed = differing(before, task, agents)
        if not changed:
            return
        found = self.found
        found.runs += 1
        most, fixed = base.force(task, agents, records=2 if twice else 1)
        found.ratio, found.held, found.looked = max(found.ratio, most), found.held or fixed, found.looked | changed

    def _rows(self, task: Task, agents: Sequence[int], number: int, adjacency: str, *, planted: bool) -> Rows:
        if not self.sampled:
            return in_turn(task, agents, number)
        if adjacency != "replace-one":
            return last(task, agents)
        return in_turn(task, agents, number) if planted else self.beside.next(task, agents)

    def _domain(self, *, planted: bool) -> Domain:
        """Records that are put into data sets: where rows are sampled, some whose taking part is seen."""
        return self.domain.moderate if planted and self.sampled else self.domain

    def _replaced(self, task: Task, rows: Rows, number: int, *, side: int, planted: bool) -> Task:
        how = {"number": number, "side": side, "whole": self.whole}
        return replaced(task, rows, self._domain(planted=planted), self.models, **how)

    def _unlooked(self) -> dict[int, str]:
        """Agents with data whose data no run has changed, and who has drawn what protects nothing in silence."""
        noted, found = self.noted, {}
        for agent in noted.holders:
            if agent in noted.exposed:
                found[agent] = "it sends something without noise"
            elif agent not in self.found.looked:
                found[agent] = "no neighbouring data set changes its data"
            elif any(protects_nothing(draw.release) for draw in noted.recording.draws[agent]):
                found[agent] = "it draws noise for an unbounded sensitivity, which nothing has charged"
        return found


def _models(world: World) -> np.ndarray | None:
    """(n, p) linear models of a run, along which worst records lie."""
    models, task = world.protocol.models(world.state), world.setting.task
    if models is None or task.model is not None or models.shape != (task.agents, task.dimension):
        return None
    return models.copy()


def ready(make: Make, setting: Setting, watch: Watch) -> tuple[World, Engine]:
    """A world that is ready to run, and the engine that is to run it."""
    with _failing():
        return make(setting, watch)


def _run(world: World, engine: Engine) -> str:
    """Run a world: why it has ended, or how it has failed, unless that depends on the machine."""
    try:
        with _failing():
            engine.run(world)
    except HushnetError as error:
        if isinstance(error, Undeclared):
            raise ContractViolation(str(error)) from error
        if isinstance(error, InputError) or (isinstance(error, LimitReached) and error.limit in OF_THE_MACHINE):
            raise
        return f"{type(error).__name__}: {error}"
    return world.ended


@contextmanager
def _failing() -> Iterator[None]:
    """Call errors that nobody foresaw failures of the protocol."""
    try:
        yield
    except (ContractViolation, HushnetError, TooLarge, *INTERRUPTED):
        raise
    except BaseException as error:  # a class of an author's own may derive from it
        raise Failed(f"the run ends in {type(error).__name__}: {words_of(error)}") from error
