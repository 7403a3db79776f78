"""How figures look: column width, colour-blind-safe (Okabe and Ito), and told apart in grey by line and marker."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

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
"""Of a legend entry whose claim does not hold, or whose runs broke off."""

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
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
}


class Look(NamedTuple):
    """How one series is drawn."""

    colour: str
    line: Any
    marker: str
    hatch: str
    place: int


def looks(keys: list[tuple[Any, ...]], order: list[str]) -> list[Look]:
    """A protocol looks the same in every figure; where a sweep splits it, its series differ in line and marker.

    The series of a single protocol over one swept number go from dark to light.
    """
    splits = list(dict.fromkeys(key[1:] for key in keys))
    one_protocol = len({key[0] for key in keys}) == 1
    numbers = all(len(split) == 1 and isinstance(split[0], int | float | np.number) for split in splits)
    colours = ramp(len(splits)) if one_protocol and numbers and len(splits) > 2 else COLOURS
    found = []
    for place, key in enumerate(keys):
        protocol, split = order.index(key[0]), splits.index(key[1:])
        colour = split if one_protocol and len(splits) > 1 else protocol
        line, marker = (split, place) if len(splits) > 1 else (protocol, protocol)
        hatch = place if len(splits) > 1 else protocol
        found.append(
            Look(
                colours[colour % len(colours)],
                LINES[line % len(LINES)],
                MARKERS[marker % len(MARKERS)],
                HATCHES[hatch % len(HATCHES)],
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
def house_style() -> Iterator[None]:
    """Matplotlib's defaults and our style, whatever the user has set, and the user's settings again afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def sparse_ticks(axis: Axis) -> None:
    """On a short logarithmic axis label 2 and 5 between the powers of ten, and nothing on a long one."""
    from matplotlib.ticker import FuncFormatter

    def label(value: float, _position: int | None = None) -> str:
        low, high = axis.get_view_interval()
        power = np.floor(np.log10(value))
        digit = round(value / 10**power)
        return rf"${digit}\times10^{{{int(power)}}}$" if digit in (2, 5) and high / low < 50 else ""

    axis.set_minor_formatter(FuncFormatter(label))


def thin_ticks(axes: Axes) -> None:
    """Fewer ticks on a linear x axis whose numbers would run into each other."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_xlim()
    for ticks in (7, 6, 5, 4, 3):
        if not isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
            return
        labels = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
        boxes = [label.get_window_extent() for label in labels]
        if all(right.x0 - left.x1 > 0.5 * left.height for left, right in pairwise(boxes)):
            return
        axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))


def wrapped(text: str, width: int) -> str:
    """The text with every line wrapped between words to a width in characters."""
    lines = (textwrap.wrap(line, width, break_on_hyphens=False) or [""] for line in text.splitlines())
    return "\n".join(part for parts in lines for part in parts)


def characters_along(axes: Axes) -> int:
    """How many characters of an axis label go along a panel."""
    assert axes.figure is not None
    points = 72 * axes.bbox.width / axes.figure.dpi
    return max(12, int(points / (0.52 * STYLE["axes.labelsize"])))


def literal(text: str) -> str:
    """The text as it is: no mathematics between dollar signs, and no leading underscore, which hides a label."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
