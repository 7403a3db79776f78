"""Clocks that wake agents: Poisson clocks, periodic clocks with jitter, or a recorded order of agents."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.authors import place_of, returned
from ...agents.compilation import compiled, part
from ...agents.errors import InputError
from ...agents.input_files import beside, read_lines, shown
from ...agents.kinds import KindOf
from ...agents.parameters import LONGEST, Id, Interval, Parameters, Rate
from ...agents.table_files import TimesFile
from .randomness import QUANTUM, Draws, Purpose, draw_one, lasting, quantise
from .rates import Rates, per_agent, rates_of, slowest_of

POISSON, PERIODIC, RECORDED = range(3)
"""Codes of the clocks that compiled code winds up by itself."""
CLOCK, PHASE = int(Purpose.CLOCK), int(Purpose.CLOCK_PHASE)


@part
def poisson_interval(key0, key1, number, tick, mean):  # pragma: no cover - compiled
    """The interval that ends with an agent's wake-up number ``tick``, before rounding: exponential."""
    return -mean * math.log(draw_one(key0, key1, number, 0, tick, CLOCK, 0)[0])


@part
def periodic_interval(key0, key1, number, tick, period, jitter, random_phase):  # pragma: no cover - compiled
    """The period times 1 +- jitter; the first interval is a uniform share of it with a random phase."""
    length = period
    if jitter != 0.0:
        length *= 1.0 + jitter * (2.0 * draw_one(key0, key1, number, 0, tick, CLOCK, 0)[0] - 1.0)
    if tick == 0 and random_phase:
        length *= draw_one(key0, key1, number, 0, 0, PHASE, 0)[0]
    return length


_poisson, _periodic = compiled(poisson_interval), compiled(periodic_interval)


class ClockForm(NamedTuple):
    """A clock for compiled code."""

    code: int
    """`POISSON`, `PERIODIC` or `RECORDED`."""
    means: NDArray[np.float64] | float = 1.0
    """(n,) float64: Mean intervals of renewal clocks."""
    jitter: float = 0.0
    random_phase: bool = False
    """Of periodic clocks."""
    times: Sequence[Sequence[float]] = ()
    """Of recorded clocks."""


class Clock(ABC):
    """The absolute wake-up times of every agent."""

    has_intervals: ClassVar[bool] = True
    """Whether a wake-up follows the one before after an interval, which a round can last."""

    @property
    def form(self) -> ClockForm | None:
        """The compiled form; by default there is none.

        It serves the very class that defines it (`hushnet.agents.compilation.form_of`).
        """
        return None

    @abstractmethod
    def next_time(self, agent: int, tick: int, now: float) -> float:
        """Time of an agent's wake-up number ``tick`` (from 0), given that its previous one was at ``now``.

        Infinite if there is none.
        """


class RenewalClock(Clock):
    """Independent intervals, each a pure function of (agent, tick)."""

    def __init__(self, means: NDArray[np.float64], ids: NDArray[np.uint64], draws: Draws) -> None:
        self.means, self.ids, self.draws = means, ids, draws

    @abstractmethod
    def interval(self, agent: int, tick: int) -> float:
        """Length of the interval that ends with wake-up number ``tick``, before rounding."""

    @override
    def next_time(self, agent: int, tick: int, now: float) -> float:
        """An interval lasts at least one quantum."""
        return now + max(QUANTUM, lasting(self.interval(agent, tick)))


class PoissonClock(RenewalClock):
    """Exponential intervals."""

    def interval(self, agent: int, tick: int) -> float:
        """Exponential with the agent's mean."""
        return _poisson(*self.draws.key, int(self.ids[agent]), tick, self.means[agent])

    @property
    @override
    def form(self) -> ClockForm:
        return ClockForm(POISSON, self.means)


class PeriodicClock(RenewalClock):
    """Equal intervals, each shifted by uniform jitter; the first has a random or common phase."""

    def __init__(
        self, means: NDArray[np.float64], ids: NDArray[np.uint64], draws: Draws, *, jitter: float, random_phase: bool
    ) -> None:
        super().__init__(means, ids, draws)
        self.jitter, self.random_phase = jitter, random_phase

    def interval(self, agent: int, tick: int) -> float:
        """The period times 1 +- jitter; the first interval is a uniform share of it with a random phase."""
        number = int(self.ids[agent])
        return _periodic(*self.draws.key, number, tick, self.means[agent], self.jitter, self.random_phase)

    @property
    @override
    def form(self) -> ClockForm:
        return ClockForm(PERIODIC, self.means, self.jitter, self.random_phase)


class RecordedClock(Clock):
    """Given wake-ups, those of each of n agents rising and multiples of 2^-30, once or over and over.

    They begin anew after a period, a multiple of 2^-30 time units; by default nobody wakes after the last.
    """

    has_intervals: ClassVar[bool] = False

    def __init__(self, times: Sequence[Sequence[float]], period: float | None = None) -> None:
        if any(len(own) and (own[0] < 0 or np.any(np.diff(own) < 0)) for own in times):
            raise ValueError("the times of an agent's wake-ups must be from 0 and rising")
        self.times, self.period = times, period

    @override
    def next_time(self, agent: int, tick: int, now: float) -> float:
        own = self.times[agent]
        if self.period is None or not own:
            return own[tick] if tick < len(own) else math.inf
        periods, rank = divmod(tick, len(own))
        return periods * self.period + own[rank]

    @property
    @override
    def form(self) -> ClockForm | None:
        return ClockForm(RECORDED, times=self.times) if self.period is None else None


def clock_of(
    model: ClockModel, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None
) -> Clock:
    """Return the clock that a kind of clocks builds (`ClockModel.build`), if it is one of these agents.

    Raises `InputError` with the author's line, if it is none, or has given wake-ups for another number of agents.
    """
    clock: Clock = returned(model.build(ids, numbers, draws, base), Clock, model.build)
    if isinstance(clock, RecordedClock) and len(clock.times) != len(ids):
        raise InputError(f"{place_of(model.build)}: must have wake-ups of {len(ids)} agents, not of {len(clock.times)}")
    return clock


def wake_up_ranks(clock: Clock, agents: int, updates: int) -> NDArray[np.int64]:
    """Places of everybody's first wake-ups among all of these, in order of time and agent, while nobody is ever absent.

    They are (agents, updates), -1 where an agent has fewer. Later wake-ups are not counted: whoever stops after so many
    updates is silent then.
    """
    every = []
    for agent in range(agents):
        now = 0.0
        for tick in range(updates):
            now = clock.next_time(agent, tick, now)
            if math.isinf(now):
                break
            every.append((now, agent, tick))
    ranks = np.full((agents, updates), -1, dtype=np.int64)
    for rank, (_, agent, tick) in enumerate(sorted(every)):
        ranks[agent, tick] = rank
    return ranks


class ClockModel(Parameters, ABC):
    """Kind of clock that wakes agents, of which a scenario chooses one by ``kind``."""

    has_intervals: ClassVar[bool] = True
    """That of the clocks that it builds, see `Clock.has_intervals`."""

    def wakes(self, time: float, agents: int) -> float:
        """Wake-ups of all agents that are expected before a time, in time units, at least; 0 where nothing is known."""
        return 0.0

    def check_size(self, agents: int) -> None:
        """Raise an `InputError` if something does not fit the number of agents; by default nothing."""
        return

    @abstractmethod
    def build(self, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None) -> Clock:
        """The clocks of these agents, whose stable (n,) numbers key the draws; file names are relative to the base."""


CLOCKS = KindOf("clock", ClockModel)
ClockParameters = Annotated[ClockModel, CLOCKS]


@CLOCKS.register
class Poisson(ClockModel):
    """Poisson clocks: exponential intervals, independent over agents (Boyd et al. 2006)."""

    kind: Literal["poisson"]
    rate: Rate | list[Rate] | Rates = 1.0
    """Wake-ups per time unit: one value, one per agent, or a distribution over agents."""

    def check_size(self, agents: int) -> None:
        """Raise an `InputError` if there is a list that does not have one rate per agent."""
        if isinstance(self.rate, list):
            per_agent(self.rate, agents, "clock", "rate")

    @override
    def wakes(self, time: float, agents: int) -> float:
        rates = self.rate if isinstance(self.rate, list) else [slowest_of(self.rate)]
        return time * sum(rates) * agents / len(rates)

    def build(self, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None) -> Clock:
        """The clocks of these agents."""
        return PoissonClock(1.0 / rates_of(self.rate, numbers, draws), numbers, draws)


@CLOCKS.register
class Periodic(ClockModel):
    """Periodic clocks with uniform jitter."""

    kind: Literal["periodic"]
    period: Interval | list[Interval] = 1.0
    """Time units between wake-ups: one value, or one per agent."""
    jitter: float = Field(default=0.0, ge=0, lt=1)
    """Every interval is the period times a uniform factor in 1 +- jitter."""
    phase: Literal["random", "common"] = "random"
    """Whether the first wake-ups are spread over a period or fall together."""

    def check_size(self, agents: int) -> None:
        """Raise an `InputError` if there is a list that does not have one period per agent."""
        per_agent(self.period, agents, "clock", "period")

    @override
    def wakes(self, time: float, agents: int) -> float:
        periods = self.period if isinstance(self.period, list) else [self.period]
        return time * sum(1 / period for period in periods) * agents / len(periods)

    def build(self, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None) -> Clock:
        """The clocks of these agents."""
        periods = per_agent(self.period, len(numbers), "clock", "period")
        return PeriodicClock(periods, numbers, draws, jitter=self.jitter, random_phase=self.phase == "random")


@CLOCKS.register
class Recorded(ClockModel):
    """A recorded order of agents, one wake-up every ``spacing``: golden traces and replays."""

    has_intervals: ClassVar[bool] = False
    kind: Literal["recorded"]
    order: list[Id] | None = None
    """Agent ids in the order in which they wake."""
    path: str | None = None
    """A text file with one agent id a line, instead of ``order``."""
    spacing: Interval = 1.0
    """Time units between two wake-ups."""

    @model_validator(mode="after")
    def _one_source(self) -> Recorded:
        if (self.order is None) == (self.path is None):
            raise ValueError("give exactly one of order and path")
        return self

    @override
    def wakes(self, time: float, agents: int) -> float:
        return min(len(self.order or ()), time / self.spacing)

    def check_size(self, agents: int) -> None:
        """Raise an `InputError` if the order names somebody who is none of the agents 0 to n - 1."""
        known = {str(agent) for agent in range(agents)} if self.order else set()
        for name in self.order or ():
            if str(name) not in known:
                raise InputError(f"{shown(name)} is not the id of an agent of this task", field=("clock", "order"))

    def build(self, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None) -> Clock:
        """The clock of these agents."""
        position = {str(name): index for index, name in enumerate(ids)}
        order: Sequence[int | str] = self.order or []
        where, prefix = ("clock", "order"), ""
        if self.path is not None:
            file = beside(base, self.path)
            where, prefix = ("clock", "path"), f"{file}:{{line}}: "
            order = [line.strip() for _, line in read_lines(file, field=where, what="as a list of agent ids")]
        known = []
        for line, name in enumerate(order, start=1):
            if self.path is not None and not name:
                continue
            if str(name) not in position:
                raise InputError(
                    f"{prefix.format(line=line)}{shown(name)} is not the id of an agent of this task", field=where
                )
            known.append(position[str(name)])
        if self.path is not None and not known:
            raise InputError(f"{self.path} names no agent; at least one wake-up is needed", field=where)
        times: list[list[float]] = [[] for _ in ids]
        for place, agent in enumerate(known, start=1):
            times[agent].append(quantise(place * self.spacing))
        return RecordedClock(times)


@CLOCKS.register
class Times(TimesFile, ClockModel):
    """Wake-ups at given times, from a CSV file with the columns agent, time."""

    has_intervals: ClassVar[bool] = False
    kind: Literal["times"]
    path: str = Field(examples=["wake-ups.csv"])
    """CSV file with a header line and the columns agent, time (time units), in any order; who is not listed never
    wakes."""
    repeat: Interval | None = None
    """Time units after which the wake-ups begin anew; by default nobody wakes after the last."""

    def build(self, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None) -> Clock:
        """The clock of these agents."""
        where, times, most = ("clock", "path"), [set[float]() for _ in ids], self.repeat or LONGEST
        for line, (agent,), (time,) in self.rows(base, ids, ("agent",), ("time",), ("clock",)):
            if not 0 < time <= most:
                said = f"{line}: time {time!r} must be greater than 0 and at most {most}"
                raise InputError(said + ("" if self.repeat is None else " (repeat)"), field=where)
            if quantise(time) in times[agent]:
                raise InputError(f"{line}: agent {str(ids[agent])!r} wakes at {time!r} twice", field=where)
            times[agent].add(quantise(time))
        if not any(times):
            raise InputError(f"{self.path} lists no wake-up; at least one is needed", field=where)
        period = None if self.repeat is None else quantise(self.repeat)
        return RecordedClock([sorted(own) for own in times], period)
