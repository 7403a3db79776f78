"""What every metric of a run measures: declared here once, and kept in its manifest under ``measures``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...agents.objectives.objectives import Objective
from ...agents.quantity import CENTRAL, OWN, Quantity, Scale, epsilon_quantity
from ...agents.tasks.base import Task
from ..storage.user_code import source_hash
from ..world.world import World

Quantities = Mapping[str, Quantity]
"""By the metric's name in the trace."""

COUNTS: Mapping[str, tuple[str, Scale]] = {
    "traffic": ("vectors on links by what became of them", "total of the run"),
    "age": ("age of what agents know of their neighbours", "mean over agents"),
    "updates": ("completed steps", "mean over agents"),
    "conserved": ("distance from what the protocol's sums keep", "total of the run"),
}
"""Metrics in which neither rows nor models have a part: what they measure, and its scale."""


def quantities(
    world: World,
    metrics: tuple[str, ...],
    own: Mapping[str, Callable[..., Any]],
    objective: Objective | None,
    delta: float,
) -> dict[str, Quantity]:
    """What the metrics of a run measure.

    Parameters
    ----------
    world : World
    metrics : tuple of str
        That are recorded, from `hushnet.simulator.language.scenario.METRICS`.
    own : mapping of str to callable
        A user's own.
    objective : Objective or None
        What is measured as objective.
    delta : float
        Where epsilon is read.
    """
    found: dict[str, Quantity] = {}
    for metric in metrics:
        if metric == "objective":
            if objective is not None:
                found[metric] = objective.quantity
        elif metric == "epsilon":
            for which in ("claimed", "verified"):
                found[f"epsilon_{which}"] = _epsilon(world, which, delta)
        elif metric in COUNTS:
            found[metric] = Quantity(*COUNTS[metric])
        else:
            found[metric] = of_rows(metric, world.setting.task)
    return found | dict(_own(own))


def of_rows(metric: str, task: Task) -> Quantity:
    """What a metric measures that judges models by rows."""
    models = OWN if task.columns is None else CENTRAL
    if metric == "training_loss":
        return Quantity(f"{task.loss.name} loss", "mean over agents", "training rows", models)
    if metric == "test_loss":
        return Quantity(f"{task.loss.name} loss", "mean over rows", "test rows", models)
    return Quantity(metric, "mean over agents", "test rows", models)


def _epsilon(world: World, which: str, delta: float) -> Quantity:
    privacy = world.protocol.privacy
    inside = world.protected.nonzero()[0].tolist()
    by = f" by {privacy.claimed_by}" if privacy is not None and which == "claimed" else ""
    unit, adjacency = (" and ".join(names(inside)) for names in (world.ledger.units, world.ledger.adjacencies))
    return epsilon_quantity(f"{which}{by}", delta, unit, adjacency, str(world.protocol.observer))


def _own(metrics: Mapping[str, Callable[..., Any]]) -> Iterator[tuple[str, Quantity]]:
    for name, function in metrics.items():
        yield name, Quantity(f"own metric {name}", "unknown", identity=f"{name} {source_hash([function])}")
