"""The grid that a sweep spans: its axes, their places, and what each place sets.

Each entry of a sweep is an axis, and every combination of the axes' places is run. A field below ``protocols.<key>``
concerns the runs of that protocol alone; the others' are not run again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    """A field that a place on an axis sets."""

    path: str
    """Dotted path of the field."""
    value: Any
    written: Keys
    """Where the scenario has the value."""


@dataclass(frozen=True)
class Axis:
    """One axis of a grid."""

    name: str
    """A path, or the user's own name."""
    places: list[Any]
    """What figures and tables call its places, each once."""
    settings: list[tuple[SweptField, ...]]
    """What each place sets."""


def expand(path: str, field: Keys = ()) -> list[str]:
    """The paths that a path with several protocols in braces stands for.

    Raises `InputError` with the field where it is written if braces stand for something else, or list nothing.

    >>> expand("protocols.{cd,admm}.mu"), expand("network.loss")
    (['protocols.cd.mu', 'protocols.admm.mu'], ['network.loss'])
    """
    if "{" not in path and "}" not in path:
        return [path]
    match = _SEVERAL.fullmatch(path)
    keys = [key.strip() for key in match["keys"].split(",")] if match else []
    if match is None or not all(keys) or len(set(keys)) < len(keys) or "{" in match["rest"]:
        raise InputError("braces must list different protocols, as in protocols.{cd,admm}.mu", field=field)
    return [f"protocols.{key}.{match['rest']}" for key in keys]


def axes(sweep: Mapping[str, Sequence[Any] | Range | Geometric | Together]) -> list[Axis]:
    """The axes of a sweep; raises `InputError` if two of its parts do not fit together, with the field to change."""
    found = []
    for name, given in sweep.items():
        where = ("sweep", name)
        if isinstance(given, Together):
            _check_name(name)
            columns: dict[Keys, list[Any]] = {(*where, "zip", path): values_of(own) for path, own in given.zip.items()}
            found.append(_axis(name, where, columns, given.labels))
        else:
            found.append(_axis(name, where, {where: values_of(given)}, None))
    _check_overlap(found)
    return found


def _check_name(name: str) -> None:
    wrong = "is a column of the results; choose another name" if name in RESERVED else ""
    if not name or set(name) & set(".{}"):
        wrong = "needs a name without dots and braces"
    if wrong:
        raise InputError(f"{wrong} for what moves together, such as latency", field=("sweep", name))


def _axis(name: str, where: Keys, columns: Mapping[Keys, list[Any]], labels: list[Any] | None) -> Axis:
    """An axis of values by where they are written, which ends in the path that they set."""
    (first, values), *_ = columns.items()
    for column, others in columns.items():
        if len(others) != len(values):
            said = f"has {len(others)} values, and {first[-1]} has {len(values)}; all move together"
            raise InputError(said, field=column)
    if labels is not None and len(labels) != len(values):
        raise InputError(f"has {len(labels)} entries for {len(values)} values", field=(*where, "labels"))
    paths = {column: expand(str(column[-1]), column) for column in columns}
    settings = [
        tuple(SweptField(path, own[rank], (*column, rank)) for column, own in columns.items() for path in paths[column])
        for rank in range(len(values))
    ]
    return Axis(name, _places(values, first) if labels is None else _places(labels, (*where, "labels")), settings)


def _places(values: Sequence[Any], where: Keys) -> list[Any]:
    """Labels of some values: the values themselves, mappings' kinds where these differ, else their JSON text."""
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


def _check_overlap(found: Sequence[Axis]) -> None:
    """No two settings of a grid point may be about the same field."""
    settings = [(setting.path, axis.name) for axis in found for setting in axis.settings[0]]
    pair = clash([path for path, _ in settings])
    if pair is not None:
        (path, name), (other, axis) = (settings[rank] for rank in pair)
        by = "" if name == axis else f" by {name}"
        raise InputError(f"{other} is set twice: {path} is also set{by}", field=("sweep", axis))


def clash(paths: Sequence[str]) -> tuple[int, int] | None:
    """The ranks of two paths about the same field, of which one leads to the other; None if there are none.

    >>> clash(["network.latency", "network.loss", "network.latency.mean"])
    (0, 2)
    """
    ordered = sorted((path.split("."), rank) for rank, path in enumerate(paths))
    for (keys, one), (others, two) in pairwise(ordered):
        if others[: len(keys)] == keys:  # whatever stands between the two is below the first as well
            return min(one, two), max(one, two)
    return None
