"""A metric: its name, how it is computed, which direction is better, its unit and label, and where it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...agents.quantity import Quantity
from ...agents.registry import Registry
from .costs import AXES

if TYPE_CHECKING:
    from ...agents.tables import Table
    from ...agents.tasks.task import Task

Array = NDArray[np.float64]

Rows = Iterator[tuple[str, float]]
"""(statistic, value)."""

Range = tuple[float, float]
"""Smallest and largest value."""

ANY: Range = (-math.inf, math.inf)


@dataclass(frozen=True)
class Reading:
    """View of a run that metrics read at a record instant; it changes nothing."""

    world: Any
    """The run."""
    models: NDArray[np.float64] | None
    """(n, p) float64 or None: Read-only; None where the protocol has none."""
    delta: float
    """Probability delta at which epsilon is read."""
    started: NDArray[np.bool_]
    """(n,) bool: Which agents have ever joined."""
    expensive: bool = True
    """Whether expensive metrics are read: at the samples 1, 2, 4, 8, ... and at the end."""
    kept: dict[str, Any] = field(default_factory=dict)
    """Values that metrics keep between the samples of a run, by their names."""
    together: list[Reading] = field(default_factory=list)
    """Those of successive instants that are read at once, this one among them; if empty, this one alone."""
    found: dict[str, Any] = field(default_factory=dict)
    """What was found of this instant's models with those of the others, by name."""

    @property
    def task(self) -> Task:
        """The task."""
        return self.world.setting.task

    @property
    def honest(self) -> NDArray[np.bool_]:
        """(n,) all agents but byzantine ones."""
        return self.world.honest

    @property
    def judged(self) -> NDArray[np.bool_]:
        """(n,) the agents that what is learned is measured of: the honest ones that have joined."""
        return self.honest & self.started

    def row_sums(self, name: str, table: Table, number: Callable[[Array, Array], Array]) -> Array:
        """(n,) sums over agents' own rows at their models, which are there; see `hushnet.agents.objectives.row_sums`.

        They are kept under the name; ``number(scores, labels)`` gives a number of each row.
        """
        from ...agents.objectives.row_sums import RowSums

        own = f"sums of {name}"
        if own not in self.found:
            if own not in self.kept:
                self.kept[own] = RowSums(table, number, self.task.model)
            readings = self.together or [self]
            found = self.kept[own].over([reading.models for reading in readings])
            for reading, sums in zip(readings, found, strict=True):
                reading.found[own] = sums
        return self.found[own]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A recorded number: everything that anybody has to know of it."""

    name: str
    """In the trace."""
    better: Literal["more", "less"] | None
    """Its direction, for tables, targets, tuning and wins; None where neither is better."""
    compute: Callable[[Reading], Rows] | None
    """``compute(reading)`` gives (statistic, value); None where the recorder itself computes it meanwhile."""
    quantity: Callable[[Reading], Quantity | None]
    """``quantity(reading)``: what it measures, so that nobody compares two numbers of different kinds."""
    of_models: bool = False
    """Whether it reads nothing of the world but the task, models, and who is honest and has started: what is so may be
    computed later, for several instants at once."""
    label: str = ""
    """For axes and tables; by default its name."""
    unit: str = ""
    """Behind the label."""
    definition: str = ""
    """Its definition for the documentation, in Markdown, with formulas in LaTeX: ``{math}`...```."""
    statistics: tuple[str, ...] = ()
    """Known before a run; empty where a protocol names them."""
    default: str = "mean"
    """The statistic that is shown where none is asked for."""
    low: float = -math.inf
    high: float = math.inf
    """`low` and `high`: Its smallest and largest value."""
    ranges: Mapping[str, Range] = field(default_factory=dict)
    """Those of single statistics, where they differ."""
    per_agent: Callable[[Reading], NDArray[np.float64]] | None = None
    """``per_agent(reading)``: (n,) its value for every agent, for the agents' table."""
    unasked: bool = False
    """Whether the agents' table has it even where it is not recorded."""
    judge: bool = False
    """Whether it may decide a tuning, by ``judged_by``."""
    judged_by: str = "mean"
    """The statistic that decides."""
    learning: bool = True
    """Whether it says something of what was learned, so that tables compare it."""
    rows: Literal["", "training", "test"] = ""
    """Rows that it is taken over: without test rows some cannot be measured."""
    criterion: bool = False
    """Whether it belongs to tasks that name it as their criterion."""
    share: Literal["", "gap", "end"] = ""
    """What a target's share is of, if one may be asked for: the gap at the start, or the value at the end."""
    group: str = ""
    """A word of ``record.metrics`` that asks for it with others; it is recorded by its own name, too."""
    baselines: Callable[[Task], Mapping[str, float]] | None = None
    """``baselines(task)``: what trivial predictions come to, by their names."""

    @property
    def words(self) -> str:
        """Its label with its unit."""
        return f"{self.label or self.name}{f' ({self.unit})' if self.unit else ''}"


METRICS: Registry[Metric] = Registry("metric")
"""Metrics by their names in the trace."""

OWN: dict[str, Metric] = {}
"""Users' own functions as they are shown, by their names in the trace; nothing computes them but the recorder."""


def register(metric: Metric) -> Metric:
    """Make a metric known by its name; raises ValueError if that is taken by something that hushnet counts."""
    if metric.name in AXES:
        raise ValueError(f"the name {metric.name!r} is taken by an axis; choose a new one.")
    return METRICS.add(metric.name, metric, maker=metric.compute or metric.quantity)


def metric_of(name: str) -> Metric | None:
    """The metric of a name in a trace; None for one that nobody described. What was set apart is ``name of ...``."""
    own = name.partition(" of ")[0]
    return METRICS.get(own) or OWN.get(own)


def recordable() -> dict[str, tuple[str, ...]]:
    """Return the names that ``record.metrics`` may list, and the metrics that each writes to the trace."""
    found: dict[str, tuple[str, ...]] = {}
    for metric in METRICS.values():
        if metric.group:
            found[metric.group] = (*found.get(metric.group, ()), metric.name)
        found[metric.name] = (metric.name,)
    return found


def traced_by(names: Iterable[str]) -> list[str]:
    """The metrics that names of ``record.metrics`` write to the trace; a function in a file writes its own name."""
    known = recordable()
    return [traced for name in names for traced in known.get(name, (name,))]


def statistics() -> dict[str, tuple[str, ...]]:
    """Statistics of metrics in the trace, but for those that data name (bins of agents by the size of their data).

    Without metrics of which a protocol's or a user's code names them.
    """
    return {metric.name: metric.statistics for metric in METRICS.values() if metric.statistics}


def names_of(wanted: Callable[[Metric], Any]) -> tuple[str, ...]:
    """Names of the metrics of which something is true."""
    return tuple(metric.name for metric in METRICS.values() if wanted(metric))


def of_learning(names: Iterable[str]) -> list[str]:
    """Those recorded metrics that say something of what was learned; of a user's own that is assumed."""
    return [name for name in names if (metric := metric_of(name)) is None or metric.learning]


def more_is_better(name: str) -> bool | None:
    """True if more of a metric is better, False if less is; None where that is not known, as of a custom metric."""
    metric = metric_of(name)
    return None if metric is None or metric.better is None else metric.better == "more"


def range_of(name: str, statistic: str = "") -> Range:
    """Smallest and largest value that a metric or an axis can have; of what nobody knows (a user's own), any.

    Names are as in the trace. The gap of an objective is at least 0 as long as agents have one model.

    >>> range_of("accuracy"), range_of("objective", "gap"), range_of("./mine.py:measure")
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    metric = metric_of(name)
    if metric is not None:
        return metric.ranges.get(statistic, (metric.low, metric.high))
    return (0.0, math.inf) if name in AXES else ANY


def range_of_difference(of: Range) -> Range:
    """Smallest and largest difference of two values of a range."""
    low, high = of
    return low - high, high - low


def quantile(values: NDArray[np.float64], q: float) -> float:
    """A quantile that admits infinities."""
    return float(np.sort(values)[min(len(values) - 1, math.ceil(q * len(values)) - 1)])
