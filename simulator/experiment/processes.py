"""Processes of this machine that execute runs and end with this one: started once, and kept warm for all that follows.

Each is a pool of the standard library with one process, so that one that dies costs nothing but what it was at.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any, final

from typing_extensions import override

from ...agents.compilation import announce
from ...agents.errors import OutOfResources
from .dispatch import Elsewhere, WorkerDied
from .plan import Experiment, PlannedRun

ENVIRONMENT = {
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA")},
    "MALLOC_TRIM_THRESHOLD_": "65536",
}
"""Each has one thread throughout, and gives back memory that a run needed."""

CONTEXT = multiprocessing.get_context("spawn")
"""Each starts as a new interpreter, as on a machine of its own: threads and locks of this process are not there."""


@final
class OwnProcesses(Elsewhere):
    """Workers in processes of their own on this machine, so many at most, started when there is something to do."""

    def __init__(self, jobs: int) -> None:
        self.jobs, self._wanted = jobs, 1
        self._idle: list[ProcessPoolExecutor] = []
        self._busy: dict[Future[Any], ProcessPoolExecutor] = {}
        self._processes: set[BaseProcess] = set()

    @override
    def prepare(self, experiment: Experiment, queue: Sequence[PlannedRun]) -> None:
        """Refuse more processes at a time than fit into memory."""
        self._wanted = min(self.jobs, max(len(queue), 1))
        if any(experiment.engine_name(planned.run) != "event" for planned in queue):
            announce()  # once, for all of them
        for scenario in {planned.run.data_key[0]: planned.run.point.scenario for planned in queue}.values():
            experiment.check_memory(scenario, processes=self._wanted)

    @override
    def count(self) -> int:
        return self._wanted

    @override
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        with _shielded(), _environment():
            there = set(multiprocessing.active_children())
            while True:
                pool = self._idle.pop() if self._idle else ProcessPoolExecutor(1, CONTEXT, initializer=_begin)
                try:
                    future = pool.submit(function, *arguments)
                    break
                except BrokenProcessPool:  # its process has died meanwhile, of whatever
                    pool.shutdown()
                except OSError as error:
                    said = f"{self._wanted} processes cannot be started ({error.strerror or error}); use fewer --jobs"
                    raise OutOfResources(said) from error
            self._processes |= set(multiprocessing.active_children()) - there
            self._busy[future] = pool
        return future

    @override
    def result(self, future: Future[Any]) -> Any:
        wait([future])
        pool = self._busy.pop(future)
        if isinstance(future.exception(), BrokenProcessPool):
            pool.shutdown()
            raise WorkerDied
        self._idle.append(pool)
        return future.result()

    @override
    def forget(self, futures: Iterable[Future[Any]]) -> None:
        """End all processes if some of them are still at it: others take their place when they are needed."""
        if any(future in self._busy for future in futures):
            self.close()

    @override
    def close(self) -> None:
        for process in self._processes:
            process.kill()
        for pool in (*self._idle, *self._busy.values()):
            pool.shutdown()
        self._idle, self._busy, self._processes = [], {}, set()


def _begin() -> None:
    """See to it that this process ends, whatever it is doing, as soon as the one that started it has ended."""
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _shielded() -> Iterator[None]:
    """Ctrl-C waits for the end of this block, and processes that are started inside never see it.

    A terminal sends it to all processes alike. Threads and processes inherit from those that start them what signals
    they do not receive.
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
def _environment() -> Iterator[None]:
    """Have processes that are started inside find `ENVIRONMENT`."""
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
