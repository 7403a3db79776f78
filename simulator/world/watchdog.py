"""Events, processor time and memory that a run has used so far, and their limits.

Events are counted alike on both engines: wake-ups of agents' clocks (also of an agent that is down, until it has left,
is down for good or has fallen silent), copies of messages sent over a link (also repeats, acknowledgements and copies
that are lost), and timers that found something to do. Arrivals are not counted beside the copies, and neither
are absences, record instants and what is exchanged reliably at the start. A run that has had as many as it may ends
before the next wake-up, timer or reaction.

Processor time and memory are polled now and then, so a run may go a little beyond them; where it ends depends on the
machine, but nothing that it has recorded until then does. A single step that goes on for long beyond the processor time
is interrupted; its memory, and steps without Python, are polled when they are over.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import psutil
from threadpoolctl import ThreadpoolController

from ...agents.errors import HushnetError, Interruption, LimitReached, OutOfResources
from ...agents.input_files import read_bytes
from ..network.setting import Limits

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

    `reached` names the limit's field of `Limits`, and the ``most`` that it admitted.
    """
    now = {"events": limits.events, "seconds": limits.seconds, "memory": memory_limit(limits)}
    name, most = reached.get("reached"), reached.get("most")
    return name in now and isinstance(most, int | float) and now[name] > most


class Watchdog:
    """Counts what a run does and takes; a function returns the number of events so far.

    Of ``runs`` that are made side by side each looks at the memory that much less often; ``wakes`` are wake-ups and
    timers that were counted here: those of the event engine. An interrupter makes the run's steps.
    """

    def __init__(self, limits: Limits, ids: Sequence[int | str], events: Callable[[], int]) -> None:
        self.limits, self.ids, self.events = limits, ids, events
        self.memory, self.before = memory_limit(limits), used_memory()
        self.most_held = self.memory + (self.before if limits.memory is not None else 0)
        self.interrupter = Interrupter(limits.seconds)
        self.runs, self.wakes = 1, 0
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

        Raises `LimitReached` if it would be one too many, in all or of this agent at one instant.
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

        Raises `LimitReached` if the run has had its events, its processor time or its memory.
        """
        self._check_events(self.events(), now)
        self.poll(now)

    def poll(self, now: float) -> None:
        """`check` of processor time and memory alone."""
        met = time.thread_time()
        if met - self._began > self.limits.seconds:
            raise self.too_long(now)
        if met - self._measured < INTERVAL * self.runs:
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
        """Check for compiled windows after so many events, and say up to how many they may go; raises like `check`."""
        self._check_events(events, now)
        self.poll(now)
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


SHARE = 0.9
"""Share of the machine's memory that may be planned with, or be held by a run that has no other limit."""

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""What a container may hold at most, by either version of control groups."""


def total_memory() -> int:
    """Bytes of this machine, or of the container that this process is in."""
    total = int(psutil.virtual_memory().total)
    for path in _LIMITS:
        try:
            total = min(total, int(read_bytes(path)))
        except (HushnetError, ValueError):  # none, or "max"
            continue
    return total


def available_memory() -> int:
    """Bytes that could be had without moving others out of memory."""
    return min(int(psutil.virtual_memory().available), total_memory())


def used_memory() -> int:
    """Bytes that this process holds in memory: its resident set, with the libraries and data that runs share."""
    return int(_process(os.getpid()).memory_info().rss)


@lru_cache(maxsize=1)
def _process(number: int) -> psutil.Process:
    """A process, which is looked up once: asking for its name takes longer than asking for its memory."""
    return psutil.Process(number)


def one_thread() -> AbstractContextManager[Any]:
    """Have libraries of linear algebra use one thread within a block: runs share a machine, and order decides bits."""
    return _libraries(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """These libraries, looked for anew only where more modules have been imported since: looking takes long."""
    del modules
    return ThreadpoolController()


def size(count: float) -> str:
    """A number of bytes in words."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,.0f} bytes"


Made = TypeVar("Made")

GRACE = 1.0
"""Seconds of processor time beyond a limit: whatever is between two looks may take as long."""
AGAIN = 1.0
"""Seconds after which a step is interrupted once more that has caught what was raised."""


class Overdue(Interruption):
    """Raised inside a step whose run has had its processor time; no error that a step may catch as one of its own."""


class Interrupter:
    """Interrupts steps of a run after so many seconds of its thread's processor time.

    ``with`` it the run is made, in one thread, whose time counts from there on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._in_step = self._raising = self._raised = False
        self._over = threading.Event()
        self._watch: threading.Thread | None = None
        self._thread = self._clock = 0
        self._end = 0.0

    def __enter__(self) -> Interrupter:
        if hasattr(time, "pthread_getcpuclockid"):
            self._thread = threading.get_ident()
            self._clock = time.pthread_getcpuclockid(self._thread)
            self._end = self._spent() + self.seconds + GRACE
            self._watch = threading.Thread(target=self._wait, name="limits.seconds", daemon=True)
            self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._watch is not None:
            self._watch.join()

    def step(self, make: Callable[..., Made], *given: Any) -> Made:
        """Make a step, or a part of one, which may be interrupted; gives what it does.

        Raises `Overdue` if the run has had its time.
        """
        self._in_step = True
        try:
            return make(*given)
        finally:
            self._in_step = False
            while self._raising:
                time.sleep(0)
            if self._raised:
                self._raised = False
                _take_back(self._thread)

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """Do a part of a step that must not be interrupted: numba, for one, would be left with half of its work."""
        in_step, self._in_step = self._in_step, False
        while self._raising:
            time.sleep(0)
        try:
            yield
        finally:
            self._in_step = in_step

    def extend(self, seconds: float) -> None:
        """Admit so much more processor time."""
        self._end += seconds

    def _spent(self) -> float:
        """Processor time of the thread that makes the run."""
        return time.clock_gettime(self._clock)

    def _wait(self) -> None:
        """Wait for the end, and from then on see to it that no step goes on."""
        while not self._over.is_set():
            left = self._end - self._spent()
            if left > 0:
                self._over.wait(min(left, threading.TIMEOUT_MAX))
                continue
            self._raising = True
            if self._in_step:
                self._raised = True
                _raise_in(self._thread, Overdue)
            self._raising = False
            self._over.wait(AGAIN)


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    """Have a thread raise something as soon as it runs Python again, in place of what it has not yet raised."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _take_back(thread: int) -> None:
    """Have this thread raise what it may not have raised yet, here, where nobody sees it.

    Asked to raise nothing, CPython goes on believing that something is to be raised: everything becomes slower, and
    up to 3.11 a debugger's or profiler's next call never returns.
    """
    try:
        _raise_in(thread, Overdue)
        while True:
            time.sleep(0)
    except Overdue:
        pass
