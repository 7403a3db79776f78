"""Costs of a run: the axes that curves, frontiers and targets count on, and their labels."""

from __future__ import annotations

from collections.abc import Mapping

COSTS: Mapping[str, str] = {
    "time": "time",
    "activations": "activations",
    "vectors": "vectors sent",
    "messages": "messages sent",
    "bytes": "bytes sent",
    "vectors_with_start": "vectors sent, with those before the start",
    "messages_with_start": "messages sent, with those before the start",
}
"""Axes on which a run is counted, as they are called on figures."""

TO_TARGET: Mapping[str, str] = {f"{axis}_to_target": axis for axis in COSTS}
"""What it took a run to reach the scenario's target, with the axis that it is counted on."""


def _to_target(label: str) -> str:
    counted, comma, with_start = label.partition(",")
    return f"{counted} to target{comma}{with_start}"


LABELS: Mapping[str, str] = {
    **COSTS,
    "updates": "updates per agent",
    "epochs": "epochs (passes over the training rows)",
    "samples": "samples of the agent",
    "degree": "neighbours of the agent",
    "graph_distance": "edges between observer and agent",
    **{name: _to_target(COSTS[axis]) for name, axis in TO_TARGET.items()},
}
"""What axes are called on figures."""

AXES = frozenset(LABELS) - {"updates"}
"""Axes that are no metrics; all of them count from 0 on."""
