"""The kinds of figures: where the numbers of a panel come from, how panels are drawn, and how large they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..analysis.results import Collection
from ..language.figure_parameters import kind_of
from ..language.figure_style import CENTIMETRES, FigureStyle
from . import frontier, heat, lines, portrait, scatter, series, timeline
from .lines import Entries, Panels
from .look import PAGE_WIDTH, WIDTH
from .numbers import Plot, Spec


class Kind(NamedTuple):
    """One kind of figure.

    Parameters
    ----------
    numbers : callable
        The numbers of a panel.
    draw : callable
        Draws all panels, and says what the legend has.
    by_protocol : bool
        Whether every protocol has a panel of its own, unless the figure is divided otherwise.
    wide : bool
        Whether two panels side by side need the whole width of a page.
    stacked : bool
        Whether every panel has the whole width.
    height : float
        Inches of a panel.
    """

    numbers: Callable[[Collection, Spec], Plot]
    draw: Callable[[Panels, Collection, Spec], Entries]
    by_protocol: bool = False
    wide: bool = False
    stacked: bool = False
    height: float = 2.35


KINDS = {
    "curve": Kind(series.curve, lines.draw),
    "sweep": Kind(series.sweep, lines.draw),
    "samples": Kind(series.samples, lines.draw),
    "bars": Kind(series.bars, lines.draw),
    "frontier": Kind(frontier.numbers, frontier.draw, wide=True),
    "heat": Kind(heat.numbers, heat.draw, by_protocol=True, wide=True, height=2.8),
    "scatter": Kind(scatter.numbers, scatter.draw),
    "portrait": Kind(portrait.numbers, portrait.draw, by_protocol=True, wide=True, height=3.3),
    "timeline": Kind(timeline.numbers, timeline.draw, by_protocol=True, stacked=True, height=2.2),
}


def kind_for(spec: Spec) -> Kind:
    """The kind that a figure asks for."""
    return KINDS[kind_of(spec.get("kind"), str(spec["x"]), spec.get("rows"))]


NARROWEST_PANEL = 1.6
"""Inches; of a wide kind twice as much."""


def shape(kind: Kind, panels: int, *, stacked: bool, style: FigureStyle) -> tuple[int, float, float]:
    """Columns of panels, and inches: width of the figure and height of a panel."""
    columns, width, height = _usual_shape(kind, panels, stacked=stacked)
    if style.inches is not None:
        width = style.inches
        columns = max(1, min(columns, int(width / (NARROWEST_PANEL * (2 if kind.wide else 1)))))
    return columns, width, height if style.height is None else style.height / CENTIMETRES


def _usual_shape(kind: Kind, panels: int, *, stacked: bool) -> tuple[int, float, float]:
    if kind.stacked:
        return 1, PAGE_WIDTH, kind.height
    if panels == 1 or stacked:
        return 1, WIDTH, kind.height if panels == 1 else 0.72 * kind.height
    if panels in (2, 4):
        return 2, PAGE_WIDTH if kind.wide else WIDTH, kind.height if kind.wide else 0.72 * kind.height
    columns = min(panels, 3 if panels % 3 == 0 or panels == 5 else 4)
    return columns, PAGE_WIDTH, kind.height * (0.9 if kind.wide else 0.72)
