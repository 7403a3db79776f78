"""Latency of messages: distributions of delays, and fixed delays per link.

Each distribution is scaled by its mean, so scaling the mean scales every single delay. Both engines call `delay_of`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from ...agents.compilation import compiled, outside, part
from ...agents.errors import FieldError, InputError
from ...agents.kinds import Bare, KindOf
from ...agents.parameters import LONGEST, Delay, Parameters, Positive, Spread
from ...agents.table_files import TimesFile

DISTRIBUTIONS = CONSTANT, UNIFORM, EXPONENTIAL, LOGNORMAL, GAMMA, PER_LINK = range(6)
"""Codes of the delays that compiled code draws or, per link, looks up."""
Distribution = tuple[int, float, float]
"""A delay distribution for `delay_of`: its code and its two parameters."""
LINKS: Distribution = PER_LINK, 0.0, 0.0
"""The distribution of delays that are fixed for each link (`Latency.links`)."""


@outside
def _inverse_gamma(shape: float, u: float) -> float:
    """SciPy's inverse of the incomplete gamma function: its own bits."""
    from scipy.special import gammaincinv

    return float(gammaincinv(shape, u))


@part(forceinline=False)
def delay_of(code, first, second, u, v):  # pragma: no cover - compiled
    """The delay of one message from its two uniforms, before rounding; lognormal by Box-Muller, gamma by inversion."""
    if code == CONSTANT:
        return first
    if code == UNIFORM:
        return first + (second - first) * u
    if code == EXPONENTIAL:
        return -first * math.log(u)
    if code == GAMMA:
        return first * _inverse_gamma(second, u)
    normal = math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)
    return first * math.exp(second * normal - 0.5 * second * second)


@compiled
def _delays_of(code, first, second, uniforms):  # pragma: no cover - compiled
    out = np.empty(len(uniforms))
    for k in range(len(uniforms)):
        out[k] = delay_of(code, first, second, uniforms[k, 0], uniforms[k, 1])
    return out


@dataclass(frozen=True)
class LinkDelays:
    """Delays that every message of a link takes."""

    of: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]
    """``of(senders, receivers)``: the (k,) delays of k directed links in time units, before rounding, from their ends'
    indices; an `InputError` for a link that has none."""
    average: float
    """Mean over the links that are known to have one."""


@dataclass(frozen=True)
class FileDelays:
    """Delays that follow from a file."""

    draw: Callable[[int, NDArray[np.int64], NDArray[np.float64], float], NDArray[np.float64]]
    """``draw(sender, receivers, uniforms, now)``: the (k,) delays in time units, before rounding, of messages to k
    receivers that are sent now, from their ends' indices and (k, 3) uniforms; an `InputError` for a link that has
    none."""
    average: float
    """Mean delay in time units."""


class Latency(Parameters, ABC):
    """Delays in time units, drawn for every message or fixed for each link."""

    @property
    def distribution(self) -> Distribution | None:
        """The distribution for `delay_of`: its compiled form. By default there is none, and `delays` has to be given.

        Of delays that are fixed for each link it is `LINKS`. It serves the very class that defines it
        (`hushnet.agents.compilation.form_of`).
        """
        return None

    def links(self, ids: Sequence[int | str], base: Path | None) -> LinkDelays | None:
        """Delays that are fixed for each link of a run; by default they are drawn, and there are none.

        Agents have the user's ids, and file names are relative to the base.
        """
        return None

    def read(self, ids: Sequence[int | str], base: Path | None) -> FileDelays | None:
        """Delays that follow from a file in place of `delays`; by default there are none. Parameters as of `links`."""
        return None

    def delays(self, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Delays of k messages from their (k, 3) uniforms (see `Draws.messages`), before rounding."""
        if self.distribution is None:
            raise TypeError(f"{type(self).__name__} has no distribution, so it must define delays")
        return _delays_of(*self.distribution, uniforms)

    @property
    @abstractmethod
    def average(self) -> float:
        """Mean delay in time units; of links whose delays a file lists, as far as it is known without the file."""


LATENCIES = KindOf("latency", Latency)


@LATENCIES.register
class Constant(Latency):
    """The same delay for every message."""

    kind: Literal["constant"]
    value: Delay = Field(examples=[0.5])
    """Delay in time units."""

    @property
    @override
    def average(self) -> float:
        return self.value

    @property
    @override
    def distribution(self) -> Distribution:
        return CONSTANT, self.value, 0.0


@LATENCIES.register
class Uniform(Latency):
    """Uniform delays between two bounds."""

    kind: Literal["uniform"]
    low: Delay = 0.0
    """Shortest delay in time units."""
    high: Delay = Field(examples=[1.0])
    """Longest delay in time units."""

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if self.low > self.high:
            raise FieldError(f"must not exceed high, {self.high}", "low")
        return self

    @property
    @override
    def average(self) -> float:
        return (self.low + self.high) / 2

    @property
    @override
    def distribution(self) -> Distribution:
        return UNIFORM, self.low, self.high


@LATENCIES.register
class Exponential(Latency):
    """Exponential delays."""

    kind: Literal["exponential"]
    mean: Delay = Field(examples=[0.5])
    """Mean delay in time units."""

    @property
    @override
    def average(self) -> float:
        return self.mean

    @property
    @override
    def distribution(self) -> Distribution:
        return EXPONENTIAL, self.mean, 0.0


@LATENCIES.register
class Lognormal(Latency):
    """Lognormal delays, given by their arithmetic mean and the log's standard deviation."""

    kind: Literal["lognormal"]
    mean: Delay = Field(examples=[0.5])
    """Arithmetic mean of the delay in time units."""
    sigma: Spread = 0.5
    """Standard deviation of the delay's logarithm."""

    @property
    @override
    def average(self) -> float:
        return self.mean

    @property
    @override
    def distribution(self) -> Distribution:
        return LOGNORMAL, self.mean, self.sigma


@LATENCIES.register
class Gamma(Latency):
    """Gamma delays: the sum of ``shape`` exponential hops."""

    kind: Literal["gamma"]
    mean: Delay = Field(examples=[0.5])
    """Mean delay in time units."""
    shape: Positive = 2.0
    """Shape parameter; the variance is mean^2 / shape."""

    @property
    @override
    def average(self) -> float:
        return self.mean

    @property
    @override
    def distribution(self) -> Distribution:
        return GAMMA, self.mean / self.shape, self.shape


@LATENCIES.register
class Matrix(TimesFile, Latency):
    """A fixed delay per link, read from a CSV file with the columns sender, receiver, delay."""

    kind: Literal["matrix"]
    path: str = Field(examples=["delays.csv"])
    """CSV file with a header line and the columns sender, receiver, delay (time units)."""
    default: Delay | None = None
    """Delay of a link that the file does not list; without it, every link must be listed."""

    @property
    @override
    def average(self) -> float:
        return self.default or 0.0

    @property
    @override
    def distribution(self) -> Distribution:
        return LINKS

    @override
    def links(self, ids: Sequence[int | str], base: Path | None) -> LinkDelays:
        listed = self._listed(ids, base)

        def of(senders: NDArray[np.int64], receivers: NDArray[np.int64]) -> NDArray[np.float64]:
            delays = np.empty(len(senders))
            for rank, (sender, receiver) in enumerate(zip(senders.tolist(), receivers.tolist(), strict=True)):
                delay = listed.get((sender, receiver), self.default)
                if delay is None:
                    raise InputError(
                        f"{self.path} gives no delay from {ids[sender]!r} to {ids[receiver]!r}; "
                        "add the link or set default",
                        field=("network", "latency", "path"),
                    )
                delays[rank] = delay
            return delays

        return LinkDelays(of, float(np.mean([*listed.values()] or [self.average])))

    def _listed(self, ids: Sequence[int | str], base: Path | None) -> dict[tuple[int, int], float]:
        where, delays, ends = ("network", "latency"), dict[tuple[int, int], float](), ("sender", "receiver")
        for line, link, (delay,) in self.rows(base, ids, ends, ("delay",), where, longest=LONGEST):
            sender, receiver = link
            if (sender, receiver) in delays:
                said = f"from {str(ids[sender])!r} to {str(ids[receiver])!r}"
                raise InputError(f"{line}: the link {said} is listed twice", field=(*where, "path"))
            delays[sender, receiver] = delay
        return delays


LatencyParameters = Annotated[Latency, LATENCIES, Bare("constant", "value", timed=True)]
