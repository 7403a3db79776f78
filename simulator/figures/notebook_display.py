"""Figures for Python: matplotlib's own, shown by a notebook as they look in their files."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from ..analysis.results import Collection
from ..language.figure_style import FigureStyle
from .figure_files import Drawing, drawings, picture
from .style import from_mapping

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARP = 2
"""Dots of a picture for each that it takes in a notebook."""


class Figures(list["Figure"]):
    """Figures of an experiment, all or some by name, in the scenario's order; each has its name as label."""

    def __init__(
        self, collection: Collection, only: Sequence[str] | None = None, style: Mapping[str, Any] | None = None
    ) -> None:
        self._drawn = drawings(collection, only=only, style=from_mapping(style))
        for drawn in self._drawn:
            drawn.figure.set_label(drawn.name)
        super().__init__(drawn.figure for drawn in self._drawn)

    def _repr_html_(self) -> str:
        return "".join(_shown(drawn) for drawn in self._drawn)


def _shown(drawn: Drawing) -> str:
    """A picture for a page, at a hundred dots an inch and twice as sharp."""
    sharp = FigureStyle(resolution=100 * SHARP).over(drawn.style)
    content = b64encode(picture(replace(drawn, style=sharp), "png")).decode()
    width = round(100 * drawn.figure.get_figwidth())
    fits = 'style="max-width: 100%; height: auto"'
    return f'<img alt="{escape(drawn.name)}" width="{width}" src="data:image/png;base64,{content}" {fits}>'
