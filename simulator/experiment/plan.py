"""The runs of an experiment: every protocol for every grid point and seed, on common random numbers."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.authors import is_authors_class, place_of, returned
from ...agents.errors import InputError
from ...agents.graph import Graph
from ...agents.input_files import at_home, read_within
from ...agents.objectives.objectives import Objective
from ...agents.tasks.datasets import data_directory
from ...agents.tasks.extent import Files
from ...agents.tasks.splits import validation_part
from ...agents.tasks.task import Task
from ...protocols.base import Problem, Protocol
from ...protocols.user_files import is_file
from ..contract.verdict import SHIPPED, Verdict
from ..engine.selection import Engine, Name, engine_for, is_ready
from ..language.checking import nets_of
from ..language.fitting import naming_fields
from ..language.loading import GridPoint, LoadedScenario
from ..language.scenario import Scenario
from ..language.yaml_source import Source
from ..limits.memory import Sizes, check_memory, early_layout, processes_that_fit
from ..metrics import METRICS, recordable
from ..metrics.metric import names_of
from ..metrics.own_metrics import show_function
from ..network.randomness import Draws
from ..network.setting import Setting, Stop
from ..observers import Observing
from ..recording.recorder import Recorder
from ..recording.snapshot import OwnMetric
from ..storage.files import json_text
from ..storage.provenance import (
    code_version,
    edges,
    edges_hash,
    libraries,
    named_files,
    numerics,
    run_id,
)
from ..storage.user_code import source_hash
from ..world.notes import Notebook
from ..world.step_form import Rewind, asked_form
from ..world.watchers import Observer, Sampler
from ..world.world import World
from .planned_run import PlannedRun, Run

UNREPEATABLE = "gives other data or edges when it is called again with the same rng; draw from rng alone"
KEPT = 2**26
"""Bytes of data and graphs that are kept beside those of the latest run."""
LARGE = 2**26
"""Bytes of data and graph from which on a world is made only after those before are gone, which may hold as much."""


CONTRACT_POINTS = 4
"""Points of a sweep at which the contract of a protocol with its parameters is replayed at most, if nobody says so."""
NOT_ASKED = Verdict("unchecked", "it was not asked for (--no-contract)")
"""The verdict on a contract that nobody is to check."""


@dataclass(frozen=True)
class Built:
    """Task and graph of some runs, and a hash of both."""

    task: Task
    graph: Graph
    fingerprint: str

    @cached_property
    def size(self) -> int:
        """Bytes of its largest arrays."""
        tables, graph = (self.task.train, self.task.test), self.graph
        arrays = [array for table in tables for array in (table.features, table.labels, table.offsets)]
        return sum(array.nbytes for array in (*arrays, graph.tails, graph.heads, graph.weights))


SHORT, UNCOMPILED = 50_000, 150_000
"""Wake-ups of all runs of an experiment up to which the event engine makes them: where compiled windows are stored, and
where none has been compiled, which takes about as long as so many wake-ups."""


def wake_ups(scenario: Scenario, agents: int | None = None) -> float:
    """Wake-ups that are expected in a run; infinite where that is not known.

    Agents are by default as many as the scenario tells by itself.
    """
    agents, stop, found = agents or scenario.task.outline().agents, scenario.stop, [math.inf]
    if agents is None:  # data that nobody has read yet say how many there are
        return math.inf
    if stop.time is not None:
        found.append(scenario.clock.wakes(stop.time, agents) or math.inf)
    if stop.activations is not None:
        found.append(stop.activations)
    if stop.updates is not None:
        found.append(stop.updates * agents)
    return min(found)


@dataclass
class Experiment:
    """All runs of a scenario."""

    loaded: LoadedScenario
    out: Path | None = None
    """Folder of the results; ``results/<scenario>`` by default."""
    data_dir: Path | None = None
    """Where data sets are."""
    metrics: Mapping[str, OwnMetric] = field(default_factory=dict)
    """A user's own metrics, beside those that the scenario names."""
    token: str | None = field(default=None, init=False)
    """What the folder is known by once it is claimed, see `hushnet.simulator.storage.ownership`."""
    contract: bool = True
    """Whether the privacy contract of users' own protocols is checked."""
    contract_points: int = CONTRACT_POINTS
    """At how many points of a sweep at most, for each protocol and its parameters."""
    verdicts: dict[str, Verdict] = field(default_factory=dict, init=False, repr=False)
    """What is known of protocols' privacy contracts, by world and, for those without one of their own, by parameters,
    see `hushnet.simulator.experiment.contract_replays`."""
    unrepeatable: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    deadly: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    """`unrepeatable` and `deadly`: Kinds of protocols that do something else than they declare or than in another
    process, or that end theirs in a small world: what is known of it, see `hushnet.simulator.contract.repeats`."""
    unstackable: set[str] = field(default_factory=set, init=False, repr=False)
    """Kinds of runs that could not be made side by side, see `hushnet.simulator.experiment.stacks`."""
    _built: dict[tuple[str, int], Built] = field(default_factory=dict, init=False, repr=False)
    _sources: dict[tuple[str, ...], str | None] = field(default_factory=dict, init=False, repr=False)
    _latest: tuple[GridPoint, dict[str, dict[str, Any]]] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.contract_points < 1:
            raise InputError(
                f"contract_points = {self.contract_points}: must be an integer from 1 (--no-contract asks for none)"
            )
        taken = {*METRICS, *recordable()}
        for name, metric in self.metrics.items():
            if name in taken:
                raise InputError(f"metrics: {name!r} is a metric of hushnet's own; give yours another name")
            if not callable(metric):
                raise InputError(f"metrics: {name!r} must be a function of a snapshot, got {metric!r}")
            show_function(name, metric)

    @cached_property
    def is_short(self) -> bool:
        """True if all runs together have so few wake-ups that the event engine is the first to have made them."""
        expected, most = 0.0, SHORT if is_ready() else UNCOMPILED
        for run in self.runs():
            expected += wake_ups(run.point.scenario)
            if expected > most:
                return False
        return True

    def engine_name(self, run: Run) -> Name:
        """The engine that one of its runs comes to, `auto` where the world decides."""
        scenario = run.point.scenario
        return "event" if scenario.debug or (scenario.engine == "auto" and self.is_short) else scenario.engine

    def engine_for(self, run: Run, world: World) -> Engine:
        """The engine of one of its runs; `auto` takes the event engine where all of them are short."""
        scenario = run.point.scenario
        return engine_for(scenario.engine, world, debug=scenario.debug, short=self.is_short)

    @property
    def folder(self) -> Path:
        """Folder of the results."""
        return at_home(self.out or Path("results") / self.loaded.scenario.scenario)

    def runs(self) -> Iterator[Run]:
        """Every grid point, seed and protocol, protocols innermost: they share data and random draws."""
        for point in self.loaded.points:
            for seed, data_seed, run_seed in point.scenario.seed_pairs():
                for key in point.scenario.protocols:
                    yield Run(point, key, seed, data_seed, run_seed)

    def elsewhere(self) -> Experiment:
        """Copy that can make any of its runs in another process: without the list of them, and with absolute paths."""
        code, data_dir = self.loaded.code, data_directory(self.data_dir)
        loaded = replace(
            self.loaded,
            points=(),
            trials=(),
            source=Source(self.loaded.source.name, {}),
            code=replace(code, base=code.base.resolve()),
        )
        other = Experiment(loaded, self.folder.resolve(), data_dir and data_dir.absolute(), self.metrics)
        other.token, other._sources, other.is_short = self.token, dict(self._sources), self.is_short
        other.verdicts = dict(self.verdicts)
        other.unrepeatable, other.deadly = dict(self.unrepeatable), dict(self.deadly)
        return other

    @property
    def files(self) -> Files:
        """Folders in which files that the scenario names are looked up."""
        return Files(self.data_dir, self.loaded.base)

    def check_memory(self, scenario: Scenario, *, processes: int = 1) -> None:
        """Refuse one of its scenarios that cannot fit, see `hushnet.simulator.limits.memory.check_memory`."""
        check_memory(scenario, self.files, self.loaded.code.protocol, processes=processes)

    def processes_that_fit(self, scenario: Scenario) -> int:
        """Number of runs of one of its scenarios that fit into memory at the same time, at least one."""
        return processes_that_fit(scenario, self.files, self.loaded.code.protocol)

    def data(self, run: Run) -> tuple[Task, Graph]:
        """Task and graph of a run."""
        built = self._data(run)
        return built.task, built.graph

    def _data(self, run: Run) -> Built:
        """The first ones are kept as far as there is room for them, and the latest."""
        key = run.data_key
        if key not in self._built:
            scenario, draws, first = run.point.scenario, Draws(run.data_seed), not self._built
            if sum(built.size for built in self._built.values()) > KEPT:
                self._built.popitem()
            self.check_memory(scenario)
            self._built[key] = built = self._build(scenario, draws)
            own = [one for one in (scenario.task, scenario.topology) if is_authors_class(type(one))]
            again = self._build(scenario, draws) if first and own else built
            if again.fingerprint != built.fingerprint:
                same = again.task.fingerprint == built.task.fingerprint
                raise InputError(
                    f"{place_of(scenario.topology.edges if same else scenario.task.build)}: {UNREPEATABLE}"
                )
        return self._built[key]

    def _build(self, scenario: Scenario, draws: Draws) -> Built:
        base, made = self.loaded.base, scenario.task.build
        with read_within(scenario.limits.seconds):
            task: Task = returned(made(rng=draws.generator("data"), data_dir=self.data_dir, base=base), Task, made)
        try:
            task.check()
        except InputError as error:
            raise InputError(
                f"{place_of(made)}: {error}" if is_authors_class(type(scenario.task)) else str(error)
            ) from None
        task = scenario.task.with_model(task, rng=draws.generator("model"))
        if scenario.validation is not None:
            task = validation_part(task, scenario.validation, rng=draws.generator("validation"))
        with read_within(scenario.limits.seconds):
            graph = scenario.topology.build(task, rng=draws.generator("topology"), base=base)
        return Built(task, graph, f"{task.fingerprint} {edges_hash(edges(graph))}")

    def run_id(self, run: Run) -> str:
        """Name of a run's folder."""
        files = self.named_files(run)
        return run_id(
            self._deciding(run),
            run.protocol,
            [run.data_seed, run.run_seed],
            code_version=code_version(),
            plugin_source=self._judged_source(run),
            data_fingerprint=f"{self._data(run).fingerprint} {json_text(files)}",
            libraries=libraries(run.point.scenario.task.model),
            form=asked_form(run.point.scenario.engine, debug=run.point.scenario.debug),
        )

    def named_files(self, run: Run) -> dict[str, str]:
        """The checksums of the files that a run reads by a path, see `hushnet.simulator.storage.provenance`."""
        return named_files(self._deciding(run), run.protocol, self.loaded.base)

    def planned_name(self, run: Run) -> str:
        """Hash of all that decides a run and is known before its data are made."""
        seeds, unknown = [run.data_seed, run.run_seed], {"data_fingerprint": "", "libraries": {}, "form": ""}
        source = self.source(run)
        return run_id(self._deciding(run), run.protocol, seeds, code_version="", plugin_source=source, **unknown)

    def _deciding(self, run: Run) -> dict[str, Any]:
        """The scenario of a run with its defaults; without a network, where the protocol has no messages."""
        point = run.point
        if self._latest is None or self._latest[0] is not point:  # runs of a point follow each other
            self._latest = point, {}
        found = self._latest[1]
        if run.protocol not in found:
            parameters, resolved = point.scenario.protocols[run.protocol], point.scenario.resolved()
            layout = early_layout(self.loaded.code.protocol(parameters.kind), parameters, Sizes(2, 2))
            if layout is not None and not layout.messages:
                del resolved["network"]
            found[run.protocol] = resolved
        return found[run.protocol]

    def source(self, run: Run) -> str | None:
        """A hash of the user's own code that a run executes; found once, where the code is at home."""
        record, protocols = run.point.scenario.record, run.point.scenario.protocols
        kinds = [protocols[key].kind for key in (run.protocol, record.objective_of) if key is not None]
        own = [name for name in record.metrics or [] if is_file(name)]
        key = (*kinds, *own, *nets_of(run.point.scenario))
        if key not in self._sources:
            code = self.loaded.code
            things = [*map(code.protocol, kinds), *map(code.metric, own), *self.metrics.values()]
            things += code.files(key)
            self._sources[key] = source_hash(things)
        return self._sources[key]

    def verdict(self, run: Run) -> Verdict:
        """Verdict on the privacy contract of a run's protocol, as far as it is known."""
        other = self.verdicts.get(run.contract_key, SHIPPED if self.source(run) is None else NOT_ASKED)
        return other if other.status == "shipped" else self.verdicts.get(run.world_key, other)

    def _judged_source(self, run: Run) -> str | None:
        """The hash of the user's own code; with it what speaks against it, so that this is not taken for a proof."""
        known = self.verdict(run) if run.contract_key in self.verdicts else SHIPPED
        return f"{self.source(run)} {known.status}" if known.unproved else self.source(run)

    def setting(self, run: Run) -> Setting:
        """Setting of a run: data, graph, network and draws, which other protocols share at the same point and seed."""
        scenario = run.point.scenario
        parameters, data = scenario.protocols[run.protocol], self.data(run)
        tuned = (f"tuned {field} (chosen by looking at data)" for field in parameters.tuned)
        return Setting(
            *data,
            clock=scenario.clock,
            network=scenario.network,
            availability=scenario.availability,
            stop=Stop(**scenario.stop.model_dump()),
            draws=Draws(run.run_seed),
            base=self.loaded.base,
            assumed_public=(*scenario.topology.assumed_public(data[0]), *tuned),
            limits=scenario.limits.limits(),
            changes=scenario.topology.changes,
            compute=scenario.compute,
            adversaries=scenario.adversaries and scenario.adversaries.build(*data, Draws(run.data_seed)),
        )

    def world(
        self,
        run: Run,
        recorder: Sampler | None = None,
        observer: Observer | Notebook | None = None,
        again: Rewind | None = None,
    ) -> World:
        """The world of a run, ready to go."""
        if self._data(run).size > LARGE:
            gc.collect()  # a world's parts refer to each other
        scenario = run.point.scenario
        parameters = scenario.protocols[run.protocol]
        world = World(
            self.setting(run),
            self.loaded.code.protocol(parameters.kind),
            parameters,
            every=scenario.record.every,
            activations=scenario.record.activations,
            recorder=recorder,
            observer=observer,
            unproved=self.verdict(run).unproved,
            unlooked=self.verdict(run).unlooked,
            again=again,
        )
        world.learned = None if scenario.observers is None else Observing(scenario.observers)
        return world

    def recorder(self, run: Run, on_sample: Callable[[World], None] | None = None) -> Recorder:
        """Recorder of a run, with the metrics and the objective that its scenario asks for."""
        scenario, (task, _) = run.point.scenario, self.data(run)
        names = scenario.measured()
        measurable = len(task.test.labels) > 0 or scenario.validation is not None
        untested = () if measurable else names_of(lambda metric: metric.rows == "test")
        for rank, name in enumerate(scenario.record.metrics or ()):
            if name in untested:
                raise InputError(
                    f"cannot be measured: the task {task.name!r} has no test rows; "
                    "hold some out, or record other metrics",
                    field=("record", "metrics", rank),
                )
        files = {name: self.loaded.code.metric(name) for name in names if is_file(name)}
        known = recordable()
        return Recorder(
            [name for name in names if name in known],
            own={**{name: own for name, own in files.items() if name not in known}, **self.metrics},
            objective=None
            if scenario.record.objective_of is None
            else self._objective(run, scenario.record.objective_of),
            cache_dir=self.folder / ".cache" / numerics(),
            protocol=run.protocol,
            seed=run.seed,
            on_sample=on_sample,
        )

    def measured_objective(self, run: Run) -> Objective | None:
        """Objective that a run is measured by, if any: that of ``record.objective_of``, else of its own protocol."""
        key = run.point.scenario.record.objective_of
        return self._objective(run, run.protocol if key is None else key)

    def _objective(self, run: Run, key: str) -> Objective | None:
        parameters = run.point.scenario.protocols[key]
        task, graph = self.data(run)

        def expected(count: int) -> NDArray[np.int64]:  # of wake-ups, which decide noise and no objective
            return np.tile(np.arange(count, dtype=np.int64) * graph.agents, (graph.agents, 1))

        with naming_fields(key):
            made: Protocol = self.loaded.code.protocol(parameters.kind)(parameters, Problem(task, graph, expected))
            return made.objective()


def plan(experiment: Experiment, runs: Iterable[Run]) -> list[PlannedRun]:
    """Every run once, those with the same data one after the other.

    A protocol that what is swept does not concern has the same run at several grid points: so has one without messages
    in a sweep of the network.
    """
    found: dict[str, tuple[Run, list[int]]] = {}
    for place, run in enumerate(runs):
        found.setdefault(experiment.planned_name(run), (run, []))[1].append(place)
    by_data: dict[tuple[str, int], list[PlannedRun]] = {}
    for name, (run, places) in found.items():
        by_data.setdefault(run.data_key, []).append(PlannedRun(name, run, tuple(places)))
    return [planned for group in by_data.values() for planned in group]
