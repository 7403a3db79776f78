"""Runs on the workers of a dask cluster that exists.

It is named by its scheduler's address. Whoever made it, it needs nothing but the same versions of
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, final

from distributed import Client, KilledWorker
from distributed.utils import silence_logging_cmgr
from typing_extensions import override

from ...agents.errors import InputError, OutOfResources
from .dispatch import MOST_DEATHS, Elsewhere, WorkerDied
from .plan import Experiment, PlannedRun

PATIENCE = 2.0
"""Seconds to take leave from a scheduler."""


@final
class GivenCluster(Elsewhere):
    """Workers of a scheduler that somebody else has started; what dask would log about them is said in a sentence."""

    deaths: ClassVar[int] = MOST_DEATHS  # dask has tried again by itself

    def __init__(self, address: str) -> None:
        self.address, self._quiet = address, ExitStack()
        self._client: Client | None = None
        self._executor: Executor | None = None

    @override
    def prepare(self, experiment: Experiment, queue: Sequence[PlannedRun]) -> None:
        del experiment, queue
        if self._client is not None:
            return
        self._quiet.enter_context(silence_logging_cmgr(logging.CRITICAL))
        try:
            self._client = Client(self.address, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            reason = str(error).splitlines()[0].rstrip(".:") if str(error) else type(error).__name__
            raise InputError(f"--scheduler {self.address}: cannot be reached ({reason})") from error
        self._executor = self._client.get_executor(pure=False)

    @override
    def count(self) -> int:
        assert self._client is not None
        with _reached():
            known: Any = self._client.nthreads()
        return len(known)

    @override
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        assert self._executor is not None
        with _reached():
            return self._executor.submit(function, *arguments)

    @override
    def result(self, future: Future[Any]) -> Any:
        try:
            with _reached():
                return future.result()
        except KilledWorker as error:
            raise WorkerDied from error
        except ModuleNotFoundError as error:
            said = f"a worker has no {error.name}; install the same version of hushnet on all of them"
            raise InputError(said) from error

    @override
    def forget(self, futures: Iterable[Future[Any]]) -> None:
        for future in futures:
            future.cancel()

    @override
    def close(self) -> None:
        """Close the connection; the workers are not ours, and stay."""
        if self._client is not None:
            self._client.close(timeout=PATIENCE)
            self._client = None
        self._quiet.close()


@contextmanager
def _reached() -> Iterator[None]:
    """Say what it means if the scheduler cannot be reached any more."""
    try:
        yield
    except (CancelledError, OSError) as error:
        raise OutOfResources("the scheduler has gone; what was complete is kept, so run again to go on") from error
