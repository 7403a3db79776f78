"""Time that a step takes: the same for all, by the agent's rows and the model's width, or measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from ...agents.errors import InputError
from ...agents.kinds import Bare, KindOf
from ...agents.parameters import LONGEST, Delay, NotNegative, Parameters, Rate, Size
from ...agents.table_files import TimesFile
from ...agents.tasks.task import Task
from .randomness import BEYOND, Draws, Purpose, quantise
from .rates import Rates, per_agent, rates_of


@dataclass(frozen=True)
class StepTimes:
    """Time that each step of each agent takes."""

    times: Sequence[Sequence[float]]
    """(n,) sequence of sequences of float: Times of an agent's successive steps in time units, multiples of 2^-30 and
    at least 0; after the last one they begin anew."""
    power: float
    """Energy in joules per time unit of computing."""

    @property
    def any(self) -> bool:
        """True if some step takes time."""
        return any(map(any, self.times))

    def of(self, agent: int, step: int) -> float:
        """Time in time units that an agent's step of a number, from 0 on, takes."""
        own = self.times[agent]
        return own[step % len(own)]


class ComputeTime(Parameters, ABC):
    """Common to all kinds: the speed of the agents' devices, and what computing costs."""

    speed: Rate | list[Rate] | Rates = 1.0
    """Speed of the agents' devices, by which the time of a step is divided: one value, one per agent, or a distribution
    over agents, as of clocks' rates."""
    power: NotNegative = 0.0
    """Joules that an agent uses in a time unit of computing; for the metric ``energy``."""

    def check_size(self, agents: int) -> None:
        """Raise an `InputError` if there is a list that does not have one speed per agent."""
        if isinstance(self.speed, list):
            per_agent(self.speed, agents, "compute", "speed")

    @abstractmethod
    def durations(self, task: Task, base: Path | None) -> Sequence[Sequence[float]]:
        """(n,) times of each agent's successive steps on a device of speed 1, repeated after the last one.

        File names are relative to the base.
        """

    def build(self, task: Task, numbers: NDArray[np.uint64], draws: Draws, base: Path | None) -> StepTimes:
        """The times of these agents' steps; stable (n,) numbers key speeds, and file names are relative to the base."""
        self.check_size(task.agents)
        speeds = rates_of(self.speed, numbers, draws, Purpose.SPEED).tolist()
        times = self.durations(task, base)
        each = [[quantise(min(time / speed, BEYOND)) for time in own] for own, speed in zip(times, speeds, strict=True)]
        return StepTimes(each, self.power)


COMPUTE_TIMES = KindOf("time of a step", ComputeTime)
ComputeParameters = Annotated[ComputeTime, COMPUTE_TIMES, Bare("constant", "value", timed=True)]


@COMPUTE_TIMES.register
class ConstantTime(ComputeTime):
    """The same time for every step, on devices of one speed."""

    kind: Literal["constant"]
    value: Delay = Field(examples=[0.5])
    """Time units that a step takes at speed 1."""

    @override
    def durations(self, task: Task, base: Path | None) -> Sequence[Sequence[float]]:
        return [[self.value]] * task.agents


@COMPUTE_TIMES.register
class TimeBySize(ComputeTime):
    """Time in proportion to the rows that a step reads and to the numbers of a model."""

    kind: Literal["by_size"]
    each: NotNegative = Field(examples=[0.0001])
    """Time units for each number of each row at speed 1: a step takes ``base`` + ``each`` * rows * numbers."""
    base: Delay = 0.0
    """Time units that a step takes besides."""
    rows: Size | None = None
    """Rows that a step reads, such as the protocol's batch, and at most those that the agent has; by default all."""

    @override
    def durations(self, task: Task, base: Path | None) -> Sequence[Sequence[float]]:
        rows = np.diff(task.train.offsets)
        if self.rows is not None:
            rows = np.minimum(rows, self.rows)
        return [[self.base + self.each * one * task.dimension] for one in rows.tolist()]


@COMPUTE_TIMES.register
class TimesFromFile(TimesFile, ComputeTime):
    """Times of successive steps from a CSV file with the columns agent, duration; after the last one they repeat."""

    kind: Literal["trace"]
    path: str = Field(examples=["step-times.csv"])
    """CSV file with a header line and the columns agent, duration (time units), in the order of each agent's steps."""

    @override
    def durations(self, task: Task, base: Path | None) -> Sequence[Sequence[float]]:
        where = ("compute", "path")
        times: list[list[float]] = [[] for _ in task.ids]
        for _, (agent,), (time,) in self.rows(base, task.ids, ("agent",), ("duration",), ("compute",), longest=LONGEST):
            times[agent].append(time)
        for own, name in zip(times, task.ids, strict=True):
            if not own:
                raise InputError(f"{self.path} lists no step of agent {name!r}; list at least one", field=where)
        return times
