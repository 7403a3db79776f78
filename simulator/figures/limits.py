"""Ends of y axes: what has to be seen, and a little room around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAD = 0.05
"""Room on either side, as a share of what is shown."""


def show(axes: Axes, values: NDArray[np.float64]) -> None:
    """Let a y axis, linear or logarithmic, show finite values; without any it stays as it is."""
    if not len(values):
        return
    scale = axes.yaxis.get_transform()
    low, high = scale.transform(np.array([values.min(), values.max()]))
    logarithmic = axes.get_yscale() == "log"
    least = 0.05 if logarithmic else 1e-9 * max(abs(low), abs(high))  # of what is all but constant
    pad = PAD * (high - low) if high - low > least else 0.15 if logarithmic else 0.05 * max(abs(low), abs(high)) or 0.5
    axes.set_ylim(*scale.inverted().transform(np.array([low - pad, high + pad])))


def include(axes: Axes, level: float) -> None:
    """Widen a y axis, if need be, so that a level is seen."""
    low, high = axes.get_ylim()
    if np.isfinite(level) and not low <= level <= high and (level > 0 or axes.get_yscale() != "log"):
        show(axes, np.array([min(low, level), max(high, level)]))
