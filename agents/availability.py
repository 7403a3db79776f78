"""Availability of agents (always, on/off, diurnal, from a trace), and the times at which they join and leave.

A down agent neither wakes nor receives; its clock keeps ticking. Every duration is a pure function of the agent's
id and a period index, so all protocols of a scenario meet the same absences.

Durations and instants are drawn by functions that compile (`on_off_length`, `diurnal_time`): the timelines here call
them one by one, and the batched engine draws the changes of all agents with them
(`hushnet.simulator.rules.clock_rules`).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import Field, model_validator
from typing_extensions import override

from .compilation import form_of, part
from .errors import FieldError, InputError
from .input_files import beside
from .kinds import KindOf
from .parameters import LONGEST, Instant, Interval, Parameters, Spread
from .table_files import TimesFile

BEYOND = LONGEST + 1
"""Time units, which no run that ends by the clock lives to see: no period that is drawn is longer."""
Timeline = Iterator[tuple[float, bool]]
"""(time, up) pairs with times that never decrease; the first is the state at time 0."""


class PairDraw(Protocol):
    """Two uniforms in (0, 1) for (agent number, period index)."""

    def __call__(self, agent: int, index: int) -> tuple[float, float]:
        """The pair of this agent and period."""
        ...


ALWAYS, ON_OFF, DIURNAL = range(3)
"""Codes of the absences that compiled code draws by itself."""


class Absences(NamedTuple):
    """The compiled form of an availability."""

    code: int
    """`ALWAYS`, `ON_OFF` or `DIURNAL`."""
    online: float = 1.0
    """Share of time that an agent is up."""
    up: float = 0.0
    down: float = 0.0
    """`up` and `down`: Mean lengths of both periods; for days, their length and the share of it that phases are spread
    over."""
    sigma: float = 0.0
    shift: float = 0.0
    """`sigma` and `shift`: Of lognormal lengths: the standard deviation of the logarithm, and half of its square; 0 for
    exponential ones."""


@part
def _normal(u, v):  # pragma: no cover - compiled
    """A standard normal from two uniforms (Box-Muller)."""
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


@part
def on_off_length(mean, sigma, shift, u, v):  # pragma: no cover - compiled
    """The length of a period from its two uniforms, before rounding."""
    if sigma == 0.0:
        return -mean * math.log(u)
    return mean * math.exp(sigma * _normal(u, v) - shift)


@part
def on_off_rest(mean, sigma, shift, u, v, share):  # pragma: no cover - compiled
    """Remaining length of the period at time 0, before rounding: a uniform share of a length-biased one."""
    if sigma == 0.0:
        return -mean * math.log(u)
    return share * (mean * math.exp(sigma * _normal(u, v) + shift))


@part
def diurnal_time(period, online, spread, index, u):  # pragma: no cover - compiled
    """Time at which an agent comes up (even index) or goes down (odd index), unrounded; index 0 is before time 0."""
    time = float(index // 2 - 1) * period + u * spread * period
    return time + online * period if index % 2 == 1 else time


class Window(Parameters):
    """A share of the agents, each at a uniform time of an interval."""

    share: float = Field(ge=0, le=1)
    """Probability that an agent is concerned."""
    between: list[Instant] = Field(min_length=2, max_length=2)
    """First and last time, in time units."""

    @model_validator(mode="after")
    def _ordered(self) -> Window:
        if self.between[0] > self.between[1]:
            raise FieldError("must be two times, the earlier one first", "between")
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
        """True if no agent is ever down between joining and leaving.

        Subclasses do not inherit it, since they may add absences: `hushnet.agents.compilation.form_of` takes it from
        the very class that defines it alone.
        """
        return False

    @property
    def nobody_absent(self) -> bool:
        """True if every agent is present and up from beginning to end."""
        return bool(form_of(self, "unfailing")) and self.joins is None and self.leaves is None

    @property
    def form(self) -> Absences | None:
        """The distribution for compiled code that draws the same changes as `timelines`; by default there is none.

        It serves the very class that defines it (`hushnet.agents.compilation.form_of`).
        """
        return None

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

        Agents have the user's ids, and stable numbers, which key the draws of two uniforms for (number, index). Times
        are rounded to the simulator's resolution; file names are relative to the base.
        """


AVAILABILITIES = KindOf("availability", Availability)
AvailabilityParameters = Annotated[Availability, AVAILABILITIES]


@AVAILABILITIES.register
class Always(Availability):
    """Every agent is up all the time."""

    kind: Literal["always"]

    @property
    @override
    def unfailing(self) -> bool:
        return True

    @property
    @override
    def form(self) -> Absences:
        return Absences(ALWAYS)

    @override
    def timelines(
        self,
        ids: Sequence[int | str],
        numbers: Sequence[int],
        *,
        draw: PairDraw,
        round_time: Callable[[float], float],
        base: Path | None = None,
    ) -> list[Timeline]:
        return [iter([(0.0, True)]) for _ in ids]


@AVAILABILITIES.register
class OnOff(Availability):
    """Alternating up and down periods with a stationary start."""

    kind: Literal["on_off"]
    online: float = Field(gt=0, le=1, examples=[0.8])
    """Long-run share of time that an agent is up."""
    mean_down: Interval = Field(examples=[3.0])
    """Mean length of an absence in time units; the mean up time follows from ``online``."""
    distribution: Literal["exponential", "lognormal"] = "exponential"
    """Distribution of both durations."""
    sigma: Spread = 1.0
    """Standard deviation of the duration's logarithm (lognormal only)."""

    @property
    @override
    def form(self) -> Absences:
        return Absences(ALWAYS) if self.online == 1 else self._absences()

    def _absences(self) -> Absences:
        sigma = self.sigma if self.distribution == "lognormal" else 0.0
        mean_up = self.mean_down * self.online / (1 - self.online)
        return Absences(ON_OFF, self.online, mean_up, self.mean_down, sigma, 0.5 * sigma**2)

    @override
    def timelines(
        self,
        ids: Sequence[int | str],
        numbers: Sequence[int],
        *,
        draw: PairDraw,
        round_time: Callable[[float], float],
        base: Path | None = None,
    ) -> list[Timeline]:
        """Draw agents' periods; the first one is a stationary residual life."""
        return [self._timeline(agent, draw, round_time) for agent in numbers]

    def _timeline(self, agent: int, draw: PairDraw, round_time: Callable[[float], float]) -> Timeline:
        start, share = draw(agent, 0)
        up = start < self.online
        yield 0.0, up
        if self.online == 1:
            return
        _, _, mean_up, mean_down, sigma, shift = self._absences()
        now = 0.0
        for index in itertools.count(1):
            mean, pair = mean_up if up else mean_down, draw(agent, index)
            rest = index == 1
            length = on_off_rest(mean, sigma, shift, *pair, share) if rest else on_off_length(mean, sigma, shift, *pair)
            now += round_time(min(length, BEYOND))
            up = not up
            yield now, up


@AVAILABILITIES.register
class Diurnal(Availability):
    """Every agent is up for the same share of each day, with its own phase."""

    kind: Literal["diurnal"]
    period: Interval = Field(examples=[24.0])
    """Length of a day in time units."""
    online: float = Field(gt=0, lt=1, examples=[0.5])
    """Share of each day that an agent is up."""
    spread: float = Field(default=1.0, ge=0, le=1)
    """Phases are uniform over this share of a day: 0 is one time zone, 1 the whole globe."""

    @property
    @override
    def form(self) -> Absences:
        return Absences(DIURNAL, self.online, self.period, self.spread)

    @override
    def timelines(
        self,
        ids: Sequence[int | str],
        numbers: Sequence[int],
        *,
        draw: PairDraw,
        round_time: Callable[[float], float],
        base: Path | None = None,
    ) -> list[Timeline]:
        return [self._timeline(agent, draw, round_time) for agent in numbers]

    def _timeline(self, agent: int, draw: PairDraw, round_time: Callable[[float], float]) -> Timeline:
        (phase, _), at_start = draw(agent, 0), True
        for index in itertools.count():
            time, up = round_time(diurnal_time(self.period, self.online, self.spread, index, phase)), index % 2 == 0
            if time <= 0:
                at_start = up
                continue
            if at_start is not None:
                yield 0.0, at_start
                at_start = None
            yield time, up


@AVAILABILITIES.register
class Trace(TimesFile, Availability):
    """Up intervals from a CSV file with the columns agent, up_from, up_to."""

    kind: Literal["trace"]
    path: str = Field(examples=["up.csv"])
    """CSV file with a header line and the columns agent, up_from, up_to (time units)."""
    others: Literal["up", "down"] | None = None
    """State of agents that the file does not list; without it, every agent must be listed."""
    repeat: Interval | None = None
    """Time units after which the file begins anew; by default whoever is not up by it is down for good."""

    @override
    def timelines(
        self,
        ids: Sequence[int | str],
        numbers: Sequence[int],
        *,
        draw: PairDraw,
        round_time: Callable[[float], float],
        base: Path | None = None,
    ) -> list[Timeline]:
        """Read agents' intervals, which must not overlap."""
        where = ("availability", "path")
        file = beside(base, self.path)
        listed = [list[tuple[float, float, str]]() for _ in ids]
        for line, (agent,), given in self.rows(base, ids, ("agent",), ("up_from", "up_to"), ("availability",)):
            start, end = (round_time(min(time, LONGEST)) for time in given)
            most = LONGEST if self.repeat is None else self.repeat
            if not 0 <= start < end <= most:
                raise InputError(
                    f"{line}: up_from {given[0]!r} must be below up_to {given[1]!r}, by 2^-30 or more, and both from 0 "
                    f"to {most}{'' if self.repeat is None else ' (repeat)'}",
                    field=where,
                )
            listed[agent].append((start, end, line))
        every = [self._timeline(name, sorted(own), file) for name, own in zip(ids, listed, strict=True)]
        if self.repeat is None:
            return every
        return [_repeated(list(own), round_time(self.repeat)) for own in every]

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
                raise InputError(f"{line}: the intervals of agent {name!r} overlap at {start!r}", field=where)
            if start > 0 and points[-1] != (start, False):
                points.append((start, True))
            elif start > 0:
                points.pop()
            points.append((end, False))
            before = end
        return iter(points)


def _repeated(changes: list[tuple[float, bool]], period: float) -> Timeline:
    within = [(time, up) for time, up in changes if time < period]
    if len(within) == 1:
        yield from within
        return
    state = None
    for index in itertools.count():
        for time, up in within:
            if up != state:
                yield index * period + time, up
                state = up
