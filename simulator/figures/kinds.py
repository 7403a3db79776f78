"""How large figures are, by their kind, number of panels and style."""

from __future__ import annotations

from ..language.figure_kinds import FigureKind
from ..language.figure_style import CENTIMETRES, FigureStyle
from .series_style import PAGE_WIDTH, WIDTH

NARROWEST_PANEL = 1.6
"""Inches; of a wide kind twice as much."""


def shape(kind: FigureKind, panels: int, *, stacked: bool, style: FigureStyle) -> tuple[int, float, float]:
    """Columns of panels, and inches: width of the figure and height of a panel."""
    columns, width, height = _usual_shape(kind, panels, stacked=stacked)
    if style.inches is not None:
        width = style.inches
        columns = max(1, min(columns, int(width / (NARROWEST_PANEL * (2 if kind.wide else 1)))))
    return columns, width, height if style.height is None else style.height / CENTIMETRES


def _usual_shape(kind: FigureKind, panels: int, *, stacked: bool) -> tuple[int, float, float]:
    if kind.stacked:
        return 1, PAGE_WIDTH, kind.height
    if panels == 1 or stacked:
        return 1, WIDTH, kind.height if panels == 1 else 0.72 * kind.height
    if panels in (2, 4):
        return 2, PAGE_WIDTH if kind.wide else WIDTH, kind.height if kind.wide else 0.72 * kind.height
    columns = min(panels, 3 if panels % 3 == 0 or panels == 5 else 4)
    return columns, PAGE_WIDTH, kind.height * (0.9 if kind.wide else 0.72)
