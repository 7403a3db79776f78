"""The batched engine for broadcasts to ``latest`` inboxes: lazy delivery and compiled windows of wake-ups.

Messages and absences cost no event: whoever could have heard a message looks when it next wakes
(`hushnet.simulator.rules.lazy`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

from typing_extensions import override

from ...rules import lazy
from ...tables import tallies
from . import windows
from .wake_windows import WakeWindows


@final
class Broadcasts(WakeWindows):
    """Every agent steps when its own clock wakes it, with the newest of what it has heard.

    Parameters
    ----------
    world : World
    """

    late = True

    @override
    def init_clocks(self) -> Sequence[int]:
        return windows.init_clocks(self.transport.tables)

    @override
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """Run a window, which ends where availability is not known."""
        assert self.presence is not None
        top = float(self.transport.tables.wakes.time[0])
        if self.presence.drawn <= top < math.inf:
            self._look_ahead(top, limit)
        return windows.run_window(self.transport.tables, min(limit, self.presence.drawn), forced, *self._call)

    def _look_ahead(self, top: float, limit: float) -> None:
        """Know availability some way beyond the next wake-up, and forget what lies behind."""
        assert self.presence is not None
        self.transport.notes.make_room(0)
        run = self.presence.draw(top, self.transport.tables)
        settled = min(top, limit)
        unfinished = run.counts[tallies.UNFINISHED]
        lazy.deliver_all_pending(run, settled, int(run.counts[tallies.BARRIER]) if unfinished else lazy.EVER)
        self.transport.tables = self.presence.forget(settled, run)

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        self.transport.notes.make_room(0)
        lazy.deliver_all_pending(self.transport.tables, now, barrier)
