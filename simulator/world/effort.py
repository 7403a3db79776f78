"""Events, processor time and memory that a run has used so far, and their limits.

Events are counted alike on both engines: wake-ups of agents' clocks (also of an agent that is down, until it has left,
is down for good or has fallen silent), copies of messages sent over a link (also repeats, acknowledgements and copies
that are lost), and timers that found something to do. Arrivals are not counted beside the copies, and neither
are absences, record instants and what is exchanged reliably at the start. A run that has had as many as it may ends
before the next wake-up, timer or reaction.

Processor time and memory are polled now and then, so a run may go a little beyond them; where it ends depends on the
machine, but nothing that it has recorded until then does. A single step that goes on for long beyond the processor time
is interrupted (`hushnet.simulator.world.overdue`); its memory, and steps without Python, are polled when they are over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...agents.errors import LimitReached, OutOfResources
from ..network.setting import Limits
from .machine import SHARE, size, total_memory, used_memory
from .overdue import Interrupter

INTERVAL = 0.1
"""Seconds of processor time between two looks at the memory, and about those between two looks of compiled windows."""
OF_THE_MACHINE = ("seconds", "memory")
"""Limits that a run reaches earlier or later, or not at all, on another machine."""
MOST_UNSEEN = 2**20
"""Events that compiled windows run at most between two looks."""


def memory_limit(limits: Limits) -> int:
    """Bytes that a run may take beyond what its process held before, or by default its process may hold in all."""
    return int(SHARE * total_memory()) if limits.memory is None else limits.memory


def raised(reached: Mapping[str, Any], limits: Limits) -> bool:
    """True if a limit that a run once reached admits more by now, so that the run is worth another attempt.

    Parameters
    ----------
    reached : mapping
        ``reached`` and ``most``: the limit's field of `Limits`, and what it admitted.
    limits : Limits
    """
    now = {"events": limits.events, "seconds": limits.seconds, "memory": memory_limit(limits)}
    name, most = reached.get("reached"), reached.get("most")
    return name in now and isinstance(most, int | float) and now[name] > most


class Effort:
    """Counts what a run does and takes.

    Parameters
    ----------
    limits : Limits
    ids : sequence of int or str
        The agents' ids.
    events : callable
        Returns the number of events so far.

    Attributes
    ----------
    wakes : int
        Wake-ups and timers that were counted here: those of the event engine.
    interrupter : Interrupter
        Makes the run's steps.
    """

    def __init__(self, limits: Limits, ids: Sequence[int | str], events: Callable[[], int]) -> None:
        self.limits, self.ids, self.events = limits, ids, events
        self.memory, self.before = memory_limit(limits), used_memory()
        self.most_held = self.memory + (self.before if limits.memory is not None else 0)
        self.interrupter = Interrupter(limits.seconds)
        self.wakes = 0
        self._woken_at = [-1.0] * len(ids)
        self._woken = [0] * len(ids)
        self._unseen = 64
        self.begin()

    def begin(self) -> None:
        """Take the time from now on, in the thread that makes the run."""
        self._began = self._met = time.thread_time()
        self._measured = self._began - INTERVAL

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Do something once for all runs, such as compiling: it is neither interrupted nor counted."""
        began = time.thread_time()
        with self.interrupter.held_off():
            try:
                yield
            finally:
                seconds = time.thread_time() - began
                self._began += seconds
                self.interrupter.extend(seconds)

    @property
    def seconds(self) -> float:
        """Processor time of the run's thread since `begin`."""
        return time.thread_time() - self._began

    def wake(self, agent: int, now: float) -> None:
        """Count a tick of an agent's clock that is about to happen.

        Raises
        ------
        LimitReached
            If it would be one too many, in all or of this agent at one instant.
        """
        self.count(now)
        if now > self._woken_at[agent]:
            self._woken_at[agent], self._woken[agent] = now, 0
        self._woken[agent] += 1
        if self._woken[agent] > self.limits.at_once_each:
            raise LimitReached(
                f"agent {self.ids[agent]!r} at time {now:.6g}: woke {self._woken[agent]:,} times at one instant; "
                "its clock does not go on",
                limit="at_once_each",
                most=self.limits.at_once_each,
            )

    def count(self, now: float) -> None:
        """Count a timer that is about to be looked after; raises like `check`."""
        self.check(now)
        self.wakes += 1

    def check(self, now: float) -> None:
        """See whether anything may still happen.

        Raises
        ------
        LimitReached
            If the run has had its events, its processor time or its memory.
        """
        self._check_events(self.events(), now)
        self.look(now)

    def look(self, now: float) -> None:
        """`check` of processor time and memory alone."""
        met = time.thread_time()
        if met - self._began > self.limits.seconds:
            raise self.too_long(now)
        if met - self._measured < INTERVAL:
            return
        self._measured = met
        if self.before > self.most_held:
            raise OutOfResources(
                f"this process already held {size(self.before)} of memory before the run, of {size(self.memory)} that "
                "it may; what earlier runs have left behind is gone in a new one: run the same command again to go on"
            )
        held = used_memory()
        if held > self.most_held:
            raise LimitReached(
                f"at time {now:.6g}: took {size(held - self.before)} of memory beyond the {size(self.before)} that its "
                f"process held before, and limits.memory admits {size(self.memory)}"
                f"{' in all' if self.limits.memory is None else ''}; raise it, or use fewer agents, edges, data or "
                "samples",
                limit="memory",
                most=self.memory,
            )

    def too_long(self, now: float) -> LimitReached:
        """Error of a run that has used up its processor time, between two steps or within one."""
        return LimitReached(
            f"at time {now:.6g}: took {self.seconds:,.1f} s of processor time, and limits.seconds admits "
            f"{self.limits.seconds:g}; raise it, or stop earlier",
            limit="seconds",
            most=self.limits.seconds,
        )

    def admit(self, events: int, now: float) -> int:
        """Check for compiled windows: up to how many events they may go on before they ask again; raises like `check`.

        Parameters
        ----------
        events : int
            How many there were.
        now : float
        """
        self._check_events(events, now)
        self.look(now)
        met = time.thread_time()
        taken, self._met = met - self._met, met
        if taken < INTERVAL / 2:
            self._unseen = min(2 * self._unseen, MOST_UNSEEN)
        elif taken > 2 * INTERVAL:
            self._unseen = max(int(self._unseen * INTERVAL / taken), 1)
        return min(events + self._unseen, self.limits.events)

    def _check_events(self, events: int, now: float) -> None:
        if events >= self.limits.events:
            raise LimitReached(
                f"at time {now:.6g}: had {events:,} events (wake-ups, messages and timers), and limits.events admits "
                f"{self.limits.events:,}; raise it, or stop earlier",
                limit="events",
                most=self.limits.events,
            )
