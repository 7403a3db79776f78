"""Runs on the workers of a dask cluster: one that is made for the purpose on this machine, or one that exists.

A cluster that exists is named by its scheduler's address. Whoever made it, it needs nothing but the same versions of
hushnet and its libraries on every worker, and the results' folder under the same path on a file system that all share:

- SSH: ``dask ssh --nthreads 1 host1 host2``, then ``hushnet run NAME --scheduler tcp://host1:8786``.
- Slurm, PBS, LSF, SGE: ``dask_jobqueue.SLURMCluster(cores=1, processes=1, memory="4GB").scale(100)`` in Python, and its
  ``scheduler_address``.
- Kubernetes: the dask operator's ``DaskCluster`` with a shared volume; forward the scheduler's port.
- TLS, wherever others can reach the ports: ``--tls-ca-file ca.pem --tls-cert cert.pem --tls-key key.pem`` for ``dask
  scheduler`` and ``dask worker``, an address ``tls://host:8786``, and for hushnet the environment variables
  ``DASK_DISTRIBUTED__COMM__TLS__CA_FILE``, ``DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT`` and ``...__CLIENT__KEY``.

Start workers with one thread each: a worker executes one run at a time, and pins BLAS to one thread.
"""

from __future__ import annotations

import logging
import os
import signal
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from queue import Empty, SimpleQueue
from typing import Any

import dask.config
from distributed import Client, Future, KilledWorker, LocalCluster, Status
from distributed.client import FutureCancelledError
from distributed.utils import silence_logging_cmgr
from typing_extensions import override

from ...agents.errors import InputError, OutOfResources
from ..contract.verdict import Verdict
from .batches import MOST_DEATHS, SECONDS, judge_there, pack, post, quarantined, work
from .heartbeat import Heartbeat
from .interrupts import heeded, shielded
from .plan import Experiment, PlannedRun
from .run_once import RunOutcome
from .workers import OnSample, OnStart, Workers

MOST_RUNS = 200
"""Runs of a batch at most."""
STARTS = 3
"""Attempts to start processes."""
PATIENCE = 2.0
"""Seconds to take leave from a scheduler."""
LOOK = 1.0
"""Seconds after which to see whether there are more workers."""

GONE = "the scheduler has gone; what was complete is kept, so run again to go on"

ALONE: dict[str, Any] = {
    "threads_per_worker": 1,
    "processes": True,
    "host": "127.0.0.1",
    "security": True,
    "dashboard_address": None,
    "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
    "memory_limit": 0,
    "silence_logs": logging.CRITICAL,
}
"""A cluster of our own: on the loopback interface alone, encrypted with keys that nobody else has, without pages."""

SETTINGS: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": MOST_DEATHS - 1,
    "distributed.scheduler.worker-ttl": None,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.admin.low-level-log-length": 1,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.nanny.pre-spawn-environ": {
        **{f"{library}_NUM_THREADS": 1 for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA")},
        "MALLOC_TRIM_THRESHOLD_": 65536,
    },
}
"""Its workers may be busy for long without answering, have one thread throughout, and nobody watches them or reads what
was sent to them: logs of messages would keep the last thousand, each with all that a worker needs to know."""

SILENCE = ExitStack()
"""Silences logging for good: connections to killed workers are complained about after everything is closed."""


class Cluster(Workers):
    """Executes runs through a dask scheduler; short ones many at a time."""

    @abstractmethod
    def connect(self, queue: Sequence[PlannedRun], experiment: Experiment) -> Client:
        """The cluster, with the workers that it may use for some runs."""

    def check_alive(self) -> None:
        """See to the workers, now and then while there is nothing else to do; by default others do."""
        return

    @override
    def work(
        self,
        experiment: Experiment,
        queue: Sequence[PlannedRun],
        *,
        on_start: OnStart | None = None,
        on_sample: OnSample | None = None,
    ) -> Generator[tuple[int, RunOutcome], None, None]:
        """Let the cluster work; what begins and what a run samples is known to the workers only."""
        client = self.connect(queue, experiment)
        with Heartbeat.begun(experiment.folder.resolve()) as heartbeat:
            yield from _Dispatch(client, experiment, queue, heartbeat, self.check_alive).outcomes()

    @override
    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        client = self.connect([planned], experiment)
        with Heartbeat.begun(experiment.folder.resolve()) as heartbeat:
            packed = post(experiment, [planned], heartbeat.folder)
            try:
                verdict, failure = client.submit(judge_there, packed, pack(planned), pure=False).result()
            except KilledWorker:
                return Verdict("unchecked", f"it killed {MOST_DEATHS} processes that checked it")
            except (FutureCancelledError, ModuleNotFoundError, OSError) as error:
                raise _translated(error) from error
        if failure is not None:
            raise failure
        assert verdict is not None
        return verdict


class OwnCluster(Cluster):
    """Processes of this machine that talk over the loopback interface, encrypted, and end with this one.

    Parameters
    ----------
    jobs : int
        Processes at most.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._cluster: LocalCluster | None = None
        self._client: Client | None = None
        self._settings = ExitStack()  # as long as processes are started, which may be at any time
        self._wanted = 0

    @override
    def connect(self, queue: Sequence[PlannedRun], experiment: Experiment) -> Client:
        """Start the workers and connect to them.

        Raises
        ------
        OutOfResources
            If as many runs at a time do not fit into memory.
        """
        wanted = min(self.jobs, max(len(queue), 1))
        self._wanted = max(self._wanted, wanted)
        for scenario in {planned.run.data_key[0]: planned.run.point.scenario for planned in queue}.values():
            experiment.check_memory(scenario, processes=wanted)
        with shielded():
            if self._cluster is None:
                SILENCE.enter_context(silence_logging_cmgr(logging.CRITICAL))
                self._settings.enter_context(dask.config.set(SETTINGS))
                self._cluster = _started(wanted)
                self._client = Client(self._cluster, set_as_default=False)
            elif wanted > len(self._cluster.workers):
                self._cluster.scale(wanted)
        assert self._client is not None
        return self._client

    @override
    def check_alive(self) -> None:
        """Dask gives up a process whose successor started too slowly; it is started here.

        Without this nobody would make the runs that wait for it.
        """
        if self._cluster is None:
            return
        for name, nanny in list(self._cluster.workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                self._cluster.workers.pop(name, None)
        if len(self._cluster.workers) < self._wanted:
            self._cluster.scale(self._wanted)

    @override
    def close(self) -> None:
        if self._cluster is None or self._client is None:
            self._settings.close()
            return
        for nanny in list(self._cluster.workers.values()):
            nanny.close_gracefully()  # so that it starts no other worker
            if nanny.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(nanny.pid, signal.SIGKILL)
        for connection in (self._client, self._cluster):
            with suppress(TimeoutError):
                connection.close(timeout=PATIENCE)
        self._cluster = self._client = None
        self._settings.close()


class GivenCluster(Cluster):
    """Workers of a scheduler that somebody else has started; what dask would log about them is said in a sentence.

    Parameters
    ----------
    address : str
        ``tcp://host:8786`` or ``tls://host:8786``.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._client: Client | None = None
        self._quiet = ExitStack()

    @override
    def connect(self, queue: Sequence[PlannedRun], experiment: Experiment) -> Client:
        del queue, experiment
        if self._client is None:
            self._quiet.enter_context(silence_logging_cmgr(logging.CRITICAL))
            try:
                self._client = Client(self.address, set_as_default=False)
            except (OSError, ValueError, TypeError, RuntimeError) as error:
                reason = str(error).splitlines()[0].rstrip(".:") if str(error) else type(error).__name__
                raise InputError(f"--scheduler {self.address}: cannot be reached ({reason})") from error
        return self._client

    @override
    def close(self) -> None:
        """Close the connection; the workers are not ours, and stay."""
        if self._client is not None:
            self._client.close(timeout=PATIENCE)
            self._client = None
        self._quiet.close()


def _started(workers: int) -> LocalCluster:
    """A cluster of our own; once more from the beginning if a process dies before it is part of it."""
    for start in range(1, STARTS + 1):
        try:
            return LocalCluster(n_workers=workers, **ALONE)
        except (RuntimeError, AssertionError, OSError) as error:
            if start == STARTS:
                reason = str(error) or type(error).__name__
                raise OutOfResources(f"{workers} processes cannot be started ({reason}); use fewer --jobs") from error
    raise AssertionError


class _Dispatch:
    """Hands runs out in batches, one to every worker at a time, and takes back what did not fit into a batch's time."""

    def __init__(
        self,
        client: Client,
        experiment: Experiment,
        queue: Sequence[PlannedRun],
        heartbeat: Heartbeat,
        check_alive: Callable[[], None],
    ) -> None:
        self.client, self.experiment, self.queue, self.check_alive = client, experiment, queue, check_alive
        self.heartbeat = heartbeat
        self.post = post(experiment, queue, heartbeat.folder)
        self.waiting, self.alone = deque(range(len(queue))), set[int]()
        self.open: dict[Any, tuple[Future, list[int]]] = {}
        self.done: SimpleQueue[Any] = SimpleQueue()

    def outcomes(self) -> Iterator[tuple[int, RunOutcome]]:
        """(Rank, outcome) of every run, in order of completion."""
        with heeded() as met:
            yield from self._outcomes(met)

    def _outcomes(self, met: Sequence[int]) -> Iterator[tuple[int, RunOutcome]]:
        try:
            while self.waiting or self.open:
                if met:
                    raise KeyboardInterrupt
                try:
                    self._send()
                except OSError as error:
                    raise OutOfResources(GONE) from error
                try:
                    future, batch = self.open.pop(self.done.get(timeout=LOOK))
                except Empty:
                    self.check_alive()
                    continue
                outcomes, error = self._received(future, batch)
                yield from zip(batch, outcomes, strict=False)
                self.waiting.extendleft(reversed(batch[len(outcomes) :]))
                if error is not None:
                    raise error
        finally:
            self.client.cancel([future for future, _ in self.open.values()], force=True)

    def _send(self) -> None:
        known: Any = self.client.nthreads()
        workers = max(1, len(known))
        while self.waiting and len(self.open) < workers:
            batch = self._next(len(self.waiting) // (2 * workers))
            future = self.client.submit(work, self.post, pack([self.queue[k] for k in batch]), SECONDS, pure=False)
            self.open[future.key] = future, batch
            future.add_done_callback(lambda done: self.done.put(done.key))

    def _next(self, most: int) -> list[int]:
        batch = [self.waiting.popleft()]
        while self.waiting and len(batch) < min(most, MOST_RUNS) and not self.alone & {batch[-1], self.waiting[0]}:
            batch.append(self.waiting.popleft())
        return batch

    def _received(self, future: Future, batch: list[int]) -> tuple[list[RunOutcome], Exception | None]:
        try:
            return future.result()
        except KilledWorker:
            if len(batch) == 1:
                return [quarantined(self.experiment, self.queue[batch[0]], MOST_DEATHS, self.heartbeat)], None
            self.alone.update(batch)
            return [], None
        except (FutureCancelledError, ModuleNotFoundError) as error:
            return [], _translated(error)


def _translated(error: Exception) -> Exception:
    """What an error of the scheduler's means to a user; other errors as they are."""
    if isinstance(error, FutureCancelledError | OSError):
        return OutOfResources(GONE)
    if isinstance(error, ModuleNotFoundError):
        return InputError(f"a worker has no {error.name}; install the same version of hushnet on all of them")
    return error
