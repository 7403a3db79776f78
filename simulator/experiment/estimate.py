"""Answer to ``--dry-run``: runs, memory and disk, task and graph, and the engine of each protocol."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from ...agents.suggestions import counted
from ..language.fitting import naming_fields
from ..limits.memory import expected_bytes
from ..network.graphs import describe, graph_line
from ..storage.files import json_text
from ..storage.store import Store
from ..world.watchdog import size as in_bytes
from ..world.watchdog import used_memory
from .plan import Experiment, Run, plan, wake_ups
from .preflight import preflight
from .run_once import is_there
from .time_left import processes_of
from .tuning import settled, trial_experiment
from .workers import Jobs

FOLDER_BYTES = 8_000
"""Bytes of a run's folder, besides its trace and the scenario in its manifest."""
AGENT_BYTES = 100
"""Bytes of an agent's rows in a run's folder."""
ROW_BYTES = 12
"""A row of a trace."""


@dataclass(frozen=True)
class Estimate:
    """Needs of a stage of an experiment: its trials, or its reported runs."""

    runs: int
    distinct: int
    there: int
    """`runs`, `distinct` and `there`: Runs, those that differ from each other, and how many of these need not be run
    any more."""
    memory: float
    disk: float
    """`memory` and `disk`: Bytes that the largest of the runs to come holds, and that all of them write."""


def print_estimate(experiment: Experiment, console: Console, jobs: Jobs = 1) -> None:
    """Print what would be run and an estimate of its memory and disk, where so many processes share the work."""
    held = used_memory()  # before there are data, which a run's memory has in it
    stages: list[tuple[str, Estimate]] = []
    trials = trial_experiment(experiment)
    if trials is not None:
        stages.append(("tuning: ", estimate(trials)))
        experiment = settled(experiment) if stages[0][1].there == stages[0][1].distinct else experiment
    stages.append(("", estimate(experiment)))
    scenario, first = experiment.loaded.scenario, next(experiment.runs())
    task, graph = experiment.data(first)
    lines = [
        f"{scenario.scenario}: {counted(len(scenario.protocols), 'protocol')}, "
        f"{counted(len(experiment.loaded.points), 'grid point')}, {counted(len(scenario.seed_pairs()), 'seed')}; "
        "nothing was run or written",
        *(f"{name}{_runs(stage)}" for name, stage in stages),
        f"task: {task.name}, {task.agents} agents, dimension {task.dimension}, {len(task.train.labels)} training rows",
        graph_line(describe(graph)),
        *forms(experiment),
        *(f"warning: {sentence}" for sentence in preflight(experiment, plan(experiment, experiment.runs()))),
        _needs([stage for _, stage in stages], held, processes_of(jobs)),
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def forms(experiment: Experiment) -> list[str]:
    """Name the engine of each protocol's first run, the form of its steps, and the reason.

    Their worlds are built for that.
    """
    found: dict[str, list[str]] = {}
    for run in experiment.runs():
        if any(run.protocol in keys for keys in found.values()):
            break
        with naming_fields(run.protocol):
            world = experiment.world(run)
            form = experiment.engine_for(run, world).prepare(world).form
        name, _, why = world.engine.partition(", ")
        said = f"{name.partition(' ')[0]} engine, {why or form.text}"
        found.setdefault(said, []).append(run.protocol)
    where = " at the first grid point" if len(experiment.loaded.points) > 1 else ""
    return [f"steps of {', '.join(keys)}{where}: {said}" for said, keys in found.items()]


def estimate(experiment: Experiment) -> Estimate:
    """Estimate what an experiment's runs take; no data are made but to find out which runs are there."""
    runs = list(experiment.runs())
    queue = plan(experiment, runs)
    there = _there(experiment, [planned.run for planned in queue])
    todo = [planned.run for planned, done in zip(queue, there, strict=True) if not done]
    sizes = RunSizes(experiment)
    memory = max((sizes(run)[1] for run in todo), default=0)
    disk = sum(_disk(run, sizes(run)[0]) for run in todo)
    return Estimate(len(runs), len(queue), sum(there), memory, disk)


class RunSizes:
    """Agents and bytes of memory of a run, counted once for all that have the same data."""

    def __init__(self, experiment: Experiment) -> None:
        self._files, self._resolve = experiment.files, experiment.loaded.code.protocol
        self._known: dict[str, tuple[int, int]] = {}

    def __call__(self, run: Run) -> tuple[int, int]:
        """(agents, bytes) of a run."""
        name, scenario = run.data_key[0], run.point.scenario
        if name not in self._known:
            agents = scenario.task.extent(self._files).agents
            self._known[name] = agents, expected_bytes(scenario, self._files, self._resolve)
        return self._known[name]


def _disk(run: Run, agents: int) -> float:
    """Bytes that a run writes, without its trace where nobody knows how often it is recorded."""
    scenario = run.point.scenario
    stop, record, activations = scenario.stop, scenario.record, wake_ups(scenario, agents)
    lasting = stop.time if stop.time is not None else activations / agents
    samples = lasting / record.every if record.every is not None else activations / (record.activations or 1)
    rows = (1 + samples) * 3 * len(scenario.traced()) if math.isfinite(samples) else 0.0
    return FOLDER_BYTES + len(json_text(scenario.resolved())) + AGENT_BYTES * agents + ROW_BYTES * rows


def _there(experiment: Experiment, runs: Sequence[Run]) -> list[bool]:
    store = Store(experiment.folder)
    if not store.index():
        return [False] * len(runs)
    return [is_there(experiment, run, experiment.run_id(run)) for run in runs]


def _runs(stage: Estimate) -> str:
    alike = "" if stage.distinct == stage.runs else f", {stage.distinct} of them different"
    return f"{counted(stage.runs, 'run')}{alike}; {stage.there} are there, {stage.distinct - stage.there} to run"


def _needs(stages: Sequence[Estimate], held: int, processes: int) -> str:
    each = "" if processes == 1 else f" in each of {processes} processes"
    memory, disk = max(stage.memory for stage in stages), sum(stage.disk for stage in stages)
    return f"memory about {in_bytes(memory + held)}{each}; disk about {in_bytes(disk)}"
