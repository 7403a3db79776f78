"""What is measured over time: tidy rows, computed from read-only views, never changing a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...agents.blocks import State
from ...agents.errors import Divergence, Inconsistency, InputError
from ...agents.graph import Graph
from ...agents.objectives.minima import cached_minimum
from ...agents.objectives.objectives import Objective
from ...agents.tables import Table
from ...agents.tasks.base import Task
from ..world.world import World
from . import measures
from .invariant_check import InvariantCheck
from .measures import Rows
from .objective_reading import ObjectiveReading
from .quantities import quantities
from .trivial import trivial

EXPLOSION = 1e6
"""A run whose objective exceeds its start by this factor has diverged."""


@dataclass(frozen=True)
class Snapshot:
    """What a metric may look at; every array is read-only.

    Parameters
    ----------
    now : float
        Time in expected wake-ups of a rate-1 agent.
    activations : int
        Steps of all agents so far.
    models : (n, p) float64 or None
    task : Task
    graph : Graph
    state : State
        Copies of all blocks.
    """

    now: float
    activations: int
    models: NDArray[np.float64] | None
    task: Task
    graph: Graph
    state: State


Metric = Callable[[Snapshot], float | Mapping[str, float]]
"""A user's own metric: one number, or numbers by statistic."""


class Recorder:
    """Samples a run at its record instants.

    Parameters
    ----------
    metrics : sequence of str
        From `hushnet.simulator.language.scenario.METRICS`.
    own : mapping of str to callable
        A user's own metrics by name.
    objective : Objective, optional
        What is measured as objective; the protocol's own by default.
    delta : float
        Where epsilon is read, for protocols that have no delta of their own.
    cache_dir : Path, optional
        Where exact minima are kept between processes.
    protocol, seed : str, int
        Labels of the rows.
    on_sample : callable, optional
        Called with the world after every sample, for progress.

    Attributes
    ----------
    invariants : InvariantCheck or None
        Whether the run keeps what its protocol says that it keeps; None before the first sample.
    warnings : list of str
        What went wrong with what was measured and did not end the run.
    """

    def __init__(
        self,
        metrics: tuple[str, ...] | list[str],
        *,
        own: Mapping[str, Metric] | None = None,
        objective: Objective | None = None,
        delta: float = 1e-5,
        cache_dir: Path | None = None,
        protocol: str = "",
        seed: int = 0,
        on_sample: Callable[[World], None] | None = None,
    ) -> None:
        self.metrics, self.own, self.objective = tuple(metrics), dict(own or {}), objective
        self.delta, self.cache_dir, self.protocol, self.seed = delta, cache_dir, protocol, seed
        self.samples, self.on_sample = 0, on_sample
        self.invariants: InvariantCheck | None = None
        self.warnings: list[str] = []
        self._rows: list[tuple[float, int, int, int, int, str, str, float]] = []
        self._last: tuple[float, int] | None = None
        self._reading: ObjectiveReading | None = None
        self._unfinished: int | None = None
        self._first_objective: float | None = None
        self._bins: tuple[list[str], NDArray[np.int64]] | None = None
        self._shown: tuple[Task, Graph] | None = None

    def sample(self, world: World, *, final: bool) -> None:
        """Measure the world as it is now; the final sample replaces one at the same instant.

        Raises
        ------
        Divergence
            When the objective has exploded; never of a private run, for the objective is computed from raw data.
        """
        self._finish_objective(world)
        instant = (world.now, world.activations)
        if final and instant == self._last:
            self._rows = [row for row in self._rows if (row[0], row[1]) != instant]
        self._last = instant
        if not final:
            self.samples += 1
        traffic = world.traffic
        head = (world.now, world.activations, traffic.messages, traffic.vectors, traffic.bytes.sent)
        for metric, statistic, value in self._measure(world, final=final):
            self._rows.append((*head, metric, statistic, float(value)))
        self.invariants = self.invariants or InvariantCheck(world)
        self.invariants.look(world)
        if self.on_sample:
            self.on_sample(world)
        if final or (self._reading and self._reading.finished):
            self._finish_objective(world)

    def trace(self) -> pd.DataFrame:
        """Tidy rows: protocol, seed, time, activations, messages, vectors, bytes, metric, statistic, value."""
        self._fill_in_objective()
        columns = ["time", "activations", "messages", "vectors", "bytes", "metric", "statistic", "value"]
        frame = pd.DataFrame(self._rows, columns=columns)
        frame.insert(0, "protocol", self.protocol)
        frame.insert(1, "seed", self.seed)
        return frame

    def measures(self, world: World) -> dict[str, dict[str, Any]]:
        """What the recorded metrics measure, by name, for the manifest."""
        objective = None if self._reading is None else self._reading.objective
        found = quantities(world, self.metrics, self.own, objective, self._delta(world))
        return {name: quantity.as_dict() for name, quantity in found.items()}

    def baselines(self, world: World) -> dict[str, dict[str, float]]:
        """What predictions without learning come to, by metric and name; of the objective the gap of the zero model."""
        task = world.setting.task
        found = trivial(task, self.metrics)
        if self._reading is not None:
            gap = self._reading.objective.value(np.zeros((task.agents, task.dimension))) - self._minimum(self._reading)
            found["objective"] = {task.zero_is: float(gap)}
        return {metric: known for metric, known in found.items() if np.isfinite(list(known.values())).all()}

    def agents(self, world: World) -> pd.DataFrame:
        """Final rows per agent: samples, degree, updates, mean age of what it knows, its metric and both epsilons.

        Where the task has them the agent's place, and its model where that is one number.
        """
        task, graph = world.setting.task, world.setting.graph
        delta = self._delta(world)
        frame = pd.DataFrame(
            {
                "protocol": self.protocol,
                "seed": self.seed,
                "agent": [str(name) for name in task.ids],
                "samples": task.train.counts,
                "degree": graph.degrees,
                "updates": world.updates,
            }
        )
        ages = measures.ages(world)
        heard = ~np.isnan(ages)
        counts = np.bincount(graph.tails[heard], minlength=graph.agents)
        sums = np.bincount(graph.tails[heard], weights=ages[heard], minlength=graph.agents)
        frame["age"] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        models = world.protocol.models(world.state)
        if models is not None:
            frame[task.metric] = measures.quality(task, models)
            if models.shape[1] == 1:
                frame["model"] = models[:, 0]
        frame["epsilon_claimed"] = world.ledger.epsilon("claimed", delta)
        frame["epsilon_verified"] = world.ledger.epsilon("verified", delta)
        if task.places is not None:
            frame["place_x"], frame["place_y"] = np.asarray(task.places, dtype=np.float64).T
        return frame

    def _measure(self, world: World, *, final: bool) -> Rows:
        models = world.protocol.models(world.state)
        if models is not None:
            models = models.view()
            models.flags.writeable = False
        for metric in self.metrics:
            if metric == "objective":
                yield from self._objective(world, models)
            elif metric in ("accuracy", "rmse", "mse"):
                yield from self._quality(world, metric, models)
            elif metric == "training_loss" and models is not None:
                yield from measures.training_loss(world, models)
            elif metric == "test_loss" and models is not None:
                yield from measures.test_loss(world, models)
            elif metric == "epsilon":
                yield from self._epsilon(world, final=final)
            elif metric == "traffic":
                yield from measures.traffic(world)
            elif metric == "age":
                yield from measures.age(world)
            elif metric == "updates":
                yield from measures.updates(world)
            elif metric == "conserved":
                for name, distance in world.protocol.conserved(world.state).items():
                    yield "conserved", name, distance
        if self.own:
            yield from self._own(world, models)

    def _objective(self, world: World, models: NDArray[np.float64] | None) -> Rows:
        if self._reading is None:
            objective = self.objective or world.protocol.objective()
            if objective is None or models is None:
                return
            self._reading = ObjectiveReading(objective, world)
        assert models is not None
        self._reading.begin(models)
        self._unfinished = len(self._rows)
        yield "objective", "value", np.nan
        yield "objective", "gap", np.nan

    def _fill_in_objective(self) -> float | None:
        """Complete the two rows of the last sample's objective, if they are open; its value."""
        if self._unfinished is None or self._reading is None:
            return None
        value, place = self._reading.value(), self._unfinished
        minimum = self._minimum(self._reading)
        for row, number in ((place, value), (place + 1, value - minimum)):
            self._rows[row] = (*self._rows[row][:7], number)
        self._unfinished = None
        return value

    def _minimum(self, reading: ObjectiveReading) -> float:
        """The objective's minimum; in a private run NaN where rows are too extreme to find it."""
        try:
            minimum = cached_minimum(reading.objective, self.cache_dir)[1]
            reading.check(minimum)
        except (ArithmeticError, np.linalg.LinAlgError, Inconsistency):
            if not reading.world.private:
                raise
            self._warn(
                "the minimum of the objective cannot be computed from these data, so gaps are not to be relied on; "
                "they come from raw data and do not end a private run"
            )
            return np.nan
        return minimum

    def _warn(self, what: str) -> None:
        sentence = f"{self.protocol or 'the protocol'}: {what}"
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def _finish_objective(self, world: World) -> None:
        """Complete the last sample's objective, and see that it has not exploded."""
        place, value = self._unfinished, self._fill_in_objective()
        if place is None or value is None:
            return
        if self._first_objective is None:
            self._first_objective = value
        limit = EXPLOSION * max(abs(self._first_objective), 1.0)
        if world.private and not (value <= limit and np.isfinite(value)):
            self._warn(
                f"the objective grew more than {EXPLOSION:g} times or was not a finite number; it is computed from raw "
                "data, so it is recorded and does not end a private run"
            )
        elif not world.private and not (np.isfinite(value) and value <= limit):
            worst, (now, activations, *_) = self._worst_agent(world), self._rows[place]
            grew = f"grew from {self._first_objective:.6g} to {value:.6g} after {activations} activations"
            began = np.isfinite(self._first_objective)
            raise Divergence(
                f"agent {worst!r} at time {now:.6g}: model has exploded; the objective "
                f"{grew if began else f'is {value:.6g} at the start'}; take smaller steps or less noise"
            )

    def _worst_agent(self, world: World) -> int | str:
        models = world.protocol.models(world.state)
        assert models is not None
        return world.setting.task.ids[int(np.argmax(np.abs(models).max(axis=1)))]

    def _quality(self, world: World, metric: str, models: NDArray[np.float64] | None) -> Rows:
        task = world.setting.task
        if metric != task.metric:
            raise InputError(
                f"the task {task.name!r} is judged by {task.metric}, not by {metric}", field=("record", "metrics")
            )
        if models is None:
            return
        values = measures.quality(task, models)
        known = np.isfinite(values) & world.started
        if not known.any():
            return
        ranked = np.sort(values[known])
        tenth = max(1, round(len(ranked) / 10))
        yield metric, "mean", ranked.mean()
        yield metric, "worst_decile", (ranked[:tenth] if metric == "accuracy" else ranked[-tenth:]).mean()
        if self._bins is None:
            self._bins = measures.size_bins(task.train.counts)
        names, places = self._bins
        counts = np.bincount(places[known], minlength=len(names))
        sums = np.bincount(places[known], weights=values[known], minlength=len(names))
        for name, count, total in zip(names, counts, sums, strict=True):
            if count:
                yield metric, name, total / count

    def _epsilon(self, world: World, *, final: bool) -> Rows:
        """Claimed epsilon always, verified at the samples 1, 2, 4, 8, ... and at the end; of protected agents."""
        delta = self._delta(world)
        few = final or self.samples & (self.samples - 1) == 0
        for which in ("claimed", "verified") if few else ("claimed",):
            values = world.ledger.epsilon(which, delta)[world.protected]
            yield f"epsilon_{which}", "worst", values.max()
            yield f"epsilon_{which}", "median", measures.quantile(values, 0.5)
            yield f"epsilon_{which}", "q90", measures.quantile(values, 0.9)

    def _delta(self, world: World) -> float:
        privacy = world.protocol.privacy
        return self.delta if privacy is None else privacy.reported_delta

    def _own(self, world: World, models: NDArray[np.float64] | None) -> Rows:
        if self._shown is None:
            self._shown = _read_only(world.setting.task), _read_only(world.setting.graph)
        snapshot = Snapshot(world.now, world.activations, models, *self._shown, _frozen(world.state))
        for name, function in self.own.items():
            result = function(snapshot)
            values = result if isinstance(result, Mapping) else {"value": result}
            for statistic, value in values.items():
                yield name, statistic, float(value)


Shared = TypeVar("Shared", Task, Graph, Table)
"""Data and graph, which all runs of a seed have in common."""


def _read_only(shared: Shared) -> Shared:
    """The same task, graph or table, whose arrays nobody can write through it."""
    shown: dict[str, Any] = {}
    for field in fields(shared):
        value = getattr(shared, field.name)
        if isinstance(value, Table):
            shown[field.name] = _read_only(value)
        elif isinstance(value, np.ndarray):
            shown[field.name] = value.view()
            shown[field.name].flags.writeable = False
    return replace(shared, **shown)


def _frozen(state: State) -> State:
    frozen = State(0, 0, {}, {})
    for mine, theirs in ((frozen.agent, state.agent), (frozen.edge, state.edge)):
        for name, block in theirs.items():
            copied = copy(block)
            copied.values, copied.offsets = block.values.copy(), block.offsets.view()
            copied.values.flags.writeable = copied.offsets.flags.writeable = False
            mine[name] = copied
    return frozen
