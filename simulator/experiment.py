"""An experiment: every protocol for every grid point and seed, on common random numbers, saved run by run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..agents.errors import Divergence, InputError, Stall
from ..agents.graph import Graph
from ..agents.objectives import Objective
from ..agents.tasks.base import Task
from ..protocols.base import Problem, Protocol
from ..protocols.noise import active
from . import results
from .engine import build_world
from .graphs import describe
from .loading import GridPoint, LoadedScenario, load, locate
from .memory import check_memory
from .randomness import Draws
from .recorder import Metric, Recorder
from .results import Collection, RunResult
from .scenario import METRICS, Scenario
from .setting import Setting, Stop
from .world import World

FAILURES: dict[str, type[Divergence] | type[Stall]] = {"diverged": Divergence, "stalled": Stall}
"""Errors that end a run and keep what was recorded, by the status that they give it."""

ENDED = ("complete", *FAILURES)
"""Statuses of a run that need not be run again."""


@dataclass(frozen=True)
class Run:
    """One run that an experiment asks for."""

    point: GridPoint
    protocol: str
    seed: int
    data_seed: int
    run_seed: int


@dataclass
class Experiment:
    """All runs of a scenario.

    Parameters
    ----------
    loaded : LoadedScenario
    out : Path, optional
        Folder of the results; ``results/<scenario>`` by default.
    data_dir : Path, optional
        Where data sets are.
    metrics : mapping of str to callable
        A user's own metrics, beside those that the scenario names.
    """

    loaded: LoadedScenario
    out: Path | None = None
    data_dir: Path | None = None
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    _worlds: dict[tuple[str, int], tuple[Task, Graph]] = field(default_factory=dict, init=False)

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return self.out or Path("results") / self.loaded.scenario.scenario

    def runs(self) -> Iterator[Run]:
        """Every grid point, seed and protocol, protocols innermost: they share data and luck."""
        for point in self.loaded.points:
            for seed, data_seed, run_seed in point.scenario.seed_pairs():
                for key in point.scenario.protocols:
                    yield Run(point, key, seed, data_seed, run_seed)

    def data(self, run: Run) -> tuple[Task, Graph]:
        """Task and graph of a run, built once per grid point and data seed."""
        scenario = run.point.scenario
        key = (repr((scenario.task, scenario.topology)), run.data_seed)
        if key not in self._worlds:
            check_memory(scenario)
            draws = Draws(run.data_seed)
            base = self.loaded.base
            task = scenario.task.build(rng=draws.generator("data"), data_dir=self.data_dir, base=base)
            graph = scenario.topology.build(task, rng=draws.generator("topology"), base=base)
            self._worlds.clear()
            self._worlds[key] = (task, graph)
        return self._worlds[key]

    def run_id(self, run: Run) -> str:
        """Name of a run's folder."""
        scenario = run.point.scenario
        return results.run_id(
            scenario.resolved(),
            run.protocol,
            [run.data_seed, run.run_seed],
            code_version=results.code_version(),
            plugin_source=self.loaded.code.protocol_source(scenario.protocols[run.protocol].kind),
            data_fingerprint=self.data(run)[0].fingerprint,
            libraries=results.libraries(),
        )

    def world(self, run: Run, recorder: Recorder | None = None) -> World:
        """The world of a run, ready to go."""
        scenario = run.point.scenario
        task, graph = self.data(run)
        setting = Setting(
            task=task,
            graph=graph,
            clock=scenario.clock,
            network=scenario.network,
            availability=scenario.availability,
            stop=Stop(**scenario.stop.model_dump()),
            draws=Draws(run.run_seed),
            base=self.loaded.base,
            assumed_public=scenario.topology.assumed_public(task),
        )
        parameters = scenario.protocols[run.protocol]
        return build_world(
            scenario.engine,
            setting,
            self.loaded.code.protocol(parameters.kind),
            parameters,
            every=scenario.record.every,
            activations=scenario.record.activations,
            recorder=recorder,
        )

    def recorder(self, run: Run, on_sample: Callable[[World], None] | None = None) -> Recorder:
        """What measures a run."""
        scenario, (task, _) = run.point.scenario, self.data(run)
        names = scenario.record.metrics or ["objective", task.metric]
        own = {name: self.loaded.code.metric(name) for name in names if name not in METRICS}
        return Recorder(
            [name for name in names if name in METRICS],
            own={**own, **self.metrics},
            objective=self._common_objective(run),
            cache_dir=self.folder / ".cache",
            protocol=run.protocol,
            seed=run.seed,
            on_sample=on_sample,
        )

    def _common_objective(self, run: Run) -> Objective | None:
        scenario = run.point.scenario
        key = scenario.record.objective_of
        if key is None:
            return None
        parameters = scenario.protocols[key]
        with _naming_fields(key):
            made: Protocol = self.loaded.code.protocol(parameters.kind)(parameters, Problem(*self.data(run)))
            return made.objective()

    def execute(self, run: Run, on_sample: Callable[[World], None] | None = None) -> RunResult:
        """Run, whatever comes of it: a run that diverges or stalls keeps what was recorded."""
        began = time.perf_counter()
        with _naming_fields(run.protocol), threadpool_limits(1), np.errstate(over="ignore", invalid="ignore"):
            recorder = self.recorder(run, on_sample)
            world = self.world(run, recorder)
            failure = None
            try:
                world.run()
            except tuple(FAILURES.values()) as error:
                failure = error
            ledger = world.ledger.to_frame()
            ledger["agent"] = [str(world.setting.task.ids[int(agent)]) for agent in ledger["agent"]]
            seconds = time.perf_counter() - began
            manifest = self._manifest(run, world, failure, seconds)
            return RunResult(manifest, recorder.trace(), recorder.agents(world), ledger)

    def _manifest(self, run: Run, world: World, failure: Exception | None, seconds: float) -> dict[str, Any]:
        scenario, task = run.point.scenario, world.setting.task
        traffic = world.traffic
        status = next((name for name, kind in FAILURES.items() if isinstance(failure, kind)), "complete")
        privacy, warnings = privacy_statement(world)
        return {
            "scenario": scenario.resolved(),
            "protocol": run.protocol,
            "label": scenario.label(run.protocol),
            "seed": run.seed,
            "data_seed": run.data_seed,
            "run_seed": run.run_seed,
            "grid": run.point.values,
            "status": status,
            "error": str(failure or ""),
            "ended": status if failure else world.ended,
            "engine": world.engine,
            "noise": "seeded simulation noise, not a sampler for deployment",
            "task": {"name": task.name, "metric": task.metric, "dimension": task.dimension, "notes": task.notes},
            "topology": describe(world.setting.graph),
            "privacy": privacy,
            "warnings": warnings,
            "totals": {
                "time": world.now,
                "activations": world.activations,
                "messages": traffic.messages,
                "vectors": traffic.vectors,
                "start_vectors": traffic.start_vectors,
                "bytes": traffic.bytes.sent,
                "delivered": traffic.links.delivered,
                "lost": traffic.links.lost,
                "dropped": traffic.links.dropped,
                "in_flight": traffic.links.in_flight,
                "overtaken": traffic.overtaken,
            },
            "timings": {"seconds": seconds, "activations_per_second": world.activations / max(seconds, 1e-9)},
            "versions": results.libraries(),
            "code": results.code_version(),
            "commit": results.commit(),
            "data": task.fingerprint,
        }


@contextmanager
def _naming_fields(protocol: str) -> Iterator[None]:
    """Errors of a protocol name fields of its own; give them their place in the scenario."""
    try:
        yield
    except InputError as error:
        if error.field and error.field[0] not in Scenario.model_fields:
            raise InputError(str(error), field=("protocols", protocol, *error.field)) from error
        raise


def privacy_statement(world: World) -> tuple[dict[str, Any] | None, list[str]]:
    """What a run claims and what can be verified, for its worst agent, and warnings about it."""
    privacy = world.protocol.privacy
    if privacy is None or not active(privacy):
        return None, []
    delta = privacy.reported_delta
    claimed = float(world.ledger.epsilon("claimed", delta).max())
    verified = float(world.ledger.epsilon("tight", delta).max())
    statement = {
        "mechanism": privacy.mechanism,
        "sensitivity": privacy.sensitivity,
        "claimed": claimed,
        "claimed_by": privacy.claimed_by,
        "verified": verified,
        "delta": delta,
        "flagged": bool(claimed < verified * (1 - 1e-6)),
        "strict": privacy.strict,
        "assumed_public": list(world.assumed_public),
    }
    most = int(world.setting.task.train.counts.max())
    warnings = []
    if delta * most >= 1:
        warnings.append(
            f"delta {delta:g} is not below 1/m for the agent with the most records (m = {most}): "
            "publishing one record in full would satisfy it"
        )
    return statement, warnings


def run(
    source: Path | str | Mapping[str, Any],
    *,
    protocols: Mapping[str, type[Protocol]] | None = None,
    metrics: Mapping[str, Metric] | None = None,
    out: Path | None = None,
    data_dir: Path | None = None,
    seeds: int | None = None,
    overrides: tuple[str, ...] = (),
    trust_code: bool = False,
) -> Collection:
    """Run a scenario from Python and return what it left behind.

    Parameters
    ----------
    source : Path, str or mapping
        A scenario file, the name of a shipped scenario, or the scenario itself.
    protocols : mapping of str to type, optional
        Your own protocol classes, by the name that the scenario gives as ``kind``.
    metrics : mapping of str to callable, optional
        Your own metrics: functions of a `Snapshot` that give a number, or numbers by statistic.
    out, data_dir : Path, optional
        Folder of the results; folder of the data sets.
    seeds : int, optional
        Replaces the scenario's seeds.
    overrides : tuple of str
        ``path=value`` each.
    trust_code : bool
        Whether Python files that the scenario names may be run.

    Raises
    ------
    InputError
        If something about the input is not admissible.
    Divergence, Stall
        If a run diverged or stalled; all results are saved.
    """
    loaded = load(source, overrides=overrides, trust_code=trust_code, extra=protocols, seeds=seeds)
    experiment = Experiment(loaded, out, data_dir, metrics or {})
    failures = perform(experiment)
    if failures:
        raise failures[0]
    return results.load_all(experiment.folder)


def perform(
    experiment: Experiment,
    *,
    on_run: Callable[[Run, bool], None] | None = None,
    on_sample: Callable[[World], None] | None = None,
) -> list[Divergence | Stall]:
    """Run everything that is not there yet, save each run when it ends, and index what belongs to the experiment.

    Parameters
    ----------
    experiment : Experiment
    on_run : callable, optional
        Told before each run whether it has to be run or is there already.
    on_sample : callable, optional
        Called with the world at every record instant.

    Returns
    -------
    list of Divergence or Stall
        One for every run that diverged or stalled, with its sentence.
    """
    scenario = experiment.loaded.scenario
    finished: list[str] = []
    grids: list[dict[str, Any]] = []
    failures: list[Divergence | Stall] = []
    try:
        for run in experiment.runs():
            name = experiment.run_id(run)
            folder = experiment.folder / name
            there = results.is_complete(folder) and results.load(folder).manifest["status"] in ENDED
            there = there and not experiment.metrics
            if on_run:
                on_run(run, there)
            if not there:
                results.save(experiment.execute(run, on_sample), folder)
            finished.append(name)
            grids.append(run.point.values)
            manifest = results.load(folder).manifest
            if manifest["status"] in FAILURES:
                sentence = f"{scenario.scenario}: protocol {run.protocol}, seed {run.seed}: {manifest['error']}"
                failures.append(FAILURES[manifest["status"]](sentence))
    except InputError as error:
        raise InputError(locate(error, experiment.loaded)) from error
    finally:
        if finished:
            results.write_index(
                experiment.folder,
                scenario=scenario.scenario,
                runs=finished,
                figures=[figure.model_dump() for figure in scenario.figures],
                labels={key: scenario.label(key) for key in scenario.protocols},
                time_unit=scenario.time_unit,
                grids=grids,
            )
    return failures
