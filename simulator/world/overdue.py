"""A limit on processor time that holds within a step, too: one that takes too long is interrupted.

Between steps a run looks at its limits by itself (`hushnet.simulator.world.effort`). A single step without an end would
never come to that, so a second thread waits until the run has had its time and some more, and raises `Overdue` in the
thread that makes the step. Python can do so wherever it runs Python: a kernel, or one call of NumPy, ends first.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from ...agents.errors import Interruption

Made = TypeVar("Made")

GRACE = 1.0
"""Seconds of processor time beyond a limit: whatever is between two looks may take as long."""
AGAIN = 1.0
"""Seconds after which a step is interrupted once more that has caught what was raised."""


class Overdue(Interruption):
    """Raised inside a step whose run has had its processor time; no error that a step may catch as one of its own."""


class Interrupter:
    """Interrupts steps of a run that has had its processor time; ``with`` it the run is made, in one thread.

    Parameters
    ----------
    seconds : float
        Processor time of that thread from ``with`` on.
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

        Raises
        ------
        Overdue
            If the run has had its time.
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
