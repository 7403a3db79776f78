"""What compiled windows of wake-ups have in common, whether they are asynchronous steps or ends of rounds."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from typing_extensions import override

from ....agents.agent import Agent
from ...rules.lazy import EVER
from ...tables import tallies
from ...tables.priorities import WAKE
from ...world.world import World
from . import windows
from .driver import BatchedDriver, Pause
from .plan import PORT_COLUMNS, empty_plan


class WakeWindows(BatchedDriver):
    """A driver whose compiled events are wake-ups, at each of which an agent takes one step.

    Parameters
    ----------
    world : World
    plans : bool
        Whether to plan steps, where their protocol admits it.
    """

    def __init__(self, world: World, *, plans: bool) -> None:
        super().__init__(world, plans=plans)
        self.ports, self.rows = np.empty((0, PORT_COLUMNS), dtype=np.int64), np.empty(0, dtype=np.int64)
        plan = empty_plan(0, 0, 0, 0)
        if self.planned is not None:
            self.ports, self.rows, plan = self.planned.ports, self.planned.rows, self.planned.plan
        self._call: tuple[Any, ...] = self.planned is not None, plan, self.ports, self.rows

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
        if self.planned is not None:
            self.world.activations = int(counts[tallies.ACTIVATIONS])
        after_step = why in (windows.COUNTED, windows.SHOWN, windows.OVER, windows.FINISHED)
        self.tell(min(limit, float(now)), int(counts[tallies.BARRIER]) if after_step else EVER)
        return self.handle(why, agent)

    @abstractmethod
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """Run the compiled function with `_call`; why it stopped, at which agent and when."""

    @abstractmethod
    def take_step(self, agent: Agent) -> None:
        """Let an agent that has woken take its step in Python."""

    def make_room(self) -> None:
        """See to it that whatever the next event brings about fits in."""
        self.make_if_full()
        most = int(self.world.setting.graph.degrees.max(initial=0))
        self.transport.make_room(max(1, len(self.rows)), most * max(1, len(self.ports)))
        self.transport.notes.make_room(most * max(1, len(self.ports)) + 1)

    def handle(self, why: int, index: int) -> Pause:
        """Do what a window stopped for."""
        world, run = self.world, self.transport.tables
        agent = world.agents[max(index, 0)]
        if why == windows.FULL:
            self.make_room()
        elif why == windows.AWAKE:
            agent.tick = int(run.agents.ticks[index])
            self.stepping(lambda: self.take_step(agent))
            self.transport.notes.tell()
            run = self.transport.tables
            run.agents.silent[index], run.agents.updates[index] = agent.silent, agent.updates
        elif why == windows.COUNTED:
            agent.tick, agent.updates = int(run.agents.ticks[index]), int(run.agents.updates[index])
            self.stepping(lambda: self.check_limits(agent))
        elif why == windows.OVER:
            self.clock_ended(index)
            return Pause.WAIT
        elif why == windows.FINISHED:
            world.stop_condition.check()
        elif why == windows.LOOK:
            self.look()
        elif why == windows.ENDS:
            self.end_as_before()
        elif why == windows.IDLE:
            return Pause.DONE
        return Pause.WAIT if why == windows.REACHED else Pause.GO_ON
