"""The grid that a sweep spans: its axes, their places, and what each place sets.

Each entry of a sweep is an axis, and every combination of the axes' places is run. A field below ``protocols.<key>``
concerns the runs of that protocol alone; the others' are not run again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...agents.errors import InputError
from .sweep_parameters import Geometric, Range, Together, values_of
from .yaml_source import Keys

RESERVED = (
    "protocol", "seed", "run", "label", "agent", "value", "metric", "statistic", "time", "activations", "messages",
    "vectors", "bytes", "updates", "samples", "trial", "x", "row", "mean", "low", "high", "n",
    "reached", "base", "panel", "baseline_run", "measure", "title", "baseline_mean", "difference", "method", "p",
    "p_holm", "pairing", "finite", "baseline_finite", "larger", "smaller", "verdict", "axis", "at", "after", "before",
    "seen", "first", "then", "claim", "data_seed", "fingerprint", "source", "md5",
)  # fmt: skip
"""Columns of the results and axes of figures, which no axis of a sweep may be called."""

TRIAL = "trial"
"""The axis along which the trials of a tuning lie; nobody else may call one so."""

_SEVERAL = re.compile(r"protocols\.\{(?P<keys>[^{}]*)\}\.(?P<rest>.+)")


@dataclass(frozen=True)
class SweptField:
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
    settings : list of tuple of SweptField
        What each place sets.
    """

    name: str
    places: list[Any]
    settings: list[tuple[SweptField, ...]]


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
    settings = [tuple(SweptField(each, value, (*where, rank)) for each in paths) for rank, value in enumerate(values)]
    return Axis(path, _places(values, where), settings)


def _together(name: str, given: Together) -> Axis:
    where = ("sweep", name)
    if not name or set(name) & set(".{}") or name in RESERVED:
        wrong = (
            "is a column of the results; choose another name"
            if name in RESERVED
            else "needs a name without dots and braces"
        )
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
            SweptField(each, values[rank], (*where, "zip", path, rank))
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
    hint = "; give every place a label of its own" if where[-1] != "labels" and "zip" in where else ""
    check_different(names, where, hint)
    return names


def check_different(values: Sequence[Any], where: Keys, hint: str = "") -> None:
    """Raise an `InputError` if two values are one in tables, where numbers are told apart by size and all by text."""
    seen: dict[tuple[str, Any], str] = {}
    for value in values:
        text = value if isinstance(value, str) else json.dumps(value)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        for key in [("text", text), *([("number", value)] if number else [])]:
            if key in seen:
                same = "" if seen[key] == text else f", as {seen[key]} and {text}"
                raise InputError(f"names a value twice{same}{hint}", field=where)
            seen[key] = text


def _expanded(path: str, where: Keys) -> list[str]:
    try:
        return expand(path)
    except ValueError as error:
        raise InputError(str(error), field=where) from error


def _check_overlap(found: Sequence[Axis]) -> None:
    """No two settings of a grid point may be about the same field."""
    taken = Taken()
    for axis in found:
        for setting in axis.settings[0]:
            other = taken.take(setting.path, axis.name)
            if other is not None:
                path, name = other
                by = "" if name == axis.name else f" by {name}"
                raise InputError(f"{setting.path} is set twice: {path} is also set{by}", field=("sweep", axis.name))


class Taken:
    """Paths that are set, each by somebody; two of which one leads to the other are about the same field."""

    def __init__(self) -> None:
        self._above: dict[tuple[str, ...], tuple[str, str]] = {}
        self._exact: dict[tuple[str, ...], tuple[str, str]] = {}

    def take(self, path: str, name: str) -> tuple[str, str] | None:
        """Take a path in somebody's name; the path that is in its way and its owner if there is one."""
        keys = tuple(path.split("."))
        parts = [keys[:length] for length in range(1, len(keys) + 1)]
        other = next((self._exact[part] for part in parts if part in self._exact), self._above.get(keys))
        if other is None:
            self._exact[keys] = path, name
            self._above.update(dict.fromkeys(parts, (path, name)))
        return other
