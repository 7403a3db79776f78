"""The fast engine for broadcasts to ``latest`` inboxes: lazy delivery and compiled windows of wake-ups.

Messages and absences cost no event: whoever could have heard a message looks when it next wakes
(`hushnet.simulator.lazy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..agents.agent import WAKE
from ..agents.compiled import announce
from ..protocols.kernel import Kernel
from . import lazy, windows
from .presence import AHEAD
from .windowed import Pause, Windowed

if TYPE_CHECKING:
    from .world import World


@final
class Broadcasts(Windowed):
    """Every agent steps when its own clock wakes it, with the newest of what it has heard.

    Parameters
    ----------
    world : World
    compiled : bool
        Whether to use the protocol's compiled step, if it has one.

    Attributes
    ----------
    kernel : Kernel or None
        The protocol's compiled step, if it is used.

    Raises
    ------
    ValueError
        If the protocol's compiled form is one of an exchange.
    """

    def __init__(self, world: World, *, compiled: bool = True) -> None:
        kernel = world.protocol.kernel(world.state) if compiled else None
        if kernel is not None and not isinstance(kernel, Kernel):
            raise ValueError(
                f"{type(world.protocol).__name__} does not exchange pairwise, so its kernel must be a Kernel"
            )
        self.kernel = kernel
        super().__init__(world, compiled=kernel is not None)
        announce(windows.run_window, "the fast engine")
        if self.kernel is not None:
            self.post.inbox.refresh = lambda: lazy.copy_all(self.post.mail)
        self._call = self._arguments()

    def _arguments(self) -> tuple[Any, ...]:
        """What a window is called with besides the mail and its limit."""
        own = self.world.setting.network.start != "zero"
        kernel = self.kernel
        if kernel is None:
            none = Kernel(windows.no_step, (), (), np.empty((0, 0)), np.empty(0, dtype=bool), "")
            return False, none.step, *none.arguments, none.model, none.charged, own, 0, 1
        (kind,) = self.world.layout.messages.values()
        size = self.world.network.size(int(np.max(kind.width)))
        return True, kernel.step, *kernel.arguments, kernel.model, kernel.charged, own, size, kind.vectors

    def wind_up(self) -> Sequence[int]:
        """See `Windowed.wind_up`."""
        return windows.wind_up(self.post.mail)

    def next_event(self) -> tuple[float, int] | None:
        """See `Windowed.next_event`."""
        mail = self.post.mail
        if mail.counts[lazy.HEAP] == 0:
            return None
        return float(mail.heap_time[0]), WAKE + int(mail.heap_agent[0])

    def window(self, limit: float, forced: bool) -> Pause:
        """See `Windowed.window`; it ends where availability is not known."""
        assert self.presence is not None
        finish, mail, top = self.world.finish, self.post.mail, float(self.post.mail.heap_time[0])
        if top > self.presence.drawn - AHEAD / 2:
            mail = self._look_ahead(top, limit)
        mail.counts[lazy.ACTIVE], mail.counts[lazy.SHORT] = finish.active, finish.short
        why, agent, now = windows.run_window(mail, min(limit, self.presence.drawn), forced, *self._call)
        finish.active, finish.short = int(mail.counts[lazy.ACTIVE]), int(mail.counts[lazy.SHORT])
        if why not in (windows.REACHED, windows.IDLE, windows.FULL):
            self.stopped_at(float(now))
        if self.compiled:
            self.world.activations = int(mail.counts[lazy.ACTIVATIONS])
        return self._handle(why, agent)

    def _look_ahead(self, top: float, limit: float) -> lazy.Mail:
        """Know availability some way beyond the next wake-up, and forget what lies behind."""
        assert self.presence is not None
        mail = self.presence.draw(top + AHEAD if top < limit else top, self.post.mail)
        settled = min(top, limit)
        unfinished = mail.counts[lazy.UNFINISHED]
        lazy.take_in_all(mail, settled, int(mail.counts[lazy.BARRIER]) if unfinished else lazy.EVER)
        self.post.mail = mail = self.presence.forget(settled, mail)
        return mail

    def _handle(self, why: int, index: int) -> Pause:
        """Do what a window stopped for."""
        world, mail = self.world, self.post.mail
        agent = world.agents[max(index, 0)]
        if why == windows.FULL:
            self.post.make_room(1, int(world.setting.graph.degrees.max(initial=0)))
        elif why == windows.AWAKE:
            agent.tick = int(mail.ticks[index])
            self.stepping(lambda: world.step(agent))
            mail = self.post.mail
            mail.silent[index], mail.updates[index] = agent.silent, agent.updates
        elif why == windows.COUNTED:
            agent.tick, agent.updates = int(mail.ticks[index]), int(mail.updates[index])
            world.traffic.vectors = int(mail.counts[lazy.VECTORS])
            if world.observer:
                world.observer.woke(world, agent)
            self.stepping(lambda: world.check_limits(agent))
        elif why == windows.OVER:
            self.clock_ended(index)
            return Pause.WAIT
        elif why == windows.FINISHED:
            world.finish.check()
        elif why == windows.DIVERGED:
            agent.updates = int(mail.updates[index])
            world.check_finite(agent)
        elif why == windows.IDLE:
            return Pause.DONE
        return Pause.WAIT if why == windows.REACHED else Pause.GO_ON

    def take_in(self, now: float, barrier: int) -> None:
        """See `Windowed.take_in`."""
        lazy.take_in_all(self.post.mail, now, barrier)

    @property
    def reason(self) -> str:
        """See `Windowed.reason`."""
        assert self.kernel is not None
        return self.kernel.reason
