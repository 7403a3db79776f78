"""Fields for the style of figures, in a scenario, in one of its figures or in ``hushnet plot``."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator

from ...agents.parameters import Parameters
from .names import EACH_ONCE

CENTIMETRES = 2.54
"""Centimetres of an inch."""

NARROWEST, WIDEST = 4.0, 60.0
"""Centimetres that a figure may be wide."""

COLUMNS = {"one column": 3.5 * CENTIMETRES, "two columns": 7.16 * CENTIMETRES}
"""Centimetres of the usual widths: one and both columns of a two-column paper."""

FORMATS = ("png", "pdf", "svg")
"""Formats in which figures are written, in this order."""

Format = Literal["png", "pdf", "svg"]


def _centimetres(value: Any) -> Any:
    """Centimetres as a number; the names of the usual widths as they are."""
    if not isinstance(value, str) or value in COLUMNS:
        return value
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?) ?cm", value)
    if match is None:
        raise ValueError("must be one column, two columns, or centimetres such as 8.4 or 8.4 cm")
    return float(match[1])


_FOR_EDITORS = [
    {"enum": list(COLUMNS)},
    {"type": "string", "pattern": r"^\d{1,3}(\.\d{1,6})? ?cm$"},
    {"type": "number", "minimum": NARROWEST, "maximum": WIDEST},
]
Width = Annotated[
    Literal["one column", "two columns"] | Annotated[float, Field(ge=NARROWEST, le=WIDEST)],
    BeforeValidator(_centimetres),
    WithJsonSchema({"anyOf": _FOR_EDITORS}),
]
Text = Annotated[str, Field(max_length=200)]


class FigureStyle(Parameters):
    """Style of figures: their size, their fonts, their files, and the names of swept parameters.

    A figure's own style takes precedence over its scenario's, and that of the command line over both; a field that none
    of them sets has its default.
    """

    width: Width | None = None
    """one column (8.9 cm), two columns (18.2 cm), or centimetres, such as 12 or 12 cm; by default what the panels of a
    figure need, one column or two."""
    height: float | None = Field(default=None, ge=2, le=60)
    """Centimetres of a panel; by default 5.1 to 8.4, by the kind of figure."""
    font: str | None = Field(default=None, min_length=1, max_length=100)
    """Name of an installed family, such as Times New Roman, or serif, sans-serif, monospace; by default DejaVu Sans."""
    font_size: float | None = Field(default=None, ge=4, le=24)
    """Points of the labels of axes, 8 by default; everything else that is written keeps its proportion to them."""
    formats: list[Format] | None = Field(default=None, min_length=1, json_schema_extra=EACH_ONCE)
    """Of the files: png, pdf, svg; all three by default."""
    resolution: int | None = Field(default=None, ge=50, le=1200)
    """Dots per inch of PNG files, 300 by default."""
    legend: Literal["below", "above", "right", "inside", "none"] | None = None
    """Where the legend is; inside is where it hides least of the first panel. What the marks mean is said below the
    panels in any case. Below by default."""
    labels: dict[str, Text] | None = None
    """What swept parameters are called on axes, in panels' titles and in legends, by their names in the sweep."""
    units: dict[str, Text] | None = None
    """Their units, likewise."""

    @field_validator("formats")
    @classmethod
    def _each_once(cls, formats: list[Any] | None) -> list[Any] | None:
        if formats and len(set(formats)) < len(formats):
            raise ValueError("names a format twice")
        return formats

    def over(self, other: FigureStyle) -> FigureStyle:
        """This style, and where it says nothing, the other one; labels and units one by one."""
        mine, theirs = (style.model_dump(exclude_none=True) for style in (self, other))
        for name in ("labels", "units"):
            if name in mine and name in theirs:
                mine[name] = {**theirs[name], **mine[name]}
        return FigureStyle.model_validate({**theirs, **mine})

    @property
    def inches(self) -> float | None:
        """The width, if one is asked for."""
        if self.width is None:
            return None
        return (COLUMNS[self.width] if isinstance(self.width, str) else self.width) / CENTIMETRES

    @property
    def files(self) -> tuple[Format, ...]:
        """Formats to write."""
        return tuple(name for name in FORMATS if self.formats is None or name in self.formats)
