"""What an experiment will need, before it is run, counted from its scenario: events, memory and disk; nothing is run.

Events are wake-ups, and the messages of protocols that say how many they send
(`hushnet.protocols.base.Protocol.least_sent`). How long all takes nobody knows before some of it has been run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..limits.events import Degrees, least_events
from ..limits.memory import expected_bytes
from ..network.graphs import describe, graph_line
from ..storage.files import json_text
from ..storage.store import Store
from ..world.machine import size as in_bytes
from ..world.machine import used_memory
from .plan import Experiment, Run, naming_fields, plan
from .run_once import is_there
from .tuning import settled, trial_experiment
from .workers import Jobs

if TYPE_CHECKING:
    from rich.console import Console

FOLDER_BYTES = 8_000
"""Bytes of a run's folder, besides its trace and the scenario in its manifest."""
AGENT_BYTES = 100
"""Bytes of an agent's rows in a run's folder."""
ROW_BYTES = 12
"""A row of a trace."""


@dataclass(frozen=True)
class Cost:
    """What a run takes, or several take.

    Parameters
    ----------
    events : float
        Wake-ups and the messages that are known of, if nobody falls silent before the end.
    rows : float
        Of traces; until the time is up where that ends the runs, and else by the events that are known of.
    disk, memory : float
        Bytes written, and bytes held by the largest run.
    """

    events: float = 0.0
    rows: float = 0.0
    disk: float = 0.0
    memory: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.events + other.events,
            self.rows + other.rows,
            self.disk + other.disk,
            max(self.memory, other.memory),
        )


@dataclass(frozen=True)
class Estimate:
    """What a stage of an experiment (its trials, or its reported runs) takes.

    Parameters
    ----------
    runs, distinct, there : int
        Runs, those that differ from each other, and how many of these need not be run any more.
    total : Cost
        Of all that is still to be run.
    largest : float
        Events of the run that has most.
    """

    runs: int
    distinct: int
    there: int
    total: Cost
    largest: float


def print_estimate(experiment: Experiment, console: Console, jobs: Jobs = 1) -> None:
    """Print what would be run and an estimate of its events, memory and disk.

    Parameters
    ----------
    experiment : Experiment
    console : rich.console.Console
    jobs : int or "auto"
        Processes that will share the work.
    """
    from dask.system import cpu_count

    held = used_memory()  # before there are data, which a run's memory has in it
    stages, processes = [], cpu_count() if jobs == "auto" else jobs
    trials = trial_experiment(experiment)
    if trials is not None:
        stages.append(("tuning: ", estimate(trials)))
        experiment = settled(experiment) if stages[0][1].there == stages[0][1].distinct else experiment
    stages.append(("", estimate(experiment)))
    scenario, first = experiment.loaded.scenario, next(experiment.runs())
    task, graph = experiment.data(first)
    lines = [
        f"{scenario.scenario}: {_count(len(scenario.protocols), 'protocol')}, "
        f"{_count(len(experiment.loaded.points), 'grid point')}, {_count(len(scenario.seed_pairs()), 'seed')}; "
        "nothing was run or written",
        *(f"{name}{_runs(stage)}" for name, stage in stages),
        f"task: {task.name}, {task.agents} agents, dimension {task.dimension}, {len(task.train.labels)} training rows",
        graph_line(describe(graph)),
        *forms(experiment),
        _needs([stage for _, stage in stages], held, processes),
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def forms(experiment: Experiment) -> list[str]:
    """Which engine will run each protocol's first run, in which form its steps, and why.

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
    costs, sizes = [], _Sizes(experiment)
    for run in todo:
        costs.append(cost_of(experiment, run, *sizes(run)))
    return Estimate(len(runs), len(queue), sum(there), sum(costs, Cost()), max((c.events for c in costs), default=0.0))


def costs_of_runs(experiment: Experiment, runs: Sequence[Run]) -> list[Cost]:
    """What each run takes, about, told from its scenario alone."""
    sizes = _Sizes(experiment)
    return [cost_of(experiment, run, *sizes(run)) for run in runs]


def cost_of(experiment: Experiment, run: Run, agents: int, edges: float, memory: int) -> Cost:
    """What a run takes, of so many agents and undirected edges."""
    scenario = run.point.scenario
    parameters, stop, record = scenario.protocols[run.protocol], scenario.stop, scenario.record
    each = int(2 * edges / agents)
    degrees = Degrees(2 * edges, each, each)
    events = least_events(
        scenario, experiment.loaded.code.protocol(parameters.kind), parameters, agents, degrees, sure=0.0
    )
    wakes = scenario.clock.wakes(math.inf if stop.time is None else stop.time, agents).expected
    activations = min(wakes, *(math.inf if n is None else n for n in (stop.activations, _times(stop.updates, agents))))
    if math.isfinite(activations):
        events = max(events, activations)
    lasting = stop.time if stop.time is not None else activations / agents
    samples = lasting / record.every if record.every is not None else activations / (record.activations or 1)
    rows = (1 + samples) * 3 * len(scenario.traced()) if math.isfinite(samples) else 0.0
    manifest = len(json_text(scenario.resolved()))
    disk = FOLDER_BYTES + manifest + AGENT_BYTES * agents + ROW_BYTES * rows
    return Cost(events, rows, disk, memory)


class _Sizes:
    """Agents, edges and memory of a run, counted once for all that have the same data."""

    def __init__(self, experiment: Experiment) -> None:
        self.files, self.resolve = experiment.files, experiment.loaded.code.protocol
        self._known: dict[str, tuple[int, float, int]] = {}

    def __call__(self, run: Run) -> tuple[int, float, int]:
        name, scenario = run.data_key[0], run.point.scenario
        if name not in self._known:
            extent = scenario.task.extent(self.files)
            edges = scenario.topology.expected_edges(extent, self.files)
            memory = expected_bytes(scenario, self.files, self.resolve)
            self._known[name] = (extent.agents, edges, memory)
        return self._known[name]


def _times(count: int | None, agents: int) -> int | None:
    return None if count is None else count * agents


def _there(experiment: Experiment, runs: Sequence[Run]) -> list[bool]:
    store = Store(experiment.folder)
    if not store.index():
        return [False] * len(runs)
    return [is_there(experiment, run, experiment.run_id(run)) for run in runs]


def _runs(stage: Estimate) -> str:
    alike = "" if stage.distinct == stage.runs else f", {stage.distinct} of them different"
    return f"{_count(stage.runs, 'run')}{alike}; {stage.there} are there, {stage.distinct - stage.there} to run"


def _needs(stages: Sequence[Estimate], held: int, processes: int) -> str:
    total = sum((stage.total for stage in stages), Cost())
    largest = max(stage.largest for stage in stages)
    each = "" if processes == 1 else f" in each of {processes} processes"
    return (
        f"estimated from counts: about {total.events:,.0f} events (wake-ups and messages), {largest:,.0f} in "
        f"the largest run; memory about {in_bytes(total.memory + held)}{each}; disk about "
        f"{in_bytes(total.disk)}"
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
