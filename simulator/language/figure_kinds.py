"""The kinds of figures: what a scenario may ask of each, and where its numbers come from and who draws it.

A kind is one registration here, and one file with what draws it, which is imported when a figure is drawn.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...agents.authors import check_call
from ...agents.errors import InputError
from ...agents.registry import Registry
from ..metrics.costs import COSTS, TO_TARGET
from ..metrics.epsilon import EPSILONS, PAIRS

AXES = tuple(dict.fromkeys(("time", "activations", "vectors", "updates", "epochs", "bytes", *COSTS)))
"""What curves may have on their x axis."""

SWEPT = "the names of the sweep"
"""Stands for them among a kind's axes."""

MEANS = ("protocol", "mean", "low", "high", "n")
"""Columns of points that are means over runs."""

FIGURES = "hushnet.simulator.figures"

Function = str | Callable[..., Any]
"""A function, or where it is: ``module:name``, a module of `FIGURES` with a dot before its name."""


@dataclass(frozen=True, kw_only=True)
class FigureKind:
    """One kind of figure."""

    name: str
    """What a scenario calls it."""
    about: str
    """What it shows, in a clause."""
    numbers: Function
    """The numbers of a panel: ``numbers(collection, spec)`` gives a `hushnet.simulator.figures.numbers.Plot`."""
    draw: Function
    """``draw(panels, collection, spec)`` draws all panels, and says what the legend has."""
    x: tuple[str, ...]
    """What may be on its x axis."""
    columns: tuple[str, ...] = MEANS
    """What the points of a panel have at least. Without an ``n``, the number of runs behind a point, they are no means,
    and the note of the `Plot` says what the marks are."""
    plural: str = ""
    """What several are called, for sentences; by default its name."""
    default_x: str = "time"
    """What is, where nobody says."""
    shows: Literal["metric", "metric or target", "agents", "messages", "observers", "rows"] = "metric"
    """What its y may be: a metric of the trace, also what it took to reach the target, what is known per agent,
    messages, the epsilon against observers, or training rows."""
    baseline: Literal["", "may", "must"] = ""
    """Whether it shows differences from a protocol."""
    wins: bool = False
    """Whether it can show in which share of the seeds a protocol beats the baseline."""
    rows: bool = False
    """Whether it has a second swept parameter."""
    labelled: bool = True
    """Whether it has axes with labels."""
    seeds: str = "seeds (thin)"
    """How single runs are drawn."""
    by_protocol: bool = False
    """Whether every protocol has a panel of its own, unless the figure is divided otherwise."""
    wide: bool = False
    """Whether two panels side by side need the whole width of a page."""
    stacked: bool = False
    """Whether every panel has the whole width."""
    height: float = 2.35
    """Inches of a panel."""
    asked_by: tuple[str, ...] = ()
    """What on the x axis asks for this kind where a figure names none; `SWEPT` for whatever is swept."""
    legend: Literal["series", "protocols", "none"] = "series"
    """What its marks tell apart: protocols at points of the sweep, protocols alone, or nothing."""
    by_promise: bool = False
    """Whether privacy of several kinds is shown in panels of their own."""
    clear: str = ""
    """How it marks a paired difference whose interval is clear of 0; empty if it draws the interval."""

    @property
    def named(self) -> str:
        """Plural of its name, for sentences."""
        return self.plural or self.name

    @property
    def per_run(self) -> bool:
        """True if it shows values at a run's end, messages or rows, and no statistic of a metric."""
        return self.shows in ("agents", "messages", "observers", "rows")

    def axes(self, swept: Sequence[str]) -> list[str]:
        """Return the quantities that its x axis may show, given the names of the sweep."""
        return [name for axis in self.x for name in (swept if axis == SWEPT else [axis])]

    def function(self, which: Literal["numbers", "draw"]) -> Callable[..., Any]:
        """One of its functions, imported if that is needed."""
        found = getattr(self, which)
        if not isinstance(found, str):
            return found
        module, _, name = found.partition(":")
        return getattr(importlib.import_module(module, FIGURES), name)


FIGURE_KINDS: Registry[FigureKind] = Registry("figure kind")


def register(kind: FigureKind) -> FigureKind:
    """Make a kind of figure known by its name; see `hushnet.agents.registry.Registry.add`."""
    for name, wanted in (("numbers", ("collection", "spec")), ("draw", ("panels", "collection", "spec"))):
        function = getattr(kind, name)
        if not (isinstance(function, str) or callable(function)):
            raise InputError(f"the figure {kind.name!r}: {name} must be a function, not {type(function).__name__}")
        if callable(function):
            check_call(function, f"{name} of the figure {kind.name!r}", wanted)
    return FIGURE_KINDS.add(kind.name, kind, maker=None if isinstance(kind.numbers, str) else kind.numbers)


def asked(swept: Sequence[str]) -> list[str]:
    """Return the quantities that the x axis of a figure without a kind may show, given the names of the sweep."""
    named = [axis for kind in FIGURE_KINDS.values() for axis in kind.asked_by if axis != SWEPT]
    return list(dict.fromkeys([*named, *swept]))


def kind_asked_by(x: str, rows: str | None = None) -> FigureKind:
    """The kind of a figure that names none, by what is on its x axis and whether it has rows."""
    kinds = list(FIGURE_KINDS.values())
    if rows is not None:
        return next(kind for kind in kinds if kind.rows)
    swept = next(kind for kind in kinds if SWEPT in kind.asked_by)
    return next((kind for kind in kinds if x in kind.asked_by), swept)


def named_kinds(wanted: Callable[[FigureKind], Any]) -> str:
    """Kinds of which something is true, in words."""
    names = [kind.named for kind in FIGURE_KINDS.values() if wanted(kind)]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


for _kind in (
    FigureKind(
        name="curve",
        about="over time or cost",
        numbers=".series:curve",
        draw=".lines:draw",
        x=AXES,
        columns=("x", *MEANS),
        asked_by=AXES,
    ),
    FigureKind(
        name="sweep",
        about="final values along a swept parameter",
        plural="sweeps",
        numbers=".series:sweep",
        draw=".lines:draw",
        x=(SWEPT,),
        columns=("x", *MEANS),
        asked_by=(SWEPT,),
        shows="metric or target",
        baseline="may",
        wins=True,
    ),
    FigureKind(
        name="samples",
        about="final values by the size of the agents' data",
        numbers=".series:samples",
        draw=".lines:draw",
        x=("samples",),
        columns=("x", *MEANS),
        asked_by=("samples",),
        default_x="samples",
        shows="agents",
    ),
    FigureKind(
        name="bars",
        about="a bar per protocol",
        numbers=".series:bars",
        draw=".lines:draw",
        x=("protocol",),
        columns=("x", *MEANS),
        asked_by=("protocol",),
        default_x="protocol",
        shows="metric or target",
        baseline="may",
        wins=True,
        seeds="seeds (dots)",
    ),
    FigureKind(
        name="heat",
        about="a map over two swept parameters",
        plural="heat maps",
        numbers=".heat:numbers",
        draw=".heat:draw",
        x=(SWEPT,),
        columns=("x", "row", *MEANS),
        shows="metric or target",
        baseline="may",
        rows=True,
        by_protocol=True,
        wide=True,
        height=2.8,
        legend="none",
        clear="bold",
    ),
    FigureKind(
        name="frontier",
        about="accuracy against privacy or cost, one mark per protocol and grid point",
        numbers=".frontier:numbers",
        draw=".frontier:draw",
        x=(*EPSILONS, PAIRS.name, *COSTS, *TO_TARGET),
        columns=("x", "x_low", "x_high", *MEANS),
        default_x=EPSILONS[0],
        seeds="seeds (small)",
        wide=True,
        asked_by=EPSILONS,
        legend="protocols",
        by_promise=True,
    ),
    FigureKind(
        name="scatter",
        about="an agent's data against its gain",
        plural="scatters",
        numbers=".scatter:numbers",
        draw=".scatter:draw",
        x=("samples", "degree", "updates"),
        columns=("x", "protocol", "agent", "seed", "value", "class_x", "class_mean"),
        default_x="samples",
        shows="agents",
        baseline="must",
    ),
    FigureKind(
        name="portrait",
        about="the graph of one run",
        numbers=".portrait:numbers",
        draw=".portrait:draw",
        x=("time",),
        columns=("what", "agent", "other", "x", "y", "value"),
        shows="agents",
        labelled=False,
        by_protocol=True,
        wide=True,
        height=3.3,
    ),
    FigureKind(
        name="timeline",
        about="its messages",
        numbers=".timeline:numbers",
        draw=".timeline:draw",
        x=("time",),
        columns=("what", "agent", "other", "kind", "fate", "start", "end", "lane"),
        shows="messages",
        by_protocol=True,
        stacked=True,
        height=2.2,
    ),
    FigureKind(
        name="pairs",
        about="what each agent of one run could learn of each other one, as a map",
        numbers=".observed_pairs:numbers",
        draw=".observed_pairs:draw",
        x=("observer",),
        columns=("observer", "agent", "distance", "value"),
        default_x="observer",
        shows="observers",
        by_protocol=True,
        wide=True,
        height=3.0,
        legend="none",
    ),
    FigureKind(
        name="by_distance",
        about="the largest epsilon of agents against observers by their distance in the graph",
        numbers=".observed_pairs:by_distance",
        draw=".lines:draw",
        x=("graph_distance",),
        columns=("x", *MEANS),
        default_x="graph_distance",
        shows="observers",
    ),
    FigureKind(
        name="labels",
        about="the training rows of each agent of one run by their label, as stacked bars",
        plural="bars of labels",
        numbers=".label_bars:numbers",
        draw=".label_bars:draw",
        x=("agent",),
        columns=("agent", "label", "value"),
        default_x="agent",
        shows="rows",
    ),
):
    register(_kind)
