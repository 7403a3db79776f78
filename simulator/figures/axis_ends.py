"""Ends of axes: what has to be seen with a little room, and broken ends for what is infinite, or 0 on a logarithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAD = 0.05
"""Room on either side, as a share of what is shown."""

BREAK = 0.16
"""Length of a broken end, as a share of the numbers' part of an axis."""

BORDER: dict[str, Any] = {"color": "#555555", "linewidth": 0.5, "linestyle": (0, (1, 2))}


def ends_around(values: NDArray[np.float64], *, log: bool, pad: float = PAD) -> tuple[float, float]:
    """Ends of an axis that shows finite values, at least one and on a logarithm all positive."""
    low, high = (float(end) for end in (values.min(), values.max()))
    there, back = (np.log10, lambda end: 10.0**end) if log else (float, float)
    start, end = there(low), there(high)
    least = 0.05 if log else 1e-9 * max(abs(low), abs(high))  # of what is all but constant
    room = pad * (end - start) if end - start > least else 0.15 if log else 0.05 * max(abs(low), abs(high)) or 0.5
    return float(back(start - room)), float(back(end + room))


def show(axes: Axes, values: NDArray[np.float64]) -> None:
    """Let a y axis, linear or logarithmic, show finite values; without any it stays as it is."""
    if len(values):
        axes.set_ylim(*ends_around(values, log=axes.get_yscale() == "log"))


def include(axes: Axes, level: float) -> None:
    """Widen a y axis, if need be, so that a level is seen."""
    low, high = axes.get_ylim()
    if np.isfinite(level) and not low <= level <= high and (level > 0 or axes.get_yscale() != "log"):
        show(axes, np.array([min(low, level), max(high, level)]))


class BrokenAxis:
    """An axis of numbers from ``low`` to ``high``, if there are any, with broken ends, each with a word.

    Beyond the upper end is what stands for infinity, if anything is infinite; before the lower end 0, where a logarithm
    needs it.
    """

    def __init__(
        self, low: float, high: float, *, log: bool, infinite: str = "", zero: bool = False, known: bool = True
    ) -> None:
        there, back = (np.log10, lambda end: 10.0**end) if log else (float, float)
        start, end = there(low), there(high)
        length = BREAK * (end - start)
        self.numbers, self.log, self.known = (low, high), log, known
        self.limits = back(start - length * zero), back(end + length * bool(infinite))
        self.infinite, self.zero = (float(back(place)) for place in (end + length / 2, start - length / 2))
        self._words = {self.zero: "0"} if zero else {}
        self._words |= {self.infinite: infinite} if infinite else {}

    def place(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return positions on the axis; infinite values, and 0 on a logarithm, lie beyond the axis break."""
        given = np.asarray(values, dtype=np.float64)
        placed = np.where(np.isposinf(given), self.infinite, given)
        return np.where(given <= 0, self.zero, placed) if self.log else placed

    def finish(self, axes: Axes, which: str) -> None:
        """Set limits and ticks of the ``x`` or ``y`` axis of a panel, and show where it is broken."""
        from matplotlib.ticker import LogLocator, MaxNLocator

        low, high = self.numbers
        steps = LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)) if self.log else MaxNLocator(5)
        ticks = [float(f"{tick:.9g}") for tick in steps.tick_values(low, high) if low <= tick <= high and self.known]
        axis = axes.xaxis if which == "x" else axes.yaxis
        axes.set(**{f"{which}scale": "log" if self.log else "linear", f"{which}lim": self.limits})
        axis.set_ticks([*ticks, *self._words], [*(f"{tick:g}" for tick in ticks), *self._words.values()])
        axis.set_ticks([], minor=True)
        for end, place in ((low, self.zero), (high, self.infinite)):
            if place in self._words:
                (axes.axvline if which == "x" else axes.axhline)(end, **BORDER)
