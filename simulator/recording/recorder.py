"""Recorder of metrics over time, in tidy rows; they are computed from read-only views and never change a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...agents.blocks import State, real
from ...agents.errors import Divergence, Inconsistency, InputError
from ...agents.graph import Graph
from ...agents.losses.cross_entropy import class_names
from ...agents.objectives.minima import cached_minimum
from ...agents.objectives.objectives import Objective
from ...agents.tables import Table
from ...agents.tasks.task import Task
from ...protocols.user_files import is_file
from ..metrics import METRICS, Metric, Reading
from ..metrics.metric import traced_by
from ..metrics.own_metrics import shown_as
from ..metrics.trace import HEAD, KINDS, ROW
from ..tables import tallies
from ..world.step_form import Rewind
from ..world.world import World
from .invariant_check import InvariantCheck
from .objective_reading import ObjectiveReading
from .own_numbers import number_of
from .quantities import quantities
from .snapshot import OwnMetric, Snapshot

EXPLOSION = 1e6
"""A run whose objective exceeds its start by this factor has diverged."""
MOST_BYTES, MOST_ROWS = 2**22, 2**18
"""Bytes of models, and rows of data, that are read at once."""
DELTA = 1e-5
"""At which epsilons of protocols are read that have no delta of their own."""

Head = tuple[float, int, int, float, int]
Rows = list[tuple[str, str, float]]
"""(metric, statistic, value)."""


class Recorder:
    """Samples a run at its record instants.

    It measures the objective that it is given, or else the protocol's own; exact minima are kept in a folder between
    processes. At most ``together`` instants' models, one unless it is set, are measured at once, when the last of them
    is over. If the objective turns out to have exploded before, the run has to be made again, with a recorder of one.

    Its ``invariants`` tell whether the run keeps what its protocol says that it keeps, None before the first sample;
    its ``warnings`` are what went wrong with what was measured and did not end the run.
    """

    def __init__(
        self,
        metrics: tuple[str, ...] | list[str],
        *,
        own: Mapping[str, OwnMetric] | None = None,
        objective: Objective | None = None,
        cache_dir: Path | None = None,
        protocol: str = "",
        seed: int = 0,
        on_sample: Callable[[World], None] | None = None,
    ) -> None:
        self.metrics, self.own, self.objective = tuple(metrics), dict(own or {}), objective
        self.cache_dir, self.protocol, self.seed = cache_dir, protocol, seed
        self.samples, self.on_sample, self.together = 0, on_sample, 1
        self.invariants: InvariantCheck | None = None
        self.warnings: list[str] = []
        self._asked = [METRICS[name] for name in dict.fromkeys(traced_by(self.metrics))]
        self._measured: list[tuple[Head, Rows]] = []
        self._last: tuple[float, int] | None = None
        self._reading: ObjectiveReading | None = None
        self._first_objective: float | None = None
        self._least = np.nan
        self._waiting: list[_Instant] = []
        self._together: list[Reading] = []
        self._kept: dict[str, Any] = {}
        self._shown: tuple[Task, Graph] | None = None

    def sample(self, world: World, *, final: bool) -> None:
        """Measure the world as it is now; the final sample replaces one at the same instant.

        Raises `Divergence` when the objective has exploded, never of a private run, for the objective is computed from
        raw data; `Rewind` if it had at an earlier instant.
        """
        if final:
            self.catch_up(world)
        if self.invariants is None:
            self._check_concern(world.setting.task)
            self.invariants = InvariantCheck(world)
        instant = self._begin(world, final=final)
        if final and instant.head[:2] == self._last:
            self._measured = [(head, rows) for head, rows in self._measured if head[:2] != self._last]
        self._last = instant.head[:2]
        self._waiting.append(instant)
        self.invariants.look(world)
        try:
            if self.on_sample:
                self.on_sample(world)
        finally:
            if final or len(self._waiting) >= self._most(world):
                self._finish(world, now=instant)

    def catch_up(self, world: World) -> None:
        """Measure the models of all instants that wait for it, where the run goes on no further; raises as `sample`."""
        self._finish(world, now=None)

    def trace(self) -> pd.DataFrame:
        """Tidy rows: protocol, seed, time, activations, messages, vectors, bytes, metric, statistic, value."""
        heads = zip(*(head for head, _ in self._measured), strict=True) if self._measured else [()] * HEAD
        found = [row for _, rows in self._measured for row in rows]
        values = zip(*found, strict=True) if found else [()] * (len(ROW) - HEAD)
        counts = [len(rows) for _, rows in self._measured]
        parts = [np.array(part, dtype=kind) for part, kind in zip([*heads, *values], KINDS, strict=True)]
        parts[:HEAD] = [np.repeat(part, counts) for part in parts[:HEAD]]
        return pd.DataFrame({"protocol": self.protocol, "seed": self.seed, **dict(zip(ROW, parts, strict=True))})

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
            start = self._reading.objective.value(np.zeros((task.agents, task.dimension)))
            found["objective"] = {task.zero_is: float(start - self._least)}
        return {metric: values for metric, values in found.items() if values and np.isfinite([*values.values()]).all()}

    def agents(self, world: World) -> pd.DataFrame:
        """Final rows per agent: samples, degree, and its value of the metrics that have one per agent.

        Where the task has them the agent's place, its samples of each class, and its model where that is one number.
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
        names, of_classes = task.notes.get("labels", {}), task.classes > 2 or task.loss.labels == "classes"
        for label in class_names(task.classes) if of_classes else ():
            own = task.train.sums((task.train.labels == float(label)).astype(np.float64))
            columns[f"samples_of_{names.get(label, label)}"] = own.astype(np.int64)
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
        models, started, waits = world.protocol.models(world.state), world.started, self.together > 1 and not final
        if models is not None:
            models = real(models).copy() if waits else real(models).view()
            models.flags.writeable = False
        few = final or self.samples & (self.samples - 1) == 0
        started = started.copy() if waits else started
        return Reading(world, models, self.delta_of(world), started, few, self._kept, self._together)

    def delta_of(self, world: World) -> float:
        """Delta at which a run's epsilons are read: its protocol's own, if it has one."""
        privacy = world.protocol.privacy
        return DELTA if privacy is None else privacy.reported_delta

    def _check_concern(self, task: Task) -> None:
        """Refuse metrics by which a task is not judged."""
        for metric in self._asked:
            if not _concerns(metric, task):
                sentence = f"the task {task.name!r} is judged by {task.metric}, not by {metric.name}"
                raise InputError(sentence, field=("record", "metrics"))

    def _most(self, world: World) -> int:
        """Instants that are measured together: as many as processor caches have room for."""
        table, models = world.setting.task.train, self._waiting[0].reading.models
        size = 0 if models is None else models.nbytes
        return max(1, min(self.together, MOST_BYTES // max(size, 1), MOST_ROWS // max(len(table.labels), 1)))

    def _begin(self, world: World, *, final: bool) -> _Instant:
        """An instant, with the rows of all metrics that look at more than models."""
        if not final:
            self.samples += 1
        reading = self._look(world, final=final)
        transport, counts = world.transport, world.transport.tables.counts
        sent = int(counts[tallies.MESSAGES]), transport.vectors, int(counts[tallies.SENT_BYTES])
        instant = _Instant((world.now, world.activations, *sent), reading)
        for metric in self._asked:
            if not metric.of_models:
                instant.found[metric.name] = _computed(metric, reading)
        if self.own:
            instant.found[""] = list(self._own(world, reading.models))
        return instant

    def _finish(self, world: World, *, now: _Instant | None) -> None:
        """Measure the models of all instants that wait; the run is still at the instant ``now``."""
        waiting, self._waiting = self._waiting, []
        self._together.extend(instant.reading for instant in waiting)
        names = *(metric.name for metric in self._asked), ""
        try:
            objectives = self._objectives(world)
            for rank, instant in enumerate(waiting):
                for metric in self._asked:
                    if metric.compute is not None and metric.of_models:
                        instant.found[metric.name] = _computed(metric, instant.reading)
                    elif metric.of_models and self._reading is not None and objectives:
                        instant.found[metric.name] = self._gap(self._reading, instant, objectives[rank])
                self._measured.append((instant.head, [row for name in names for row in instant.found.get(name, ())]))
                if objectives:
                    self._judge_objective(world, instant, objectives[rank], now=instant is now)
        finally:
            self._together.clear()

    def _objectives(self, world: World) -> list[float]:
        """The objective at the models of all instants that are read together; empty where there is none."""
        asked = any(metric.compute is None and metric.of_models for metric in self._asked)
        if not asked or not self._together or self._together[0].models is None:
            return []
        if self._reading is None:
            objective = self.objective or world.protocol.objective()
            if objective is not None and world.attackers is not None:
                objective = objective.over(world.honest)
                if objective is None:
                    self._warn("its objective has no part of honest agents alone, so none is recorded")
            if objective is None:
                return []
            self._reading = ObjectiveReading(objective, world)
        return self._reading.values(self._together)

    def _gap(self, reading: ObjectiveReading, instant: _Instant, value: float) -> Rows:
        """The objective at an instant, and its gap to the minimum where that is known."""
        rows = [("objective", "value", value)]
        if reading.objective.has_minimum:
            self._least = self._minimum(reading, instant, value)
            rows.append(("objective", "gap", value - self._least))
        return rows

    def _minimum(self, reading: ObjectiveReading, instant: _Instant, value: float) -> float:
        """The objective's minimum; in a private run NaN where rows are too extreme to find it."""
        try:
            minimum = cached_minimum(reading.objective, self.cache_dir)[1]
            reading.check(value, minimum, instant.reading, instant.head[0])
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

    def _judge_objective(self, world: World, instant: _Instant, value: float, *, now: bool) -> None:
        if self._first_objective is None:
            self._first_objective = value
        limit = EXPLOSION * max(abs(self._first_objective), 1.0)
        if np.isfinite(value) and value <= limit:
            return
        if world.private:
            self._warn(
                f"the objective grew more than {EXPLOSION:g} times or was not a finite number; it is computed from raw "
                "data, so it is recorded and does not end a private run"
            )
            return
        if not now:
            raise Rewind(0)
        time, activations, *_ = instant.head
        grew = f"grew from {self._first_objective:.6g} to {value:.6g} after {activations} activations"
        began = np.isfinite(self._first_objective)
        raise Divergence(
            f"agent {self._worst_agent(world)!r} at time {time:.6g}: model has exploded; the objective "
            f"{grew if began else f'is {value:.6g} at the start'}; take smaller steps or less noise"
        )

    def _worst_agent(self, world: World) -> int | str:
        models = world.protocol.models(world.state)
        assert models is not None
        return world.setting.task.ids[int(np.argmax(np.abs(models).max(axis=1)))]

    def _own(self, world: World, models: NDArray[np.float64] | None) -> Iterator[tuple[str, str, float]]:
        if self._shown is None:
            self._shown = _read_only(world.setting.task), _read_only(world.setting.graph)
        snapshot = Snapshot(world.now, world.activations, models, *self._shown, _frozen(world.state), world.honest)
        for name, function in self.own.items():
            result = function(snapshot)
            values = result if isinstance(result, Mapping) else {"value": result}
            for statistic, value in values.items():
                yield name, statistic, number_of(value, name, statistic, function)


@dataclass
class _Instant:
    """An instant that is recorded."""

    head: Head
    """Time, activations, messages, vectors and bytes."""
    reading: Reading
    found: dict[str, Rows] = field(default_factory=dict)
    """By metric; those of a user's own metrics under an empty name."""


def _computed(metric: Metric, reading: Reading) -> Rows:
    name, compute = metric.name, metric.compute
    assert compute is not None
    return [(name, statistic, number_of(value, name, statistic, compute)) for statistic, value in compute(reading)]


def _concerns(metric: Metric, task: Task) -> bool:
    """True if a metric concerns this task: of the criteria by which tasks are judged, only the task's own does."""
    return not metric.criterion or metric.name == task.metric


Shared = TypeVar("Shared", Task, Graph, Table)
"""Data and graph, which all runs of a seed have in common."""


def _read_only(shared: Shared) -> Shared:
    """The same task, graph or table, whose arrays nobody can write through it."""
    shown: dict[str, Any] = {}
    for name in (own.name for own in fields(shared)):
        value = getattr(shared, name)
        if isinstance(value, Table):
            shown[name] = _read_only(value)
        elif isinstance(value, np.ndarray):
            shown[name] = value.view()
            shown[name].flags.writeable = False
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
