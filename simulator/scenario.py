"""What a scenario file may say: the frozen, checked description of an experiment."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SerializeAsAny, field_validator, model_validator

from ..agents.availability import Always, AvailabilityParameters
from ..agents.errors import InputError
from ..agents.parameters import Parameters
from ..agents.tasks import TaskParameters
from ..protocols.base import ProtocolParameters
from ..protocols.catalog import is_file, suggestion
from .clocks import ClockParameters, Poisson
from .network import NetworkParameters
from .topology import TopologyParameters

METRICS: dict[str, tuple[str, ...]] = {
    "objective": ("objective",),
    "accuracy": ("accuracy",),
    "rmse": ("rmse",),
    "mse": ("mse",),
    "training_loss": ("training_loss",),
    "test_loss": ("test_loss",),
    "epsilon": ("epsilon_claimed", "epsilon_tight"),
    "traffic": ("traffic",),
    "age": ("age",),
    "updates": ("updates",),
    "conserved": ("conserved",),
}
"""What ``record.metrics`` may name, and the metrics that each writes to the trace."""

AXES = ("time", "activations", "vectors", "updates", "bytes", "messages", "samples")
"""What a figure may have on its x axis, besides the paths of the sweep."""

MAX_VALUES = 10_000


def _matching(pattern: str, what: str) -> AfterValidator:
    """Text that matches a pattern, with an error in words."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"must {what}")
        return value

    return AfterValidator(check)


def _for_editors(pattern: str) -> Any:
    return Field(json_schema_extra={"pattern": f"^(?:{pattern})$"})


def _known_metric(name: str) -> str:
    if name not in METRICS and not is_file(name):
        known = f"{', '.join(METRICS)}, ./file.py:function"
        raise ValueError(f"unknown metric{suggestion(name, METRICS)} admissible: {known}")
    return name


_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_KEY = r"[A-Za-z0-9][A-Za-z0-9_-]*"
_DURATION = r"\d+(\.\d+)? ?(us|ms|s|min|h|d)"
Name = Annotated[
    str, _matching(_NAME, "begin with a letter or digit and have only letters, digits and . _ -"), _for_editors(_NAME)
]
Key = Annotated[str, _matching(_KEY, "begin with a letter or digit and have only letters, digits and _ -")]
Duration = Annotated[
    str, _matching(_DURATION, "be a number with a unit of us, ms, s, min, h, d, such as 30 s"), _for_editors(_DURATION)
]
MetricName = Annotated[str, AfterValidator(_known_metric)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Scalar = bool | int | float | str | None


class StopParameters(Parameters):
    """When a run ends: at the first of these limits."""

    time: float | None = Field(default=None, gt=0)
    """Time units."""
    activations: Count | None = None
    """Steps of all agents together."""
    vectors: Count | None = None
    """Model-sized vectors sent by all agents together."""
    updates: Count | None = None
    """Steps of every agent."""

    @model_validator(mode="after")
    def _some_limit(self) -> StopParameters:
        if self.time is self.activations is self.vectors is self.updates is None:
            raise ValueError("give at least one of time, activations, vectors, updates")
        return self


class RecordParameters(Parameters):
    """When and what the recorder measures."""

    every: float | None = Field(default=None, gt=0)
    """Time units between two samples."""
    activations: Count | None = None
    """Activations between two samples, instead of ``every``."""
    metrics: list[MetricName] | None = Field(default=None, min_length=1)
    """From objective, accuracy, rmse, mse, training_loss, test_loss, epsilon, traffic, age, updates, conserved, or
    ``./file.py:function``; by default the objective and the task's own measure."""
    objective_of: str | None = None
    """Key of the protocol whose objective everyone is measured by; by default each by its own."""

    @field_validator("metrics")
    @classmethod
    def _each_once(cls, metrics: list[str] | None) -> list[str] | None:
        if metrics and len(set(metrics)) < len(metrics):
            raise ValueError("names a metric twice")
        return metrics

    @model_validator(mode="after")
    def _one_interval(self) -> RecordParameters:
        if (self.every is None) == (self.activations is None):
            raise ValueError("give exactly one of every and activations")
        return self


class SeedGrid(Parameters):
    """Seeds of data and runs, crossed."""

    data: Count = 1
    """Data sets (and graphs)."""
    run: Count = 1
    """Runs on each of them: clocks, delays, losses, noise."""


class Range(Parameters):
    """Evenly spaced values of a sweep; whole numbers if all three are."""

    start: int | float = Field(alias="from")
    """First value."""
    to: int | float
    """Last value, if the steps meet it."""
    step: int | float = Field(gt=0)
    """Distance of two values."""

    @model_validator(mode="after")
    def _forward(self) -> Range:
        if self.to < self.start:
            raise ValueError(f"from {self.start} must not exceed to {self.to}")
        if (self.to - self.start) / self.step >= MAX_VALUES:
            raise ValueError(f"has more than {MAX_VALUES} values")
        return self

    def values(self) -> list[int] | list[float]:
        """The values, without the rounding errors of repeated addition."""
        count = int((self.to - self.start) / self.step + 1e-9) + 1
        values = [self.start + rank * self.step for rank in range(count)]
        whole = all(isinstance(value, int) for value in values)
        return values if whole else [float(f"{value:.12g}") for value in values]


class Figure(Parameters):
    """A figure: one metric against time, cost or a swept parameter."""

    y: str
    """A metric of the trace: objective, accuracy, rmse, mse, training_loss, test_loss, epsilon_claimed, epsilon_tight,
    traffic, age, updates, conserved."""
    x: str = "time"
    """time, activations, vectors, updates, bytes, messages, samples, or a path of the sweep."""
    by: Literal["protocol"] = "protocol"
    """What the lines are."""
    interval: Literal["95%", "none"] = "95%"
    """Band over seeds: the 95 % t interval of the mean, or none."""
    statistic: str = ""
    """Statistic of the metric; by default value (objective), worst (epsilon), sent (traffic), else mean."""
    log: Literal["none", "x", "y", "both"] = "none"
    """Logarithmic axes."""
    title: str | None = None
    """Above the figure."""
    protocols: list[str] | None = Field(default=None, min_length=1)
    """Keys of the protocols that it shows; all by default."""
    name: Name | None = None
    """Name of its files."""

    @model_validator(mode="before")
    @classmethod
    def _statistic_of_metric(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("y"), str) and "statistic" not in data:
            usual = {"objective": "value", "epsilon_claimed": "worst", "epsilon_tight": "worst", "traffic": "sent"}
            own = "value" if is_file(data["y"]) else "mean"
            return {**data, "statistic": usual.get(data["y"], own)}
        return data


class Scenario(Parameters):
    """An experiment: a task spread over agents, a network, the protocols to compare, and what to record."""

    schema_version: Literal[1] = Field(alias="schema")
    """Version of the scenario language."""
    scenario: Name
    """Name of the scenario and of its results folder."""
    title: str | None = None
    """For figures and summaries."""
    description: str | None = None
    """What it is about."""
    time_unit: Duration | None = None
    """What one time unit means, such as 30 s; gives figures an axis in seconds."""
    task: TaskParameters
    """The learning problem and how its data are spread over agents."""
    topology: TopologyParameters
    """Who talks to whom."""
    clock: ClockParameters = Field(default_factory=lambda: Poisson(kind="poisson"))
    """When agents wake; by default Poisson clocks of rate 1."""
    network: NetworkParameters = Field(default_factory=NetworkParameters)
    """Delay, loss and bandwidth; by default perfect."""
    availability: AvailabilityParameters = Field(default_factory=lambda: Always(kind="always"))
    """When agents are up; by default always."""
    protocols: dict[Key, SerializeAsAny[ProtocolParameters]] = Field(min_length=1)
    """The protocols to run, by key; ``like`` takes over another entry's fields."""
    stop: StopParameters
    """When a run ends."""
    record: RecordParameters = Field(default_factory=lambda: RecordParameters(every=1.0))
    """What is measured and when; by default once per time unit."""
    seeds: Count | Annotated[list[Seed], Field(min_length=1)] | SeedGrid = 1
    """Number of seeds, their list, or numbers of data and run seeds."""
    sweep: dict[str, Annotated[list[Scalar], Field(min_length=1)] | Range] = Field(default={})
    """Values by dotted path; every combination is run."""
    figures: list[Figure] = Field(default=[])
    """What to draw."""
    engine: Literal["auto", "fast", "reference"] = "auto"
    """How the world is simulated: with an event for every wake-up and message, in plain Python (``reference``), without
    (``fast``), or fast wherever the protocol and the scenario allow it (``auto``); the results are the same."""

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        self._check_protocols()
        self._check_seeds_and_sweep()
        for number, figure in enumerate(self.figures):
            self._check_figure(figure, number)
        names = [figure.name for figure in self.figures if figure.name is not None]
        for number, figure in enumerate(self.figures):
            if figure.name is not None and names.count(figure.name) > 1:
                raise InputError(f"the name {figure.name!r} is used twice", field=("figures", number, "name"))
        return self

    def _check_protocols(self) -> None:
        seen: dict[str, str] = {}
        for key in self.protocols:
            label = self.label(key)
            if label in seen:
                raise InputError(f"has the same label {label!r} as {seen[label]}", field=("protocols", key, "label"))
            seen[label] = key
        measured_by = self.record.objective_of
        if measured_by is not None:
            self._require(measured_by, list(self.protocols), "unknown protocol", ("record", "objective_of"))

    def _check_seeds_and_sweep(self) -> None:
        if isinstance(self.seeds, list) and len(set(self.seeds)) < len(self.seeds):
            raise InputError("names a seed twice", field=("seeds",))
        for path, values in self.axes().items():
            if len({(type(value), value) for value in values}) < len(values):
                raise InputError("names a value twice", field=("sweep", path))

    def _check_figure(self, figure: Figure, number: int) -> None:
        where = ("figures", number)
        self._require(figure.y, self.traced(), "metric is not recorded", (*where, "y"))
        self._require(figure.x, [*AXES, *self.sweep], "unknown axis", (*where, "x"))
        for rank, key in enumerate(figure.protocols or []):
            self._require(key, list(self.protocols), "unknown protocol", (*where, "protocols", rank))

    @staticmethod
    def _require(given: str, known: list[str], wrong: str, field: tuple[str | int, ...]) -> None:
        if given not in known:
            raise InputError(f"{wrong}{suggestion(given, known)} admissible: {', '.join(known)}", field=field)

    def label(self, key: str) -> str:
        """How figures and tables call a protocol."""
        return self.protocols[key].label or key

    def traced(self) -> list[str]:
        """Metrics that the trace will have."""
        if self.record.metrics is None:
            return ["objective", "accuracy", "rmse", "mse"]
        return [traced for name in self.record.metrics for traced in METRICS.get(name, (name,))]

    def axes(self) -> dict[str, list[Any]]:
        """The values of every swept path."""
        return {path: values.values() if isinstance(values, Range) else values for path, values in self.sweep.items()}

    def seed_pairs(self) -> list[tuple[int, int, int]]:
        """(label, data seed, run seed) of every repetition."""
        if isinstance(self.seeds, SeedGrid):
            runs = self.seeds.run
            return [(d * runs + r, d, r) for d in range(self.seeds.data) for r in range(runs)]
        return [(seed, seed, seed) for seed in (range(self.seeds) if isinstance(self.seeds, int) else self.seeds)]

    def resolved(self) -> dict[str, Any]:
        """Everything, defaults included, as JSON-able data: for manifests and hashes."""
        return self.model_dump(mode="json", by_alias=True)
