"""When an agent is up: always, on/off, diurnal, from a trace; and when agents join and leave.

A down agent neither wakes nor receives; its clock keeps ticking. Every duration is a pure function of the agent's
id and a period index, so all protocols of a scenario meet the same absences.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import Field, model_validator

from .errors import FieldError, InputError
from .files import number, read_rows, shown
from .parameters import LONGEST, Instant, Interval, Parameters, Spread

BEYOND = LONGEST + 1
"""Time units, which no run that ends by the clock lives to see: no period that is drawn is longer."""
Timeline = Iterator[tuple[float, bool]]
"""(time, up) pairs with times that never decrease; the first is the state at time 0."""


class PairDraw(Protocol):
    """Two uniforms in (0, 1) for (agent number, period index)."""

    def __call__(self, agent: int, index: int) -> tuple[float, float]:
        """The pair of this agent and period."""
        ...


class Window(Parameters):
    """A share of the agents, each at a uniform time of an interval."""

    share: float = Field(ge=0, le=1)
    """Probability that an agent is concerned."""
    between: list[Instant] = Field(min_length=2, max_length=2)
    """First and last time, in time units."""

    @model_validator(mode="after")
    def _ordered(self) -> Window:
        if self.between[0] > self.between[1]:
            raise FieldError("must be ordered", "between")
        return self

    def time(self, pair: tuple[float, float]) -> float | None:
        """The agent's time, or None if it is not concerned."""
        low, high = self.between
        return low + (high - low) * pair[0] if pair[1] < self.share else None


class Availability(Parameters, ABC):
    """Common to all kinds: agents that join late or leave for good."""

    joins: Window | None = None
    """Agents that are not there from the start."""
    leaves: Window | None = None
    """Agents that leave for good."""

    @property
    def unfailing(self) -> bool:
        """Whether nobody is ever down between joining and leaving; counts only if the very class defines it.

        See `hushnet.agents.compiled.form_of`.
        """
        return False

    @abstractmethod
    def timelines(
        self,
        ids: Sequence[int | str],
        numbers: Sequence[int],
        *,
        draw: PairDraw,
        round_time: Callable[[float], float],
        base: Path | None = None,
    ) -> list[Timeline]:
        """Up and down times of every agent, apart from joining and leaving.

        Parameters
        ----------
        ids : (n,) sequence of int or str
            The user's ids of the agents.
        numbers : (n,) sequence of int
            Their stable numbers, which key the draws.
        draw : callable
            Two uniforms for (number, index).
        round_time : callable
            Rounds a time to the simulator's resolution.
        base : Path, optional
            Folder that file names are relative to.
        """


class Always(Availability):
    """Every agent is up all the time."""

    kind: Literal["always"]

    @property
    def unfailing(self) -> bool:
        """See `Availability.unfailing`."""
        return True

    def timelines(
        self,
        ids: Sequence[int | str],
        numbers: Sequence[int],
        *,
        draw: PairDraw,
        round_time: Callable[[float], float],
        base: Path | None = None,
    ) -> list[Timeline]:
        """See `Availability.timelines`."""
        return [iter([(0.0, True)]) for _ in ids]


class OnOff(Availability):
    """Alternating up and down periods with a stationary start."""

    kind: Literal["on_off"]
    online: float = Field(gt=0, le=1)
    """Long-run share of time that an agent is up."""
    mean_down: Interval
    """Mean length of an absence in time units; the mean up time follows from ``online``."""
    distribution: Literal["exponential", "lognormal"] = "exponential"
    """Law of both durations."""
    sigma: Spread = 1.0
    """Standard deviation of the duration's logarithm (lognormal only)."""

    def timelines(
        self,
        ids: Sequence[int | str],
        numbers: Sequence[int],
        *,
        draw: PairDraw,
        round_time: Callable[[float], float],
        base: Path | None = None,
    ) -> list[Timeline]:
        """See `Availability.timelines`; the first period is a stationary residual life."""
        return [self._timeline(agent, draw, round_time) for agent in numbers]

    def _timeline(self, agent: int, draw: PairDraw, round_time: Callable[[float], float]) -> Timeline:
        up = draw(agent, 0)[0] < self.online
        yield 0.0, up
        if self.online == 1:
            return
        means = {False: self.mean_down, True: self.mean_down * self.online / (1 - self.online)}
        now, index = 0.0, 1
        while True:
            length = (
                self._residual(means[up], agent, draw) if index == 1 else self._duration(means[up], draw(agent, index))
            )
            now += round_time(min(length, BEYOND))
            up = not up
            index += 1
            yield now, up

    def _duration(self, mean: float, pair: tuple[float, float]) -> float:
        if self.distribution == "exponential":
            return -mean * math.log(pair[0])
        return mean * math.exp(self.sigma * _normal(pair) - 0.5 * self.sigma**2)

    def _residual(self, mean: float, agent: int, draw: PairDraw) -> float:
        """What is left of a period that is under way: a uniform share of a length-biased duration."""
        if self.distribution == "exponential":
            return -mean * math.log(draw(agent, 1)[0])
        length_biased = mean * math.exp(self.sigma * _normal(draw(agent, 1)) + 0.5 * self.sigma**2)
        return draw(agent, 0)[1] * length_biased


class Diurnal(Availability):
    """Every agent is up for the same share of each day, with its own phase."""

    kind: Literal["diurnal"]
    period: Interval
    """Length of a day in time units."""
    online: float = Field(gt=0, lt=1)
    """Share of each day that an agent is up."""
    spread: float = Field(default=1.0, ge=0, le=1)
    """Phases are uniform over this share of a day: 0 is one time zone, 1 the whole globe."""

    def timelines(
        self,
        ids: Sequence[int | str],
        numbers: Sequence[int],
        *,
        draw: PairDraw,
        round_time: Callable[[float], float],
        base: Path | None = None,
    ) -> list[Timeline]:
        """See `Availability.timelines`."""
        return [self._timeline(agent, draw, round_time) for agent in numbers]

    def _timeline(self, agent: int, draw: PairDraw, round_time: Callable[[float], float]) -> Timeline:
        phase = draw(agent, 0)[0] * self.spread * self.period
        at_start, started = True, False
        for day in itertools.count(-1):
            for offset, up in ((0.0, True), (self.online * self.period, False)):
                time = round_time(day * self.period + phase + offset)
                if time <= 0:
                    at_start = up
                    continue
                if not started:
                    yield 0.0, at_start
                    started = True
                yield time, up


class Trace(Availability):
    """Up intervals from a CSV file with the columns agent, up_from, up_to."""

    kind: Literal["trace"]
    path: str
    """CSV file with a header line and the columns agent, up_from, up_to (time units)."""
    others: Literal["up", "down"] | None = None
    """State of agents that the file does not list; without it, every agent must be listed."""

    def timelines(
        self,
        ids: Sequence[int | str],
        numbers: Sequence[int],
        *,
        draw: PairDraw,
        round_time: Callable[[float], float],
        base: Path | None = None,
    ) -> list[Timeline]:
        """See `Availability.timelines`; intervals of an agent must not overlap."""
        where = ("availability", "path")
        file = (base or Path()) / self.path
        listed: dict[str, list[tuple[float, float, str]]] = {str(name): [] for name in ids}
        for line, row in read_rows(file, ("agent", "up_from", "up_to"), where):
            if row["agent"] not in listed:
                raise InputError(f"{line}: {shown(row['agent'])} is not the id of an agent of this task", field=where)
            given = [number(row[column], line, column, where) for column in ("up_from", "up_to")]
            start, end = (round_time(min(time, LONGEST)) for time in given)
            if not 0 <= start < end:
                raise InputError(
                    f"{line}: up_from {given[0]:g} and up_to {given[1]:g} must be ordered and from 0 to {LONGEST}",
                    field=where,
                )
            listed[row["agent"]].append((start, end, line))
        return [self._timeline(name, sorted(listed[str(name)]), file) for name in ids]

    def _timeline(self, name: int | str, intervals: list[tuple[float, float, str]], file: Path) -> Timeline:
        where = ("availability", "path")
        if not intervals:
            if self.others is None:
                raise InputError(
                    f"{file}: does not list agent {name!r}; add it or set others to up or down", field=where
                )
            return iter([(0.0, self.others == "up")])
        points = [(0.0, intervals[0][0] == 0.0)]
        before = 0.0
        for start, end, line in intervals:
            if start < before:
                raise InputError(f"{line}: the intervals of agent {name!r} overlap at {start:g}", field=where)
            if start > 0 and points[-1] != (start, False):
                points.append((start, True))
            elif start > 0:
                points.pop()
            points.append((end, False))
            before = end
        return iter(points)


def _normal(pair: tuple[float, float]) -> float:
    """A standard normal from two uniforms (Box-Muller)."""
    return math.sqrt(-2 * math.log(pair[0])) * math.cos(2 * math.pi * pair[1])


AVAILABILITIES: dict[str, type[Parameters]] = {
    "always": Always,
    "on_off": OnOff,
    "diurnal": Diurnal,
    "trace": Trace,
}
AvailabilityParameters = Annotated[Always | OnOff | Diurnal | Trace, Field(discriminator="kind")]
