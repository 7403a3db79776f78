"""Metrics that are users' own functions: their labels, units and directions, in code and in what is read from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

from .metric import METRICS, OWN, Metric

Function = TypeVar("Function", bound=Callable[..., Any])
SHOWN = "shown_as"
"""Attribute of a function that has been described."""


def own_metric(
    label: str, *, unit: str = "", better: Literal["more", "less"] | None = None
) -> Callable[[Function], Function]:
    """Describe a function of a `Snapshot` that is recorded as a metric; to be used as a decorator.

    The label is for axes and tables, with the unit behind it. Which direction is better is for tables and wins; None
    where neither is. Raises ValueError if there is no label, or ``better`` is something else.

    >>> @own_metric("spread of the models", unit="m", better="less")
    ... def spread(snapshot):
    ...     return float(snapshot.models.std())
    """
    if not (isinstance(label, str) and label):
        raise ValueError('a label is text: write @own_metric("label", unit="", better="less")')
    if better not in ("more", "less", None):
        raise ValueError(f"better = {better!r}: must be 'more', 'less' or None")

    def described(function: Function) -> Function:
        setattr(function, SHOWN, {"label": label, "unit": unit, "better": better})
        return function

    return described


def show_function(name: str, function: Callable[..., Any]) -> None:
    """Have a function's metric shown as it was described; else by the function's name, or what stands behind ``:``."""
    said = getattr(function, SHOWN, None) or {"label": name.rpartition(":")[2]}
    show_as(name, said)


def show_as(name: str, said: Mapping[str, Any]) -> None:
    """Have a metric that is nobody's but a user's shown with a label, a unit and a direction."""
    if name not in METRICS:
        OWN[name] = Metric(
            name=name,
            better=said.get("better"),
            compute=None,
            quantity=lambda _: None,
            label=said.get("label") or "",
            unit=said.get("unit") or "",
        )


def shown_as(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return labels, units and directions of metrics, as `show_as` takes them."""
    known = [(name, METRICS.get(name) or OWN.get(name)) for name in names]
    return {name: {"label": m.label, "unit": m.unit, "better": m.better} for name, m in known if m is not None}
