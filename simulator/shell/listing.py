"""The lists of ``hushnet list``: everything that a scenario may name, by name, with a line about each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import BaseModel

from ...agents.errors import InputError
from ...agents.suggestions import listed, suggestion
from ...agents.tasks import TaskKind
from ...protocols import catalog
from ..language.described import SECTIONS, kinds_in, summary
from ..language.figure_parameters import FIGURE_KINDS
from ..language.loading import opening_comment, shipped
from ..metrics import METRICS
from ..metrics.metric import Metric
from ..reproduction.systems import present

Lines = Mapping[str, str]

_PLURALS = {
    "task": "tasks",
    "model": "models",
    "split": "splits",
    "topology": "topologies",
    "changes": "graph_changes",
    "clock": "clocks",
    "compute": "compute_times",
    "latency": "latencies",
    "loss": "losses",
    "availability": "availabilities",
    "attack": "attacks",
}


def line_of(metric: Metric) -> str:
    """Label, unit and direction of a metric."""
    better = {"more": "; more is better", "less": "; less is better", None: ""}[metric.better]
    return f"{metric.words}{better}"


def _kinds(section: str) -> Callable[[], Lines]:
    return lambda: {name: _line_of_kind(kind) for name, kind in kinds_in(section).items()}


def _line_of_kind(kind: type[BaseModel]) -> str:
    """The first line of a kind's docstring; of a task with its target."""
    target = f" Target: {kind.target}." if issubclass(kind, TaskKind) else ""
    return f"{summary(kind)}{target}"


LISTS: dict[str, Callable[[], Lines]] = {
    "scenarios": lambda: {name: opening_comment(path) for name, path in shipped().items()},
    "protocols": catalog.describe,
    "systems": lambda: {system.number: system.line for system in present()},
    **{_PLURALS[section]: _kinds(section) for section in SECTIONS},
    "metrics": lambda: {name: line_of(metric) for name, metric in METRICS.items()},
    "figures": lambda: {name: kind.about for name, kind in FIGURE_KINDS.items()},
}
"""What can be listed; ``systems`` are those of the papers."""


def lists(name: str | None = None) -> dict[str, Lines]:
    """One list by its name, of which the singular will do, or all of them.

    Raises `InputError` if there is no such list.
    """
    if name is None:
        return {title: make() for title, make in LISTS.items()}
    singular = {plural: one for one, plural in _PLURALS.items()}
    for title, make in LISTS.items():
        if name in (title, title.removesuffix("s"), singular.get(title)):
            return {title: make()}
    raise InputError(f"there is no list of {name!r}{suggestion(name, LISTS)} admissible: {listed(LISTS)}")
