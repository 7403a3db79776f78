"""Fields of a sweep: values of a field, of one field of several protocols, or of fields that move together.

::

    sweep:
      network.loss: [0.0, 0.1, 0.3]
      clock.rate: {from: 1, to: 3, step: 1}
      network.latency.mean: {log: [0.01, 10, 7]}
      protocols.{cd,admm}.schedule: [async, rounds]
      latency:
        zip: {network.latency: [{kind: constant, value: 1.0}, {kind: exponential, mean: 1.0}]}
        labels: [constant, exponential]

A sweep's axes are made of it, see `hushnet.simulator.language.sweeps`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from ...agents.durations import Timed
from ...agents.parameters import Parameters
from ...agents.suggestions import nearest

MAX_VALUES = 10_000

Number = int | float
Bounded = Annotated[Number, Field(ge=-1e100, le=1e100), Timed()]
Scale = Annotated[Number, Field(gt=0, ge=1e-100, le=1e100), Timed()]
Listed = Annotated[list[Annotated[Any, Timed(always=False)]], Field(min_length=1)]


class Range(Parameters):
    """Evenly spaced values of a sweep; whole numbers if all three are."""

    start: Bounded = Field(alias="from")
    """First value."""
    to: Bounded
    """Last value, if the steps meet it."""
    step: Scale
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


class Geometric(Parameters):
    """Values of a sweep in equal ratios; whole numbers if first and last are, else rounded to three digits or more."""

    log: tuple[Scale, Scale, Annotated[int, Field(ge=2, le=MAX_VALUES)]]
    """First value, last value, and how many."""

    @field_validator("log", mode="before")
    @classmethod
    def _three_numbers(cls, given: Any) -> Any:
        if not isinstance(given, list) or len(given) != 3:
            raise ValueError("must be three numbers: the first value, the last value, and how many")
        return tuple(given)

    @model_validator(mode="after")
    def _different(self) -> Geometric:
        first, last, count = self.log
        if first == last:
            raise ValueError(f"the first value {first} and the last value {last} must differ")
        if len(set(self.values())) < count:
            raise ValueError(f"has no {count} different whole numbers; write {float(first)} for fractions")
        return self

    def values(self) -> list[int] | list[float]:
        """The values; the first and the last are exact."""
        first, last, count = self.log
        ratio = math.log(last / first) / (count - 1)
        inner = [first * math.exp(rank * ratio) for rank in range(1, count - 1)]
        if isinstance(first, int) and isinstance(last, int):
            return [first, *(round(value) for value in inner), last]
        for digits in range(3, 17):
            values = [float(first), *(float(f"{value:.{digits}g}") for value in inner), float(last)]
            if values == sorted(set(values), reverse=last < first):
                break
        return values


_FORMS = {"from": "<range>", "to": "<range>", "step": "<range>", "log": "<log>", "zip": "<zip>", "labels": "<zip>"}


def _form(given: Any) -> str | None:
    """Tag of the form of values that the user meant; None if a mapping resembles none."""
    if isinstance(given, Range | Geometric | Together):
        return {Range: "<range>", Geometric: "<log>", Together: "<zip>"}[type(given)]
    if not isinstance(given, Mapping):
        return "<list>"
    return next((_FORMS[meant] for key in given if (meant := nearest(key, _FORMS))), None)


def _form_without_zip(given: Any) -> str | None:
    form = _form(given)
    return None if form == "<zip>" else form


_VALUES = "a list of values, {from, to, step} or {log: [first, last, number]}"

Values = Annotated[
    Annotated[Listed, Tag("<list>")] | Annotated[Range, Tag("<range>")] | Annotated[Geometric, Tag("<log>")],
    Discriminator(_form_without_zip, custom_error_type="sweep_values", custom_error_message=f"must be {_VALUES}"),
]


class Together(Parameters):
    """Several fields whose values move together, under a name of their own."""

    zip: dict[str, Values] = Field(min_length=1)
    """As many values for each of some paths."""
    labels: list[bool | int | float | str] | None = Field(default=None, min_length=1)
    """What figures and tables call the places; by default the first path's values, or their kinds."""


SweepParameters = Annotated[
    Annotated[Listed, Tag("<list>")]
    | Annotated[Range, Tag("<range>")]
    | Annotated[Geometric, Tag("<log>")]
    | Annotated[Together, Tag("<zip>")],
    Discriminator(
        _form, custom_error_type="sweep_values", custom_error_message=f"must be {_VALUES}, or {{zip: {{path: values}}}}"
    ),
]


def values_of(values: Sequence[Any] | Range | Geometric) -> list[Any]:
    """The values that one of the forms stands for."""
    return values.values() if isinstance(values, Range | Geometric) else list(values)
