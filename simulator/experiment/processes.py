"""Processes of this machine that execute runs and end with this one: started once, and kept warm for all that follows.

Each has a pipe to this process, over which it is sent a function with its arguments and answers, and nobody else can
reach it. One that dies, of whatever, is replaced; what it was at is given to another one, three times at most.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any, final

from typing_extensions import override

from ...agents.errors import OutOfResources
from .batches import MOST_DEATHS
from .dispatch import Answer, Elsewhere, Hands, Killed
from .interrupts import shielded
from .plan import Experiment, PlannedRun

STARTS = 3
"""Processes that may die in a row before they are there."""
ENVIRONMENT = {
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA")},
    "MALLOC_TRIM_THRESHOLD_": "65536",
}
"""Each has one thread throughout, and gives back memory that a run needed."""

CONTEXT = multiprocessing.get_context("spawn")
"""Each starts as a new interpreter, as on a machine of its own: threads and locks of this process are not there."""


@dataclass(eq=False)
class _Task:
    """A function with its arguments, and what became of it."""

    packed: bytes
    wanted: bool = True
    deaths: int = 0


@dataclass
class _Worker:
    """A process, whether it has ever said anything, and what it is at."""

    process: BaseProcess
    begun: bool = False
    task: _Task | None = None


@final
class Processes(Hands):
    """Processes that are started when they are needed, and replaced when they die."""

    def __init__(self) -> None:
        self._wanted = self._stillborn = 0
        self._workers: dict[Connection, _Worker] = {}
        self._waiting: deque[_Task] = deque()

    def start(self, wanted: int) -> None:
        """See to it that there are so many, without waiting until they can work.

        Raises
        ------
        OutOfResources
            If the system refuses another one.
        """
        self._wanted = max(self._wanted, wanted)
        while len(self._workers) < self._wanted:
            with shielded(), _environment():
                here, there = CONTEXT.Pipe()
                process = CONTEXT.Process(target=serve, args=(there,), daemon=True)
                try:
                    process.start()
                except OSError as error:
                    raise self._too_many(error.strerror or str(error)) from error
                there.close()
                self._workers[here] = _Worker(process)

    def end(self) -> None:
        """End all of them at once, whatever they are doing."""
        workers, self._workers = self._workers, {}
        for link, worker in workers.items():
            worker.process.kill()
            link.close()
        for worker in workers.values():
            worker.process.join()
        self._wanted = 0
        self._waiting.clear()

    @override
    def count(self) -> int:
        return len(self._workers)

    @override
    def give(self, function: Callable[..., Any], *arguments: Any) -> _Task:
        task = _Task(pickle.dumps((function, arguments)))
        self._waiting.append(task)
        self._hand_out()
        return task

    @override
    def take(self, seconds: float) -> tuple[_Task, Answer] | None:
        end = monotonic() + seconds
        while ready := wait(list(self._workers), max(0.0, end - monotonic())):
            found = self._heard(ready[0])  # pyright: ignore[reportArgumentType] (it was among them)
            if found is not None and found[0].wanted:
                return found
        return None

    @override
    def forget(self, given: Iterable[_Task]) -> None:
        for task in given:
            task.wanted = False

    def _hand_out(self) -> None:
        """Send what waits to those that do nothing."""
        for link, worker in self._workers.items():
            if worker.begun and worker.task is None and self._waiting:
                worker.task = self._waiting.popleft()
                with suppress(OSError):  # it is dead, and heard of as such
                    link.send_bytes(worker.task.packed)

    def _heard(self, link: Connection) -> tuple[_Task, Answer] | None:
        """An answer, or that a process has begun or died."""
        worker = self._workers[link]
        try:
            said = link.recv_bytes()
        except (EOFError, OSError):
            return self._lost(link)
        task, worker.task = worker.task, None
        worker.begun, self._stillborn = True, 0
        self._hand_out()
        return None if task is None else (task, partial(_answer, said))

    def _lost(self, link: Connection) -> tuple[_Task, Answer] | None:
        """Replace a process that has died; what it was at is answered, or given to another one."""
        worker = self._workers.pop(link)
        worker.process.kill()  # it may only have closed its end
        worker.process.join()
        link.close()
        self._stillborn += not worker.begun
        if self._stillborn == STARTS:
            raise self._too_many(f"{STARTS} have ended before they had begun")
        task = worker.task
        if task is not None:
            task.deaths += 1
            if task.deaths < MOST_DEATHS and task.wanted:
                self._waiting.appendleft(task)
        self.start(self._wanted)
        self._hand_out()
        return None if task is None or task.deaths < MOST_DEATHS else (task, _killed)

    def _too_many(self, reason: str) -> OutOfResources:
        return OutOfResources(f"{self._wanted} processes cannot be started ({reason}); use fewer --jobs")


@final
class OwnProcesses(Elsewhere):
    """Workers in processes of their own on this machine.

    Parameters
    ----------
    jobs : int
        Processes at most.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs, self._processes = jobs, Processes()

    @override
    def hands(self, queue: Sequence[PlannedRun], experiment: Experiment) -> Processes:
        """Start as many as can be used.

        Raises
        ------
        OutOfResources
            If as many runs at a time do not fit into memory.
        """
        wanted = min(self.jobs, max(len(queue), 1))
        for scenario in {planned.run.data_key[0]: planned.run.point.scenario for planned in queue}.values():
            experiment.check_memory(scenario, processes=wanted)
        self._processes.start(wanted)
        return self._processes

    @override
    def close(self) -> None:
        self._processes.end()


def serve(link: Connection) -> None:
    """What a process does: say that it is there, and call what it is sent, until nobody is left who would send more."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    link.send_bytes(b"")
    while True:
        try:
            function, arguments = pickle.loads(link.recv_bytes())
            try:
                answer = True, function(*arguments)
            except Exception as error:
                answer = False, error
            link.send_bytes(pickle.dumps(answer))
        except (EOFError, BrokenPipeError):
            return


def _end_with_parent() -> None:
    """End this process, whatever it is doing, as soon as the one that started it has ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _answer(said: bytes) -> Any:
    given, answer = pickle.loads(said)
    if not given:
        raise answer
    return answer


def _killed() -> Any:
    raise Killed


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
