"""Model of a scenario file: the frozen, checked description of an experiment."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ...agents.availability import Always, AvailabilityParameters
from ...agents.errors import InputError
from ...agents.parameters import Interval, Parameters, Positive, given
from ...agents.suggestions import require, suggestion
from ...agents.tasks import TaskParameters
from ...protocols.base import ProtocolParameters
from ...protocols.user_files import is_file
from ..metrics import recordable
from ..metrics.epsilon import PAIRS
from ..metrics.metric import traced_by
from ..network.adversaries import AdversaryParameters
from ..network.clocks import ClockParameters, Poisson
from ..network.compute import ComputeParameters, ConstantTime
from ..network.network import NetworkParameters
from ..network.topology import TopologyParameters
from .figure_parameters import Figure, check_figures, check_style
from .figure_style import FigureStyle
from .limit_parameters import LimitParameters
from .message_window import MessageWindow
from .names import EACH_ONCE, MAX_SEEDS, Count, Duration, Key, Name, Seed
from .observer_parameters import Observers
from .sweep_parameters import SweepParameters
from .sweeps import Axis, axes
from .target_parameters import TargetParameters, check_target
from .tune_parameters import TuneParameters, check_tuning

MAX_SAMPLES = 1_000_000
"""Samples that one run may take; every one is kept in memory until the run ends."""


def _known_metric(name: str) -> str:
    known = recordable()
    if name not in known and not is_file(name):
        listed = f"{', '.join(known)}, ./file.py:function"
        raise ValueError(f"unknown metric{suggestion(name, known)} admissible: {listed}")
    return name


VERSION = 1
"""Version of the scenario language."""


def _known_version(given: Any) -> Any:
    if isinstance(given, bool) or given != VERSION:  # Python takes true for 1
        newer = "a newer hushnet wrote this" if type(given) is int and given > VERSION else f"must be {VERSION}"
        raise ValueError(f"{newer}; this one reads version {VERSION} of the scenario language")
    return given


class _Recordable:
    """JSON schema of a metric's name: one of those that are registered, or a function in a file."""

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"enum": list(recordable())}, {"type": "string", "pattern": r"\.py:[^\W\d]\w*$"}]}


MetricName = Annotated[str, AfterValidator(_known_metric), _Recordable()]


class StopParameters(Parameters):
    """End of a run: the first of these limits that it reaches."""

    model_config: ClassVar[ConfigDict] = ConfigDict(**given("time", "activations", "vectors", "updates", "epochs"))

    time: Interval | None = None
    """Time units."""
    activations: Count | None = None
    """Steps of all agents together."""
    vectors: Count | None = None
    """Model-sized vectors sent by all agents together."""
    updates: Count | None = None
    """Updates of every agent: its steps, without idle ones of protocols that decide."""
    epochs: Positive | None = None
    """Passes over the training rows, of protocols that say how many updates one takes (``feature_sharing``,
    ``feature_sgd``); with a limit that holds for all of them beside it: time, activations or updates."""

    @model_validator(mode="after")
    def _some_limit(self) -> StopParameters:
        if self.time is self.activations is self.vectors is self.updates is self.epochs is None:
            raise ValueError("give at least one of time, activations, vectors, updates")
        if self.epochs is not None and self.time is self.activations is self.updates is None:
            raise ValueError("epochs needs time, activations or updates beside it, which end every protocol")
        return self


class RecordParameters(Parameters):
    """Record instants of a run, and the metrics that are measured at them."""

    model_config: ClassVar[ConfigDict] = ConfigDict(**given("every", "activations", how="oneOf"))

    every: Interval | None = None
    """Time units between two samples."""
    activations: Count | None = None
    """Activations between two samples, instead of ``every``."""
    metrics: list[MetricName] | None = Field(
        default=None,
        min_length=1,
        json_schema_extra=EACH_ONCE,
        description=f"From {', '.join(recordable())}, or ``./file.py:function``; by default the objective and the "
        "task's own measure.",
    )
    objective_of: str | None = None
    """Key of the protocol whose objective everyone is measured by; by default each by its own."""
    messages: MessageWindow | None = None
    """A few agents' messages, one by one, over a short window; by default none."""

    @field_validator("metrics")
    @classmethod
    def _each_once(cls, metrics: list[str] | None) -> list[str] | None:
        traced = traced_by(metrics or [])
        if len(set(traced)) < len(traced):
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


class SeedPair(Parameters):
    """One repetition with seeds of its own for data and run; it goes by the latter."""

    data: Seed
    """Seed of data and graph."""
    run: Seed
    """Seed of clocks, delays, losses and noise."""


class Scenario(Parameters):
    """An experiment: a task spread over agents, a network, the protocols to compare, and what to record."""

    schema_version: Annotated[Literal[1], BeforeValidator(_known_version)] = Field(alias="schema")
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
    compute: ComputeParameters = Field(default_factory=lambda: ConstantTime(kind="constant", value=0.0))
    """Time that a step takes; by default none. An agent that computes begins no other step."""
    network: NetworkParameters = Field(default_factory=NetworkParameters)
    """Delay, loss and bandwidth; by default perfect."""
    availability: AvailabilityParameters = Field(default_factory=lambda: Always(kind="always"))
    """When agents are up; by default always."""
    adversaries: AdversaryParameters | None = None
    """Byzantine agents, which send something else than their protocol has them send; by default none. What is measured
    is measured of the others."""
    protocols: dict[Key, SerializeAsAny[ProtocolParameters]] = Field(min_length=1)
    """The protocols to run, by key; ``like`` takes over another entry's fields."""
    stop: StopParameters
    """When a run ends."""
    record: RecordParameters = Field(default_factory=lambda: RecordParameters(every=1.0))
    """What is measured and when; by default once per time unit."""
    observers: Observers | None = None
    """Against whom epsilon is computed, on what the network delivered; by default everyone on the wire."""
    seeds: Count | Annotated[list[Seed | SeedPair], Field(min_length=1)] | SeedGrid = Field(
        default=1, json_schema_extra=EACH_ONCE
    )
    """Number of seeds, their list, or numbers of data and run seeds."""
    validation: float | None = Field(default=None, gt=0, lt=1)
    """Share of every agent's training rows that is held out and measured instead of its test rows; for tuning."""
    sweep: dict[str, SweepParameters] = Field(default={})
    """Values by dotted path, or of several paths that move together by a name; every combination is run."""
    tune: TuneParameters | None = None
    """Parameters that are chosen before the reported runs, protocol by protocol."""
    target: TargetParameters | None = None
    """What reached means; by default that 90 % of the objective's gap at the start is closed."""
    quick: dict[str, Any] = Field(default={})
    """What ``hushnet run --quick`` sets, by dotted path."""
    figures: list[Figure] = Field(default=[])
    """What to draw."""
    style: FigureStyle = Field(default_factory=FigureStyle)
    """How figures look: width, font, files, legend, and what swept parameters are called."""
    engine: Literal["auto", "event", "batched"] = "auto"
    """How the world is simulated: with a SimPy event for every wake-up and message (``event``), by plans of many
    wake-ups, whose steps are then made in batches or one after the other (``batched``), or batched wherever network
    and clocks allow it (``auto``); the events are the same, and numbers, too, up to rounding in a custom protocol's
    batches."""
    debug: bool = False
    """Whether every step runs as the author's own Python, for prints and breakpoints: on the event engine, in this
    process, without a progress bar."""
    limits: LimitParameters = Field(default_factory=LimitParameters)
    """What a run may do and take at most; no part of what a run is, so a complete one stays."""

    _given: tuple[str, ...] = PrivateAttr(())
    """Metrics that are recorded beside those of the scenario."""

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Scenario:
        self._given = tuple((info.context or {}).get("metrics", ()))
        self._check_seeds()
        swept = self.axes()
        if self.tune is not None:
            check_tuning(self.tune, self.protocols, swept, self.seed_pairs(), self.traced())
        self.check_parts()
        return self

    def check_parts(self) -> None:
        """Check whether parts fit each other that a point of the sweep may have changed.

        Raises `InputError` if they do not.
        """
        if self.debug and self.engine == "batched":
            raise InputError("makes steps one by one, and engine: batched plans; leave engine out", field=("debug",))
        self._check_protocols()
        self._check_samples()
        if "energy" in self.traced() and not (self.network.energy_per_byte or self.compute.power):
            raise InputError(
                "has no energy to count; set compute.power, network.energy_per_byte, or both",
                field=("record", "metrics", self.measured().index("energy")),
            )
        for rank, name in enumerate(self.record.metrics or () if self.observers is None else ()):
            if name == PAIRS.name:
                raise InputError(
                    "is measured against observers; give the scenario observers: [agents]",
                    field=("record", "metrics", rank),
                )
        self._check_shown()

    def _check_shown(self) -> None:
        """Target and figures ask for what there will be."""
        if self.target is not None:
            check_target(self.target, metrics=self.traced(), protocols=list(self.protocols))
        check_style(self.style, list(self.sweep), ("style",))
        check_figures(
            self.figures,
            metrics=self.traced(),
            swept=list(self.sweep),
            protocols=list(self.protocols),
            seeds=[seed for seed, *_ in self.seed_pairs()],
            messages=None if self.record.messages is None else self.record.messages.between,
        )

    def _check_protocols(self) -> None:
        seen: dict[str, str] = {}
        for key in self.protocols:
            label = self.label(key)
            if label in seen:
                raise InputError(f"has the same label {label!r} as {seen[label]}", field=("protocols", key, "label"))
            seen[label] = key
        measured_by = self.record.objective_of
        if measured_by is not None:
            require(measured_by, list(self.protocols), "unknown protocol", ("record", "objective_of"))

    @property
    def repetitions(self) -> int:
        """Number of `seed_pairs`."""
        match self.seeds:
            case SeedGrid(data=data, run=run):
                return data * run
            case int(count):
                return count
            case listed:
                return len(listed)

    def _check_seeds(self) -> None:
        count = self.repetitions
        if count > MAX_SEEDS:
            raise InputError(f"asks for {count} seeds; at most {MAX_SEEDS} are admissible", field=("seeds",))
        if isinstance(self.seeds, list) and len({run for _, _, run in self.seed_pairs()}) < len(self.seeds):
            raise InputError("names a seed twice", field=("seeds",))

    def _check_samples(self) -> None:
        if len(self.stop.model_dump(exclude_none=True)) > 1:
            return  # another limit may come long before this one
        for name, limit in (("every", self.stop.time), ("activations", self.stop.activations)):
            interval = getattr(self.record, name)
            if interval is not None and limit is not None and limit / interval > MAX_SAMPLES:
                raise InputError(
                    f"asks for more than {MAX_SAMPLES} samples of a run; at least "
                    f"{limit / MAX_SAMPLES:.3g} is admissible",
                    field=("record", name),
                )

    def label(self, key: str) -> str:
        """Label of a protocol in figures and tables."""
        return self.protocols[key].label or key

    def measured(self) -> list[str]:
        """Metrics that the recorder measures: by default the objective and the task's own measure."""
        if self.record.metrics is not None:
            return self.record.metrics
        judged = self.task.outline().metric
        return [judged] if self.validation is not None else ["objective", judged]

    def traced(self) -> list[str]:
        """Metrics that the trace will have."""
        return [*traced_by(self.measured()), *self._given]

    def axes(self) -> list[Axis]:
        """The axes of the sweep, in order."""
        return axes(self.sweep)

    def seed_pairs(self) -> list[tuple[int, int, int]]:
        """(label, data seed, run seed) of every repetition."""
        if isinstance(self.seeds, SeedGrid):
            runs = self.seeds.run
            return [(d * runs + r, d, r) for d in range(self.seeds.data) for r in range(runs)]
        listed = range(self.seeds) if isinstance(self.seeds, int) else self.seeds
        pairs = [SeedPair(data=seed, run=seed) if isinstance(seed, int) else seed for seed in listed]
        return [(pair.run, pair.data, pair.run) for pair in pairs]

    def resolved(self) -> dict[str, Any]:
        """Everything, defaults included, as JSON-able data: for manifests and hashes."""
        return self.model_dump(mode="json", by_alias=True)
