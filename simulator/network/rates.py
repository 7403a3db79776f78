"""Rates of clocks, and speeds of devices: one value, one per agent, or a distribution over agents."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ...agents.errors import FieldError, InputError
from ...agents.parameters import Parameters, Rate, Spread
from .randomness import Draws, Purpose


class UniformRates(Parameters):
    """Rates drawn uniformly from an interval, one per agent."""

    kind: Literal["uniform"]
    low: Rate
    """Smallest rate, wake-ups per time unit."""
    high: Rate
    """Largest rate, wake-ups per time unit."""

    @model_validator(mode="after")
    def _ordered(self) -> UniformRates:
        if self.low > self.high:
            raise FieldError(f"must not exceed high, {self.high}", "low")
        return self

    def quantile(self, uniform: float) -> float:
        """The rate at a uniform draw."""
        return self.low + (self.high - self.low) * uniform


class LognormalRates(Parameters):
    """Lognormal rates: a few agents much faster than the others."""

    kind: Literal["lognormal"]
    mean: Rate = 1.0
    """Arithmetic mean rate, wake-ups per time unit."""
    sigma: Spread
    """Standard deviation of the rate's logarithm."""

    def quantile(self, uniform: float) -> float:
        """The rate at a uniform draw."""
        from scipy.special import ndtri

        return self.mean * math.exp(self.sigma * float(ndtri(uniform)) - 0.5 * self.sigma**2)


class StragglerRates(Parameters):
    """A share of slow agents among normal ones."""

    kind: Literal["stragglers"]
    share: float = Field(ge=0, le=1)
    """Probability that an agent is slow."""
    slow: Rate = 0.1
    """Rate of a slow agent, wake-ups per time unit."""
    rate: Rate = 1.0
    """Rate of the other agents, wake-ups per time unit."""

    def quantile(self, uniform: float) -> float:
        """The rate at a uniform draw."""
        return self.slow if uniform < self.share else self.rate


Rates = Annotated[UniformRates | LognormalRates | StragglerRates, Field(discriminator="kind")]


def per_agent(value: float | list[float], agents: int, *where: str) -> NDArray[np.float64]:
    """(n,) a value for each agent, from one or from a list; ``where`` is the field that an error names."""
    if isinstance(value, list):
        if len(value) != agents:
            raise InputError(f"has {len(value)} values; one for each of the {agents} agents is needed", field=where)
        return np.array(value, dtype=np.float64)
    return np.full(agents, float(value))


def rates_of(
    rate: float | list[float] | Rates,
    numbers: NDArray[np.uint64],
    draws: Draws,
    purpose: Purpose = Purpose.CLOCK_RATE,
) -> NDArray[np.float64]:
    """(n,) rates of the agents, drawn for a purpose by their stable numbers where there is a distribution."""
    if isinstance(rate, float | int | list):
        return per_agent(rate, len(numbers), "clock", "rate")
    return np.array([rate.quantile(draws.uniform(purpose, int(number))) for number in numbers])


def slowest_of(rate: float | list[float] | Rates) -> float:
    """The smallest rate that an agent can have."""
    if isinstance(rate, float | int):
        return rate
    if isinstance(rate, list):
        return min(rate)
    return min(rate.quantile(0.0), rate.quantile(math.nextafter(1.0, 0.0)))
