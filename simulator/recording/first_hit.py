"""The very event by which a run meets its target, found by making the run again and looking closely where it did."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..metrics.trace import HitWindow, Row
from .recorder import Recorder

if TYPE_CHECKING:
    from ..world.world import World

MET = "the target was met"
"""Why a run ended that was made again to see where it met its target."""


class FirstHit:
    """Looks at a target's metric within a window, at every stride of activations, and ends the run once it is met.

    Parameters
    ----------
    recorder : Recorder
        What would measure the run.
    window : HitWindow
    on_sample : callable, optional
        Called with the world now and then.

    Attributes
    ----------
    rows : list of tuple
        The rows of the trace at the first look that meets the target, after those of the look before it, as far as that
        lies in the window; those of the last look if none does.
    """

    def __init__(self, recorder: Recorder, window: HitWindow, on_sample: Callable[[World], None] | None = None) -> None:
        self.recorder, self.window, self.on_sample = recorder, window, on_sample
        self.rows: list[Row] = []
        self._before: list[Row] = []
        self._over = False

    def sample(self, world: World, *, final: bool) -> None:
        """Look, if the run has come to the window and not beyond it."""
        if self.on_sample:
            self.on_sample(world)
        if self._over or world.activations < self.window.after:
            return
        rows = [row for row in self.recorder.closely(world, self.window.metric) if math.isfinite(row[-1])]
        if world.activations == self.window.after:
            self._before = rows
            if not final:
                world.record_each(self.window.stride)
            return
        for *_, metric, statistic, value in rows:
            if (metric, statistic) == (self.window.metric, self.window.statistic) and self.window.met(value):
                self._over = True
        self.rows = [*self._before, *rows]
        self._before, self._over = rows, self._over or world.activations >= self.window.until
        if self._over:
            world.stop_condition.end(MET)
