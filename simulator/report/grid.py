"""Grid of the runs: series, each a protocol at a point of the sweep, and the axes of the sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..analysis.labels import swept_name
from ..analysis.results import Collection
from ..storage.files import json_text


@dataclass(frozen=True)
class SweptAxis:
    """A swept parameter."""

    path: str
    """Such as ``network.loss``."""
    values: tuple[Any, ...] = field(hash=False)
    """In ascending order where all are numbers, else in the order of the runs; None where a run has no such value."""
    name: str
    """What it is called on the page."""

    @property
    def numeric(self) -> bool:
        """True if the values are numbers, which have positions on an axis."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)

    def plain(self) -> dict[str, Any]:
        """The grid as plain values for the page's script."""
        texts = [value_text(value) for value in self.values]
        numbers = [float(value) for value in self.values] if self.numeric else None
        return {"path": self.path, "name": self.name, "values": texts, "numbers": numbers}


@dataclass(frozen=True)
class Series:
    """The runs that differ by their seeds only."""

    protocol: str
    """Its key."""
    at: tuple[int, ...]
    """Rank of its value on every axis of the sweep."""
    runs: tuple[int, ...]
    """Ranks of its runs in the collection."""
    finished: tuple[int, ...]
    """Those that reached their end."""


class Grid:
    """Axes and series of a collection."""

    def __init__(self, collection: Collection) -> None:
        self.protocols = list(collection.labels)
        points = [manifest.get("grid") or {} for manifest in collection.manifests]
        self.axes = [
            SweptAxis(path, _ordered([point.get(path) for point in points]), swept_name(collection, path, whole=True))
            for path in collection.grid
        ]
        ranks = [{_identity(value): rank for rank, value in enumerate(axis.values)} for axis in self.axes]
        places = [
            tuple(rank[_identity(point.get(axis.path))] for axis, rank in zip(self.axes, ranks, strict=True))
            for point in points
        ]
        # Tables have columns of one type: a number among texts is a text in them, and no value is not a number.
        tables = collection.places
        self._in_tables = [
            {_identity(value): at[number] for value, at in zip(tables[axis.path].tolist(), places, strict=True)}
            for number, axis in enumerate(self.axes)
        ]
        found: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for run, (manifest, at) in enumerate(zip(collection.manifests, places, strict=True)):
            found.setdefault((manifest["protocol"], at), []).append(run)
        order = sorted(found, key=lambda key: (self.protocols.index(key[0]), key[1]))
        complete = {run for run, m in enumerate(collection.manifests) if m.get("status") == "complete"}
        runs = [(key, tuple(found[key])) for key in order]
        self.series = [Series(*key, own, tuple(run for run in own if run in complete)) for key, own in runs]

    def ranks(self, point: Mapping[str, Any]) -> tuple[int, ...]:
        """The rank on every axis of a point whose values are as tables have them, see `Collection.places`."""
        pairs = zip(self.axes, self._in_tables, strict=True)
        return tuple(rank[_identity(point.get(axis.path))] for axis, rank in pairs)

    def texts(self, series: Series) -> list[str]:
        """The swept values of a series, in words."""
        return [value_text(axis.values[rank]) for axis, rank in zip(self.axes, series.at, strict=True)]

    def plain(self) -> list[dict[str, Any]]:
        """The series for the page's script."""
        places = {key: place for place, key in enumerate(self.protocols)}
        return [{"protocol": places[s.protocol], "at": list(s.at), "runs": len(s.runs)} for s in self.series]


def _ordered(values: list[Any]) -> tuple[Any, ...]:
    distinct = list({_identity(value): value for value in values}.values())
    axis = SweptAxis("", tuple(distinct), "")
    return tuple(sorted(distinct)) if axis.numeric and all(map(math.isfinite, distinct)) else tuple(distinct)


def _identity(value: Any) -> str:
    return json_text(value, indent=None)


def value_text(value: Any) -> str:
    """A swept value in words; a dash where there is none."""
    if value is None or value != value:
        return "\N{EN DASH}"
    return value if isinstance(value, str) else json_text(value, indent=None)
