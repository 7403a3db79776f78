"""Recorder of metrics over time, in tidy rows; they are computed from read-only views and never change a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import fields, replace
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
from ...agents.tasks.task import Task
from ...protocols.user_files import is_file
from ..metrics import METRICS, Metric, Reading
from ..metrics.metric import traced_by
from ..metrics.own_metrics import shown_as
from ..metrics.trace import KINDS, ROW, Row
from ..tables.tallies import MESSAGES, SENT_BYTES, VECTORS
from ..world.world import World
from .invariant_check import InvariantCheck
from .objective_reading import ObjectiveReading
from .own_numbers import number_of
from .quantities import quantities
from .snapshot import OwnMetric, Snapshot

EXPLOSION = 1e6
"""A run whose objective exceeds its start by this factor has diverged."""


Rows = Iterator[tuple[str, str, float]]
"""(metric, statistic, value)."""


class Recorder:
    """Samples a run at its record instants.

    Parameters
    ----------
    metrics : sequence of str
        From `hushnet.simulator.metrics.recordable`.
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
        own: Mapping[str, OwnMetric] | None = None,
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
        self._asked = [METRICS[name] for name in dict.fromkeys(traced_by(self.metrics))]
        self._rows: list[Row] = []
        self._last: tuple[float, int] | None = None
        self._reading: ObjectiveReading | None = None
        self._value: float | None = None
        self._first_objective: float | None = None
        self._kept: dict[str, Any] = {}
        self._shown: tuple[Task, Graph] | None = None

    def sample(self, world: World, *, final: bool) -> None:
        """Measure the world as it is now; the final sample replaces one at the same instant.

        Raises
        ------
        Divergence
            When the objective has exploded; never of a private run, for the objective is computed from raw data.
        """
        instant = (world.now, world.activations)
        if final and instant == self._last:
            self._rows = [row for row in self._rows if (row[0], row[1]) != instant]
        self._last = instant
        if not final:
            self.samples += 1
        self._take(world, self._measure(world, final=final))
        self.invariants = self.invariants or InvariantCheck(world)
        self.invariants.look(world)
        if self.on_sample:
            self.on_sample(world)
        self._judge_objective(world)

    def trace(self) -> pd.DataFrame:
        """Tidy rows: protocol, seed, time, activations, messages, vectors, bytes, metric, statistic, value."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(ROW)
        parts = zip(ROW, KINDS, columns, strict=True)
        frame = pd.DataFrame({name: np.array(own, dtype=kind) for name, kind, own in parts})
        frame.insert(0, "protocol", self.protocol)
        frame.insert(1, "seed", self.seed)
        return frame

    def shown_as(self) -> dict[str, dict[str, Any]]:
        """Return labels, units and directions of a user's own metrics, for the manifest."""
        return shown_as([*self.own, *(metric.name for metric in self._asked if is_file(metric.name))])

    def measures(self, world: World) -> dict[str, dict[str, Any]]:
        """Return the quantities that the recorded metrics measure, by name, for the manifest."""
        objective = None if self._reading is None else self._reading.objective
        reading = self._look(world, final=True)
        found = quantities(reading, self._asked, self.own, objective)
        return {name: quantity.as_dict() for name, quantity in found.items()}

    def baselines(self, world: World) -> dict[str, dict[str, float]]:
        """Values of predictions without learning, by metric and name; of the objective the gap of the zero model."""
        task = world.setting.task
        known = [metric for metric in self._asked if metric.baselines and _concerns(metric, task)]
        found = {metric.name: dict(metric.baselines(task)) for metric in known if metric.baselines}
        if self._reading is not None and self._reading.objective.has_minimum:
            gap = self._reading.objective.value(np.zeros((task.agents, task.dimension))) - self._minimum(self._reading)
            found["objective"] = {task.zero_is: float(gap)}
        return {metric: values for metric, values in found.items() if values and np.isfinite([*values.values()]).all()}

    def agents(self, world: World) -> pd.DataFrame:
        """Final rows per agent: samples, degree, and its value of the metrics that have one per agent.

        Where the task has them the agent's place, its samples of each of more than two classes, and its model where
        that is one number.
        """
        task, graph = world.setting.task, world.setting.graph
        reading = self._look(world, final=True)
        columns = {
            "protocol": self.protocol,
            "seed": self.seed,
            "agent": [str(name) for name in task.ids],
            "samples": task.train.counts,
            "degree": graph.degrees,
        }
        if world.attackers is not None:
            columns["role"] = np.where(world.honest, "honest", "byzantine")
        names = task.notes.get("labels", {})
        for number in range(task.classes if task.classes > 2 else 0):
            own = task.train.sums((task.train.labels == number).astype(np.float64))
            columns[f"samples_of_{names.get(str(number), number)}"] = own.astype(np.int64)
        for metric in METRICS.values():
            always = metric.unasked or (metric.criterion and reading.models is not None)
            if metric.per_agent is not None and _concerns(metric, task) and (always or metric in self._asked):
                columns[metric.name] = metric.per_agent(reading)
        frame = pd.DataFrame(columns)
        if reading.models is not None and reading.models.shape[1] == 1:
            frame["model"] = reading.models[:, 0]
        if task.places is not None:
            frame["place_x"], frame["place_y"] = np.asarray(task.places, dtype=np.float64).T
        return frame

    def _look(self, world: World, *, final: bool) -> Reading:
        """Return the view of the run that metrics may read now."""
        models = world.protocol.models(world.state)
        if models is not None:
            models = models.view()
            models.flags.writeable = False
        few = final or self.samples & (self.samples - 1) == 0
        return Reading(world, models, self.delta_of(world), few, self._kept)

    def delta_of(self, world: World) -> float:
        """Delta at which a run's epsilons are read: its protocol's own, if it has one."""
        privacy = world.protocol.privacy
        return self.delta if privacy is None else privacy.reported_delta

    def _take(self, world: World, rows: Rows) -> None:
        """Append rows, one by one, with where the run is."""
        counts = world.transport.tables.counts[[MESSAGES, VECTORS, SENT_BYTES]].tolist()
        head = world.now, world.activations, *counts
        for metric, statistic, value in rows:
            self._rows.append((*head, metric, statistic, value))

    def _measure(self, world: World, *, final: bool) -> Rows:
        """All metrics now."""
        reading = self._look(world, final=final)
        models, task = reading.models, world.setting.task
        for metric in self._asked:
            if not _concerns(metric, task):
                raise InputError(
                    f"the task {task.name!r} is judged by {task.metric}, not by {metric.name}",
                    field=("record", "metrics"),
                )
            if metric.compute is None:
                yield from self._objective(world, models)
            else:
                for statistic, value in metric.compute(reading):
                    yield metric.name, statistic, number_of(value, metric.name, statistic, metric.compute)
        if self.own:
            yield from self._own(world, models)

    def _objective(self, world: World, models: NDArray[np.float64] | None) -> Rows:
        if self._reading is None:
            objective = self.objective or world.protocol.objective()
            if objective is not None and world.attackers is not None:
                objective = objective.over(world.honest)
                if objective is None:
                    self._warn("its objective has no part of honest agents alone, so none is recorded")
            if objective is None or models is None:
                return
            self._reading = ObjectiveReading(objective, world)
        assert models is not None
        self._value = value = self._reading.value(models)
        yield "objective", "value", value
        if self._reading.objective.has_minimum:
            yield "objective", "gap", value - self._minimum(self._reading)

    def _minimum(self, reading: ObjectiveReading) -> float:
        """The objective's minimum; in a private run NaN where rows are too extreme to find it."""
        try:
            minimum = cached_minimum(reading.objective, self.cache_dir)[1]
            reading.check(minimum)
        except (ArithmeticError, np.linalg.LinAlgError, Inconsistency, InputError):
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

    def _judge_objective(self, world: World) -> None:
        """See that the last sample's objective, if there is one, has not exploded."""
        value = self._value
        if value is None:
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
            worst = self._worst_agent(world)
            grew = f"grew from {self._first_objective:.6g} to {value:.6g} after {world.activations} activations"
            began = np.isfinite(self._first_objective)
            raise Divergence(
                f"agent {worst!r} at time {world.now:.6g}: model has exploded; the objective "
                f"{grew if began else f'is {value:.6g} at the start'}; take smaller steps or less noise"
            )

    def _worst_agent(self, world: World) -> int | str:
        models = world.protocol.models(world.state)
        assert models is not None
        return world.setting.task.ids[int(np.argmax(np.abs(models).max(axis=1)))]

    def _own(self, world: World, models: NDArray[np.float64] | None) -> Rows:
        if self._shown is None:
            self._shown = _read_only(world.setting.task), _read_only(world.setting.graph)
        snapshot = Snapshot(world.now, world.activations, models, *self._shown, _frozen(world.state), world.honest)
        for name, function in self.own.items():
            result = function(snapshot)
            values = result if isinstance(result, Mapping) else {"value": result}
            for statistic, value in values.items():
                yield name, statistic, number_of(value, name, statistic, function)


def _concerns(metric: Metric, task: Task) -> bool:
    """True if a metric concerns this task: of the criteria by which tasks are judged, only the task's own does."""
    return not metric.criterion or metric.name == task.metric


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
