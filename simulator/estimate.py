"""What an experiment will need, before it is run: time, memory and disk, from short probes of a few of its runs.

Every protocol is probed at the first point of the grid and, along every axis that concerns it, at the last place and
the middle one. Elsewhere cost is taken to be a product of one factor per axis, each a power of the axis's value (or,
where values are no increasing positive numbers, interpolated between places), so a grid of any size takes a few probes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
from numpy.typing import NDArray

from .experiment import Experiment, Jobs, Run
from .experiment.attempts import is_there
from .experiment.plan import plan
from .graphs import describe, graph_line
from .language.loading import GridPoint
from .language.sweeps import Axis
from .probes import Cost, Enough, probe
from .storage.files import json_text
from .storage.store import Store
from .tuning import settled, trial_experiment
from .world import World

if TYPE_CHECKING:
    from rich.console import Console

PROBE_SECONDS = 1.0
"""How long the slowest probe may go on; less if there are many."""
ALL_PROBES_SECONDS = 20.0


@dataclass(frozen=True)
class Estimate:
    """What a stage of an experiment (its trials, or its reported runs) takes.

    Parameters
    ----------
    runs, distinct, there : int
        Runs, those that differ from each other, and how many of these need not be run any more.
    total : Cost
        Of all that is still to be run, data included in ``seconds``; the largest memory of one of them.
    longest : float
        Seconds of the longest run.
    """

    runs: int
    distinct: int
    there: int
    total: Cost
    longest: float

    def wall_seconds(self, processes: int) -> float:
        """How long so many processes are busy with it."""
        return max(self.total.seconds / processes, self.longest)


def print_estimate(experiment: Experiment, console: Console, jobs: Jobs = 1) -> None:
    """Print what would be run and an estimate of its time, memory and disk.

    Parameters
    ----------
    experiment : Experiment
    console : rich.console.Console
    jobs : int or "auto"
        Processes that will share the work.
    """
    from dask.system import cpu_count

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
        _needs([stage for _, stage in stages], processes),
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def estimate(experiment: Experiment, enough: Callable[[int], Enough] | None = None) -> Estimate:
    """Estimate what an experiment's runs take, from probes.

    Parameters
    ----------
    experiment : Experiment
    enough : callable, optional
        Given the number of probes, what decides at a record instant that one has seen enough; by default time.
    """
    runs = list(experiment.runs())
    queue = plan(experiment, runs)
    there = _there(experiment, [planned.run for planned in queue])
    todo = [planned.run for planned, done in zip(queue, there, strict=True) if not done]
    costs = []
    if todo:
        with TemporaryDirectory() as scratch:
            model = _costs(replace(experiment, out=Path(scratch)), enough or _in_time)
        costs = [model(run) for run in todo]
    if not costs:
        return Estimate(len(runs), len(queue), len(queue), Cost(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.0)
    table = np.array([cost.as_array() for cost in costs])
    sums = Cost(*table.sum(axis=0).tolist())
    data = sum({run.data_key: cost.data_seconds for run, cost in zip(todo, costs, strict=True)}.values())
    total = Cost(sums.seconds + data, data, sums.activations, sums.rows, sums.disk, float(table[:, -1].max()))
    return Estimate(len(runs), len(queue), sum(there), total, max(cost.seconds for cost in costs))


def _there(experiment: Experiment, runs: Sequence[Run]) -> list[bool]:
    store = Store(experiment.folder)
    if not store.index():
        return [False] * len(runs)
    return [is_there(experiment, run, experiment.run_id(run)) for run in runs]


def _costs(experiment: Experiment, enough: Callable[[int], Enough]) -> Callable[[Run], Cost]:
    """The cost of any run, from probes of a few."""
    points, axes = list(experiment.loaded.points), _axes(experiment)
    shape = tuple(len(axis.places) for axis in axes)
    ranks = dict(zip((id(point) for point in points), product(*map(range, shape)), strict=True))
    keys = list(dict.fromkeys(key for point in points for key in point.scenario.protocols))
    places = [_probed(length) for length in shape]
    number = len(keys) * (1 + sum(len(probed) - 1 for probed in places))
    models = {key: _Model(experiment, key, points, axes, places, enough(number)) for key in keys}
    return lambda run: models[run.protocol].cost(ranks[id(run.point)])


def _axes(experiment: Experiment) -> list[Axis]:
    """The axes of a grid; trials are an axis, too."""
    loaded = experiment.loaded
    names = list(dict.fromkeys(name for point in loaded.points for name in point.values))
    columns = {name: list(dict.fromkeys(point.values[name] for point in loaded.points)) for name in names}
    return [Axis(name, values, []) for name, values in columns.items()]


def _probed(length: int) -> list[int]:
    """Places of an axis that are probed."""
    return sorted({0, length // 2, length - 1})


class _Model:
    """Costs of one protocol's runs: a factor per axis."""

    def __init__(
        self,
        experiment: Experiment,
        key: str,
        points: Sequence[GridPoint],
        axes: Sequence[Axis],
        places: Sequence[Sequence[int]],
        enough: Enough,
    ) -> None:
        self.axes, strides = axes, np.cumprod([1, *[len(axis.places) for axis in axes[:0:-1]]])[::-1]
        base = _run(points[0], key)
        probe(experiment, base, lambda world: world.activations > 0)  # so that compiling is not counted
        self.base = probe(experiment, base, enough).as_array()
        known = {_identity(base): self.base}
        self.factors: list[tuple[Sequence[int], NDArray[np.float64]]] = []
        for axis in range(len(axes)):
            found = []
            for place in places[axis]:
                run = _run(points[place * int(strides[axis])], key)
                if _identity(run) not in known:
                    known[_identity(run)] = probe(experiment, run, enough).as_array()
                found.append(known[_identity(run)])
            self.factors.append((places[axis], np.log(np.maximum(found, 1e-9) / np.maximum(self.base, 1e-9))))

    def cost(self, ranks: Sequence[int]) -> Cost:
        """The cost at a grid point, by its place on every axis."""
        exponent = np.zeros_like(self.base)
        for axis, rank, (places, logs) in zip(self.axes, ranks, self.factors, strict=True):
            scale = _scale(axis.places)
            exponent += [np.interp(scale[rank], scale[list(places)], column) for column in logs.T]
        return Cost(*(self.base * np.exp(exponent)).tolist())


def _scale(values: Sequence[Any]) -> NDArray[np.float64]:
    """Places of an axis on a line: logarithms of increasing positive numbers, else ranks."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) and value > 0 for value in values)
    if numbers and list(values) == sorted(values):
        return np.log(np.array(values, dtype=np.float64))
    return np.arange(len(values), dtype=np.float64)


def _run(point: GridPoint, key: str) -> Run:
    label, data, run = point.scenario.seed_pairs()[0]
    return Run(point, key, label, data, run)


def _identity(run: Run) -> str:
    scenario = run.point.scenario
    return json_text(
        [scenario.model_dump(mode="json", exclude={"protocols"}), scenario.protocols[run.protocol].model_dump()]
    )


def _in_time(probes: int) -> Enough:
    limit = min(PROBE_SECONDS, ALL_PROBES_SECONDS / probes)
    began: dict[int, float] = {}

    def enough(world: World) -> bool:
        return time.perf_counter() - began.setdefault(id(world), time.perf_counter()) > limit

    return enough


def _runs(stage: Estimate) -> str:
    alike = "" if stage.distinct == stage.runs else f", {stage.distinct} of them different"
    return f"{_count(stage.runs, 'run')}{alike}; {stage.there} are there, {stage.distinct - stage.there} to run"


def _needs(stages: Sequence[Estimate], processes: int) -> str:
    seconds = sum(stage.wall_seconds(processes) for stage in stages)
    work = sum(stage.total.seconds for stage in stages)
    memory = max(stage.total.memory for stage in stages) + psutil.Process().memory_info().rss
    shared = "" if processes == 1 else f" in {processes} processes ({_duration(work)} of work)"
    each = "" if processes == 1 else " a process"
    return (
        f"estimated from short probes: time about {_duration(seconds)}{shared}; memory about {memory / 2**20:.0f} MiB"
        f"{each}; disk about {sum(stage.total.disk for stage in stages) / 2**20:.1f} MiB"
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
