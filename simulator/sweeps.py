"""What a sweep may say: values of a field, of one field of several protocols, or of fields that move together.

::

    sweep:
      network.loss: [0.0, 0.1, 0.3]
      clock.rate: {from: 1, to: 3, step: 1}
      network.latency.mean: {log: [0.01, 10, 7]}
      protocols.{cd,admm}.schedule: [async, rounds]
      latency:
        zip: {network.latency: [{kind: constant, value: 1.0}, {kind: exponential, mean: 1.0}]}
        labels: [constant, exponential]

Each entry is an axis of the grid, and every combination of the axes' places is run. A field below ``protocols.<key>``
concerns the runs of that protocol alone; the others' are not run again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from ..agents.errors import InputError
from ..agents.parameters import Parameters
from ..protocols.catalog import nearest
from .yaml_source import Keys

MAX_VALUES = 10_000

RESERVED = (
    "protocol", "seed", "run", "label", "agent", "value", "metric", "statistic", "time", "activations", "messages",
    "vectors", "bytes", "updates", "samples", "trial", "x", "row", "mean", "low", "high", "n",
    "reached", "base", "panel", "baseline_run", "measure", "title", "baseline_mean", "difference", "method", "p",
    "p_holm", "pairing", "finite", "baseline_finite", "larger", "smaller", "verdict", "axis", "at", "after", "before",
    "seen", "first", "then", "claim", "data_seed", "fingerprint", "source", "md5",
)  # fmt: skip
"""Columns of the results and axes of figures, which no axis of a sweep may be called."""

_SEVERAL = re.compile(r"protocols\.\{(?P<keys>[^{}]*)\}\.(?P<rest>.+)")

Number = int | float


class Range(Parameters):
    """Evenly spaced values of a sweep; whole numbers if all three are."""

    start: Number = Field(alias="from")
    """First value."""
    to: Number
    """Last value, if the steps meet it."""
    step: Number = Field(gt=0)
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

    log: tuple[Annotated[Number, Field(gt=0)], Annotated[Number, Field(gt=0)], Annotated[int, Field(ge=2)]]
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
        if count > MAX_VALUES:
            raise ValueError(f"has more than {MAX_VALUES} values")
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
    """Which form of values somebody meant."""
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
    Annotated[list[Any], Field(min_length=1), Tag("<list>")]
    | Annotated[Range, Tag("<range>")]
    | Annotated[Geometric, Tag("<log>")],
    Discriminator(_form_without_zip, custom_error_type="sweep_values", custom_error_message=f"must be {_VALUES}"),
]


class Together(Parameters):
    """Several fields whose values move together, under a name of their own."""

    zip: dict[str, Values] = Field(min_length=1)
    """As many values for each of some paths."""
    labels: list[bool | int | float | str] | None = Field(default=None, min_length=1)
    """What figures and tables call the places; by default the first path's values, or their kinds."""


SweepParameters = Annotated[
    Annotated[list[Any], Field(min_length=1), Tag("<list>")]
    | Annotated[Range, Tag("<range>")]
    | Annotated[Geometric, Tag("<log>")]
    | Annotated[Together, Tag("<zip>")],
    Discriminator(
        _form, custom_error_type="sweep_values", custom_error_message=f"must be {_VALUES}, or {{zip: {{path: values}}}}"
    ),
]


@dataclass(frozen=True)
class Setting:
    """A field that a place on an axis sets.

    Parameters
    ----------
    path : str
        Dotted path of the field.
    value : any
    written : Keys
        Where the scenario has the value.
    """

    path: str
    value: Any
    written: Keys


@dataclass(frozen=True)
class Axis:
    """One axis of a grid.

    Parameters
    ----------
    name : str
        A path, or the user's own name.
    places : list of bool, int, float, str or None
        What figures and tables call its places, each once.
    settings : list of tuple of Setting
        What each place sets.
    """

    name: str
    places: list[Any]
    settings: list[tuple[Setting, ...]]


def expand(path: str) -> list[str]:
    """The paths that a path with several protocols in braces stands for.

    Raises
    ------
    ValueError
        If braces stand for something else, or list nothing.

    Examples
    --------
    >>> expand("protocols.{cd,admm}.mu"), expand("network.loss")
    (['protocols.cd.mu', 'protocols.admm.mu'], ['network.loss'])
    """
    if "{" not in path and "}" not in path:
        return [path]
    match = _SEVERAL.fullmatch(path)
    keys = [key.strip() for key in match["keys"].split(",")] if match else []
    if match is None or not all(keys) or len(set(keys)) < len(keys) or "{" in match["rest"]:
        raise ValueError("braces must list different protocols, as in protocols.{cd,admm}.mu")
    return [f"protocols.{key}.{match['rest']}" for key in keys]


def values_of(values: Sequence[Any] | Range | Geometric) -> list[Any]:
    """The values that one of the forms stands for."""
    return values.values() if isinstance(values, Range | Geometric) else list(values)


def axes(sweep: Mapping[str, Sequence[Any] | Range | Geometric | Together]) -> list[Axis]:
    """The axes of a sweep.

    Raises
    ------
    InputError
        If two of its parts do not fit together, with the field to change.
    """
    found = [
        _together(name, entry) if isinstance(entry, Together) else _single(name, entry) for name, entry in sweep.items()
    ]
    _check_overlap(found)
    return found


def _single(path: str, given: Sequence[Any] | Range | Geometric) -> Axis:
    where, values = ("sweep", path), values_of(given)
    paths = _expanded(path, where)
    settings = [tuple(Setting(each, value, (*where, rank)) for each in paths) for rank, value in enumerate(values)]
    return Axis(path, _places(values, where), settings)


def _together(name: str, given: Together) -> Axis:
    where = ("sweep", name)
    if not name or "." in name or "{" in name or name in RESERVED:
        wrong = "is a column of the results; choose another name" if name in RESERVED else "needs a name without dots"
        raise InputError(f"{wrong} for what moves together, such as latency", field=where)
    columns = {path: values_of(values) for path, values in given.zip.items()}
    (first, *_), count = columns.values(), len(next(iter(columns.values())))
    for path, values in columns.items():
        if len(values) != count:
            raise InputError(
                f"has {len(values)} values, and {next(iter(columns))} has {count}; all move together",
                field=(*where, "zip", path),
            )
    labels = given.labels
    if labels is not None and len(labels) != count:
        raise InputError(f"has {len(labels)} entries for {count} values", field=(*where, "labels"))
    paths = {path: _expanded(path, (*where, "zip", path)) for path in columns}
    settings = [
        tuple(
            Setting(each, values[rank], (*where, "zip", path, rank))
            for path, values in columns.items()
            for each in paths[path]
        )
        for rank in range(count)
    ]
    place = (*where, "labels") if labels is not None else (*where, "zip", next(iter(columns)))
    return Axis(name, _places(first if labels is None else labels, place), settings)


def _places(values: Sequence[Any], where: Keys) -> list[Any]:
    """What to call some values: themselves, mappings by their kinds where these differ, else their JSON text."""
    names = [value if isinstance(value, str | int | float | None) else json.dumps(value) for value in values]
    kinds = [value.get("kind") if isinstance(value, Mapping) else None for value in values]
    if all(isinstance(kind, str) for kind in kinds) and len(set(kinds)) == len(kinds):
        names = kinds
    if len({(type(name), name) for name in names}) < len(names):
        hint = "; give every place a label of its own" if where[-1] != "labels" and "zip" in where else ""
        raise InputError(f"names a value twice{hint}", field=where)
    return names


def _expanded(path: str, where: Keys) -> list[str]:
    try:
        return expand(path)
    except ValueError as error:
        raise InputError(str(error), field=where) from error


def _check_overlap(found: Sequence[Axis]) -> None:
    """No two settings of a grid point may be about the same field."""
    seen: dict[tuple[str, ...], str] = {}
    for axis in found:
        for setting in axis.settings[0]:
            keys = tuple(setting.path.split("."))
            for other, name in seen.items():
                shared = min(len(keys), len(other))
                if keys[:shared] == other[:shared]:
                    by = "" if name == axis.name else f" by {name}"
                    raise InputError(
                        f"{setting.path} is set twice: {'.'.join(other)} is also set{by}", field=("sweep", axis.name)
                    )
            seen[keys] = axis.name
