"""What compiled windows of wake-ups have in common, whether they are asynchronous steps or ends of rounds."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.compilation.callbacks import as_callback
from ....protocols.base import Out, View
from ....protocols.kernel import ADDRESSED, KIND, PORT_COLUMNS, SIZE, WIDTH, Kernel
from ....protocols.steps.signatures import STEP
from ...rules.lazy import EVER
from ...tables import tallies
from ...tables.priorities import WAKE
from ...world.world import World
from . import windows
from .driver import BatchedDriver, Pause, checked


class WakeWindows(BatchedDriver):
    """A driver whose compiled events are wake-ups, at each of which an agent takes one step.

    Parameters
    ----------
    world : World
    compiled : bool
        Whether to use the protocol's compiled step, if it has one.

    Raises
    ------
    ValueError
        If the protocol's compiled form is one of an exchange.
    """

    def __init__(self, world: World, *, compiled: bool) -> None:
        super().__init__(world, compiled=compiled)
        self.ports, self.rows = np.empty((0, PORT_COLUMNS), dtype=np.int64), np.empty(0, dtype=np.int64)
        complaint = f"{type(world.protocol).__name__} runs without exchanges in pairs, so its kernel must be a Kernel"
        self._call = self._arguments(checked(self.kernel, Kernel, complaint))
        if self.kernel is not None:
            self.transport.tables = self.transport.tables._replace(read=self.kernel.table.read)

    @override
    def next_event(self) -> tuple[float, int] | None:
        run = self.transport.tables
        if run.counts[tallies.HEAP] == 0:
            return None
        return float(run.heap_time[0]), WAKE + int(run.heap_agent[0])

    @override
    def at_work(self) -> tuple[int, float, str]:
        """Who wakes stays on top of the heap until its step is over."""
        run = self.transport.tables
        return int(run.heap_agent[0]), float(run.heap_time[0]), "step"

    @override
    def text_again(self, view: View, out: Out) -> None:
        self.world.protocol.wake(view, out)

    @override
    def window(self, limit: float, forced: bool) -> Pause:
        stop, counts = self.world.stop_condition, self.transport.tables.counts
        counts[tallies.ACTIVE], counts[tallies.SHORT] = stop.active, stop.short
        why, agent, now = self.run_compiled(limit, forced)
        stop.active, stop.short = int(counts[tallies.ACTIVE]), int(counts[tallies.SHORT])
        if why not in (windows.REACHED, windows.IDLE, windows.FULL):
            self.stopped_at(float(now))
        if self.compiled:
            self.world.activations = int(counts[tallies.ACTIVATIONS])
        after_step = why in (windows.COUNTED, windows.OVER, windows.FINISHED, windows.DIVERGED)
        self.tell(min(limit, float(now)), int(counts[tallies.BARRIER]) if after_step else EVER)
        return self.handle(why, agent)

    @abstractmethod
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        """Run the compiled function with `_call`; why it stopped, at which agent and when."""

    @abstractmethod
    def take_step(self, agent: Agent) -> None:
        """Let an agent that has woken take its step in Python."""

    def _arguments(self, kernel: Kernel | None) -> tuple[Any, ...]:
        """What a window is called with besides its limit and the arrays that are replaced when they grow."""
        if kernel is None:
            return False, windows.no_step, np.empty(0, dtype=np.int64), self.ports, self.rows
        kinds = list(self.world.layout.messages.values())
        self.ports = kernel.ports
        if not len(self.ports):
            self.ports = np.array([[0, False, kinds[0].vectors, np.max(kinds[0].width), 0, True]], dtype=np.int64)
        self.ports[:, SIZE] = [self.world.network.size(int(width)) for width in self.ports[:, WIDTH]]
        degree = int(self.world.setting.graph.degrees.max(initial=0))
        self.rows = np.zeros(int(np.where(self.ports[:, ADDRESSED], degree, 1).sum()), dtype=np.int64)
        return True, as_callback(kernel.step, STEP), kernel.table.values, self.ports, self.rows

    def make_room(self) -> None:
        """See to it that whatever the next event brings about fits in."""
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
            agent.tick = int(run.ticks[index])
            self.stepping(lambda: self.take_step(agent))
            self.transport.notes.tell()
            run = self.transport.tables
            run.silent[index], run.updates[index] = agent.silent, agent.updates
        elif why == windows.COUNTED:
            agent.tick, agent.updates = int(run.ticks[index]), int(run.updates[index])
            self.stepping(lambda: self.check_limits(agent))
        elif why == windows.OVER:
            self.clock_ended(index)
            return Pause.WAIT
        elif why == windows.FINISHED:
            world.stop_condition.check()
        elif why == windows.DIVERGED:
            agent.updates = int(run.updates[index])
            kind = list(world.layout.messages)[int(self.ports[0, KIND])]
            world.check_finite(agent, told=(kind, run.pool[self.rows[0], : self.ports[0, WIDTH]]))
        elif why == windows.LOOK:
            self.look()
        elif why == windows.IDLE:
            return Pause.DONE
        return Pause.WAIT if why == windows.REACHED else Pause.GO_ON
