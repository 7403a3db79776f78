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
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, final

from distributed import Client, Future, KilledWorker
from distributed.client import FutureCancelledError
from distributed.utils import silence_logging_cmgr
from typing_extensions import override

from ...agents.errors import InputError, OutOfResources
from .dispatch import Answer, Elsewhere, Hands, Killed
from .plan import Experiment, PlannedRun

PATIENCE = 2.0
"""Seconds to take leave from a scheduler."""
GONE = "the scheduler has gone; what was complete is kept, so run again to go on"


@final
class ThroughClient(Hands):
    """The workers that a scheduler has, through its client.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._open: dict[Any, Future] = {}
        self._done: SimpleQueue[Any] = SimpleQueue()

    @override
    def count(self) -> int:
        try:
            known: Any = self.client.nthreads()
        except OSError as error:
            raise OutOfResources(GONE) from error
        return len(known)

    @override
    def give(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            future = self.client.submit(function, *arguments, pure=False)
        except OSError as error:
            raise OutOfResources(GONE) from error
        self._open[future.key] = future
        future.add_done_callback(lambda done: self._done.put(done.key))
        return future.key

    @override
    def take(self, seconds: float) -> tuple[Any, Answer] | None:
        try:
            key = self._done.get(timeout=seconds)
            return (key, partial(_answer, self._open.pop(key))) if key in self._open else None
        except Empty:
            return None

    @override
    def forget(self, given: Iterable[Any]) -> None:
        self.client.cancel([self._open.pop(key) for key in given if key in self._open], force=True)


@final
class GivenCluster(Elsewhere):
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
    def hands(self, queue: Sequence[PlannedRun], experiment: Experiment) -> Hands:
        del queue, experiment
        if self._client is None:
            self._quiet.enter_context(silence_logging_cmgr(logging.CRITICAL))
            try:
                self._client = Client(self.address, set_as_default=False)
            except (OSError, ValueError, TypeError, RuntimeError) as error:
                reason = str(error).splitlines()[0].rstrip(".:") if str(error) else type(error).__name__
                raise InputError(f"--scheduler {self.address}: cannot be reached ({reason})") from error
        return ThroughClient(self._client)

    @override
    def close(self) -> None:
        """Close the connection; the workers are not ours, and stay."""
        if self._client is not None:
            self._client.close(timeout=PATIENCE)
            self._client = None
        self._quiet.close()


def _answer(future: Future) -> Any:
    """What a worker has answered; an error of the scheduler's says what it means to a user."""
    try:
        return future.result()
    except KilledWorker as error:
        raise Killed from error
    except (FutureCancelledError, OSError) as error:
        raise OutOfResources(GONE) from error
    except ModuleNotFoundError as error:
        raise InputError(f"a worker has no {error.name}; install the same version of hushnet on all of them") from error
