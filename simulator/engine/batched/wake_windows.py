"""Driver of compiled windows of wake-ups, which are asynchronous steps or ends of rounds."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from typing_extensions import override

from ...rules.lazy import EVER
from ...tables import tallies
from ...tables.priorities import WAKE
from ...world.world import World
from . import windows
from .driver import BatchedDriver, Pause


class WakeWindows(BatchedDriver):
    """A driver whose compiled events are wake-ups, at each of which an agent takes one step.

    Parameters
    ----------
    world : World
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.ports, self.rows = self.planned.ports, self.planned.rows
        self._call: tuple[Any, ...] = self.planned.plan, self.ports, self.rows

    @override
    def next_event(self) -> tuple[float, int] | None:
        run = self.transport.tables
        if run.counts[tallies.HEAP] == 0:
            return None
        return float(run.wakes.time[0]), WAKE + int(run.wakes.agent[0])

    @override
    def window(self, limit: float, forced: bool) -> Pause:
        stop, counts = self.world.stop_condition, self.transport.tables.counts
        counts[tallies.ACTIVE], counts[tallies.SHORT] = stop.active, stop.short
        why, agent, now = self.run_compiled(limit, forced)
        stop.active, stop.short = int(counts[tallies.ACTIVE]), int(counts[tallies.SHORT])
        if why not in (windows.REACHED, windows.IDLE, windows.FULL):
            self.stopped_at(float(now))
        self.world.activations = int(counts[tallies.ACTIVATIONS])
        after_step = why in (windows.COUNTED, windows.SHOWN, windows.OVER, windows.FINISHED)
        self.tell(min(limit, float(now)), int(counts[tallies.BARRIER]) if after_step else EVER)
        return self.handle(why, agent)

    @abstractmethod
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """Run the compiled function with `_call`; why it stopped, at which agent and when."""

    @override
    def make_room(self) -> None:
        """See to it that whatever the next event brings about fits in."""
        self.make_if_full()
        most = int(self.world.setting.graph.degrees.max(initial=0))
        self.transport.make_room(max(1, len(self.rows)), most * max(1, len(self.ports)))
        self.transport.notes.make_room(most * max(1, len(self.ports)) + 1)
