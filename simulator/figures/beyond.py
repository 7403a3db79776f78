"""Marks of what is infinite, beyond the end of an axis of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .series_style import SeriesStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADROOM = 0.16
"""Share of a panel for them."""


def height_of(place: int) -> float:
    """Height, as a share of the panel, at which the series of this place marks what is infinite."""
    return 1 - HEADROOM * (0.25 + 0.5 * (place % 4) / 3)


def mark_beyond(axes: Axes, x: Any, look: SeriesStyle) -> None:
    """Open marks above the axis, each series at a height of its own."""
    if len(x):
        style = {"color": look.colour, "linestyle": look.line, "marker": look.marker, "linewidth": 0.8}
        height = np.full(len(x), height_of(look.place))
        axes.plot(x, height, transform=axes.get_xaxis_transform(), markerfacecolor="white", clip_on=False, **style)


def room_above(shared: Sequence[Axes], *, known: bool, word: str) -> None:
    """End a y axis below the marks of what is infinite, and name those.

    Parameters
    ----------
    shared : sequence of Axes
        That have the axis in common.
    known : bool
        Whether there is any number on it.
    word : str
        What stands for infinity.
    """
    axes = shared[0]
    low, high = axes.get_ylim()
    scale = axes.yaxis.get_transform()
    start, end = scale.transform(np.array([low, high]))
    length = (end - start) / (1 - HEADROOM)
    middle, top = scale.inverted().transform(start + length * np.array([1 - HEADROOM / 2, 1.0]))
    ticks = [tick for tick in axes.get_yticks() if low <= tick <= high] if known else []
    minor = [tick for tick in axes.get_yticks(minor=True) if low <= tick <= high] if known else []
    labels = axes.yaxis.get_major_formatter().format_ticks(ticks)
    small = axes.yaxis.get_minor_formatter()
    axes.set_ylim(low, top)
    axes.set_yticks([*ticks, middle], [*labels, word])
    axes.set_yticks(minor, minor=True)
    axes.yaxis.set_minor_formatter(small)
    border = {"color": "#555555", "linewidth": 0.5, "linestyle": (0, (1, 2))}
    for each in shared:
        each.plot([0, 1], [1 - HEADROOM, 1 - HEADROOM], transform=each.transAxes, **border)
