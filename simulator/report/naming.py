"""Names of metrics, axes and other things on the page."""

from __future__ import annotations

from typing import Any

from ..analysis.claimed_privacy import epsilon_text
from ..analysis.labels import words_of
from ..analysis.results import Collection
from ..figures.figure_words import axis_label

STATISTICS = {
    "mean": "mean over agents",
    "worst": "worst agent",
    "worst_decile": "worst decile of agents",
    "median": "median agent",
    "q90": "90 % quantile of agents",
    "min": "least of any agent",
    "max": "most of any agent",
    "in_flight": "in flight",
    "start_vectors": "at the start",
}


def metric_name(metric: str, statistic: str = "") -> str:
    """A metric in words.

    >>> metric_name("objective", "gap"), metric_name("epsilon_verified", "worst"), metric_name("accuracy")
    ('objective gap', 'ε verified, worst agent', 'accuracy')
    """
    name = words_of(metric)
    if statistic in ("", "value"):
        return name
    if metric == "objective" and statistic == "gap":
        return "objective gap"
    return f"{name}, {STATISTICS.get(statistic, statistic)}"


def axis_name(collection: Collection, axis: str) -> str:
    """An axis of curves in words, with its unit."""
    return "\u03b5 spent by the worst agent" if axis == "epsilon" else axis_label(collection, axis)


def described(value: Any) -> str:
    """A part of a scenario in one line; what is not set is left out.

    >>> described({"kind": "lognormal", "mean": 0.5, "sigma": 1.0, "floor": None})
    'lognormal (mean 0.5, sigma 1)'
    >>> described([10, 100])
    '10, 100'
    """
    if isinstance(value, dict):
        parts = {name: part for name, part in value.items() if part is not None and name != "kind"}
        inside = ", ".join(f"{name.replace('_', ' ')} {described(part)}" for name, part in parts.items())
        kind = str(value.get("kind", "")).replace("_", " ")
        return f"{kind} ({inside})" if kind and inside else kind or inside
    if isinstance(value, list | tuple):
        return ", ".join(described(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return epsilon_text(value, 6) if isinstance(value, float) else str(value)
