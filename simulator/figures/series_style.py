"""Styles of series: colour-blind-safe (Okabe and Ito), distinct in grey by line and marker, and fitted to columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...agents.suggestions import require
from .backend import import_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..language.figure_style import FigureStyle

WIDTH = 3.5
"""Inches: one column of a two-column paper."""

PAGE_WIDTH = 7.16
"""Inches: both columns."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("solid", (0, (5, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++")

SEQUENTIAL, DIVERGING = "viridis", "PuOr_r"
"""Colour maps of quantities, and of differences around 0."""

ALARM = "#B00000"
"""Colour of a legend entry whose claim does not hold, or whose runs broke off."""

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 6.5,
    "legend.title_fontsize": 6.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.formatter.limits": (-4, 4),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "hushnet",  # the same names of parts every time
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
}


LETTERS = tuple(name for name in STYLE if name.endswith(("font.size", "labelsize", "titlesize", "fontsize")))
"""What of the style are sizes of letters."""

GENERIC = {"serif": "dejavuserif", "sans-serif": "dejavusans", "monospace": "dejavusans"}
"""Families that are always there, with the mathematics that goes with them."""


THIN = 0.45
"""Points: width of the lines of single runs."""


class SeriesStyle(NamedTuple):
    """Colour, line, marker and hatch of one series, and its place in the order."""

    colour: str
    line: Any
    marker: str
    hatch: str
    place: int

    @property
    def thin(self) -> dict[str, Any]:
        """Its single runs: as the mean is drawn, but thin, with dashes of the same length and small marks."""
        line = self.line
        if not isinstance(line, str):
            line = (line[0], tuple(part * STYLE["lines.linewidth"] / THIN for part in line[1]))
        look = {"color": self.colour, "linestyle": line, "linewidth": THIN, "alpha": 0.7, "zorder": 1.8}
        return {**look, "marker": self.marker, "markersize": 2, "markeredgewidth": 0}


def series_styles(keys: list[tuple[Any, ...]], order: list[str]) -> list[SeriesStyle]:
    """A protocol looks the same in every figure; where a sweep splits it, its series differ in line and marker.

    The series of a single protocol over one swept number go from dark to light.
    """
    splits = list(dict.fromkeys(key[1:] for key in keys))
    alone = len({key[0] for key in keys}) == 1 and len(splits) > 1
    numbers = all(len(split) == 1 and isinstance(split[0], int | float | np.number) for split in splits)
    colours = ramp(len(splits)) if alone and numbers and len(splits) > 2 else COLOURS
    found = []
    for place, key in enumerate(keys):
        protocol, split = order.index(key[0]), splits.index(key[1:])
        line, mark = (split, place) if len(splits) > 1 else (protocol, protocol)
        found.append(
            SeriesStyle(
                colours[(split if alone else protocol) % len(colours)],
                LINES[line % len(LINES)],
                MARKERS[mark % len(MARKERS)],
                HATCHES[mark % len(HATCHES)],
                place,
            )
        )
    return found


def ramp(count: int) -> tuple[str, ...]:
    """Colours of an ordered quantity, dark to light, told apart in grey and without seeing colours."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return tuple(to_hex(colormaps[SEQUENTIAL](share)) for share in np.linspace(0.0, 0.88, count))


@contextmanager
def house_style(style: FigureStyle | None = None) -> Iterator[None]:
    """Matplotlib's defaults and our style, whatever the user has set, and the user's settings again afterwards.

    Font and size of letters are those of `style`. Raises `InputError` if the font is not installed.
    """
    import_matplotlib()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        if style is not None and style.font is not None:
            matplotlib.rcParams.update(_letters(style.font))
        if style is not None and style.font_size is not None:
            factor = style.font_size / STYLE["axes.labelsize"]
            matplotlib.rcParams.update({name: factor * STYLE[name] for name in LETTERS})
        yield


def _letters(font: str) -> dict[Any, Any]:
    """Settings for a family; letters that it lacks come from the usual one."""
    import_matplotlib()
    from matplotlib.font_manager import get_font_names

    family = {"font.family": [font, STYLE["font.family"]]}
    if font in GENERIC:
        return {**family, "mathtext.fontset": GENERIC[font]}
    require(font, [*GENERIC, *sorted(get_font_names())], f"style.font = {font!r}: is not installed", ("style", "font"))
    own = {"mathtext.rm": font, "mathtext.it": f"{font}:italic", "mathtext.bf": f"{font}:bold", "mathtext.cal": font}
    return {**family, "mathtext.fontset": "custom", **own}


def check_font(style: FigureStyle) -> None:
    """Raise an `InputError` if the font of a style is not installed."""
    if style.font is not None:
        _letters(style.font)


def points(size: float) -> float:
    """Points of letters that are so large in the usual style; to be called within `house_style`."""
    import matplotlib

    return size * matplotlib.rcParams["axes.labelsize"] / STYLE["axes.labelsize"]


def characters(inches: float, per_inch: float) -> int:
    """Return the number of characters that fit into a width in inches, at least 8, given the number per inch."""
    return max(8, round(inches * per_inch / points(1)))


def tick_places(axes: Axes, places: Sequence[float], texts: Sequence[str]) -> None:
    """Ticks of an x axis at places of a sweep; of many the first, the last and evenly chosen others have texts."""
    from matplotlib.ticker import NullLocator

    most = max(2, characters_along(axes) // (1 + max(map(len, texts))))
    named = set(np.linspace(0, len(texts) - 1, min(most, len(texts))).round().astype(int).tolist())
    axes.set_xticks(list(places), [literal(text) if rank in named else "" for rank, text in enumerate(texts)])
    axes.xaxis.set_minor_locator(NullLocator())


def wrapped(text: str, width: int) -> str:
    """The text with every line wrapped between words to a width in characters."""
    lines = (textwrap.wrap(line, width, break_on_hyphens=False) or [""] for line in text.splitlines())
    return "\n".join(part for parts in lines for part in parts)


def characters_along(axes: Axes) -> int:
    """Return the number of characters of an axis label that fit along a panel."""
    assert axes.figure is not None
    return characters(axes.bbox.width / axes.figure.dpi, 17)


def ink_on(colour: Any) -> str:
    """Black or white: what can be read on a colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def literal(text: str) -> str:
    """The text as it is: no mathematics between dollar signs, no leading underscore, which hides a label, no tabs."""
    text = text.replace("$", r"\$").replace("\t", " ")
    return f" {text}" if text.startswith("_") else text
