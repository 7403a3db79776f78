"""Ctrl-C while runs are on other processes: these never see it, and this one does not miss it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType


@contextmanager
def shielded() -> Iterator[None]:
    """Ctrl-C waits for the end of this block, and processes that are started inside never see it.

    A terminal sends it to all processes alike. Threads and processes inherit from those that start them what signals
    they do not receive, so that this also holds for a worker that is started later in the place of a dead one.
    """
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    met: list[int] = []
    resource_tracker.ensure_running()  # which unblocks Ctrl-C, wherever it is started
    before = signal.signal(signal.SIGINT, lambda number, _: met.append(number))
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        signal.signal(signal.SIGINT, before)
    if met:
        raise KeyboardInterrupt


@contextmanager
def heeded() -> Iterator[Sequence[int]]:
    """Ctrl-C is raised inside this block as ever, and noted in what it gives.

    Python drops what is raised while it calls back from a weak reference or collects garbage, so a loop should look.
    """
    met: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield met
        return

    def note(number: int, frame: FrameType | None) -> None:
        met.append(number)
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield met
    finally:
        signal.signal(signal.SIGINT, before)
