"""Quantities that a run's metrics measure: declared here once, and kept in its manifest under ``measures``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...agents.objectives.objectives import Objective
from ...agents.quantity import Quantity
from ..metrics import Metric, Reading
from ..storage.user_code import source_hash

Quantities = Mapping[str, Quantity]
"""What recorded numbers measure, by the metric's name in the trace."""


def quantities(
    reading: Reading, metrics: Iterable[Metric], own: Mapping[str, Callable[..., Any]], objective: Objective | None
) -> dict[str, Quantity]:
    """Return the quantities that the metrics of a run measure, by the metrics' names in the trace."""
    of_objective = None if objective is None else objective.quantity
    known = ((m.name, m.quantity(reading) if m.compute is not None else of_objective) for m in metrics)
    return {name: quantity for name, quantity in known if quantity is not None} | dict(_own(own))


def _own(metrics: Mapping[str, Callable[..., Any]]) -> Iterator[tuple[str, Quantity]]:
    for name, function in metrics.items():
        yield name, Quantity(f"own metric {name}", "unknown", identity=f"{name} {source_hash([function])}")
