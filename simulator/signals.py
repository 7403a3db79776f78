"""Ctrl-C and SIGTERM end a command, wherever Python is when they come."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

AGAIN = 2.0
"""Seconds within which a second SIGTERM is taken for the first one."""
LATER = 0.05
"""Seconds after which an interrupt that Python has dropped is raised again."""


@contextmanager
def terminable() -> Iterator[Sequence[float]]:
    """SIGTERM, as from Slurm or ``timeout``, ends what is done inside as Ctrl-C does; gives when there were some.

    Whoever sends it to a process and its group reaches the same process twice, which must not disturb it twice.
    """
    asked: list[float] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if not waiting:
            again = len(asked) > 0 and time.monotonic() - asked[-1] < AGAIN
            asked.append(time.monotonic())
            if again:
                return
        handler = signal.getsignal(signal.SIGINT)
        (handler if callable(handler) else signal.default_int_handler)(number, frame)

    waiting: list[threading.Timer] = []
    before = signal.signal(signal.SIGTERM, ask)
    try:
        with _never_dropped(waiting):
            yield asked
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):  # which also ends what the main thread waits for
        heeded = callable(signal.getsignal(signal.SIGINT))  # in the background of a shell it is not
        number = signal.SIGINT if heeded else signal.SIGTERM
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main()


@contextmanager
def _never_dropped(waiting: list[threading.Timer]) -> Iterator[None]:
    """Raise an interrupt again that Python drops, with a traceback: one that met a finalizer or a call back from C.

    `waiting` has timers of those that were dropped.
    """
    default: Callable[[Any], object] = sys.unraisablehook

    def dropped(what: Any) -> None:
        if not issubclass(what.exc_type, KeyboardInterrupt):
            default(what)
            return
        waiting.append(threading.Timer(LATER, _interrupt))
        waiting[-1].daemon = True
        waiting[-1].start()

    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = default
        for timer in waiting:
            timer.cancel()
