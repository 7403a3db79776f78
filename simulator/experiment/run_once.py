"""One run, wherever it is executed: skip it if it is there, keep its result, or keep why it failed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from ...agents.authors import author_place, contained
from ...agents.compilation import seconds_spent
from ...agents.errors import INTERRUPTED, HushnetError, OutOfResources, details_of, words_of
from ..analysis.results import RunResult
from ..storage.files import out_of_order, put_file, writing
from ..storage.store import Store
from ..world.watchdog import raised
from ..world.world import World
from .execute import execute
from .plan import Experiment, PlannedRun, Run

FAILED = "failed"
"""Status of a run that raised an error nobody foresaw, or killed its worker again and again."""


class ThreadLeft(Exception):
    """A run whose protocol has started a thread that is not over when the run is."""

    def __init__(self, thread: Thread, where: str) -> None:
        super().__init__(
            f"the thread {thread.name!r} that it has started lives on after the run; join it, or make it a daemon"
        )
        self.where = where


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of a run; small enough to be sent between processes by the thousand."""

    run_id: str | None
    """None if the run failed before its data were there."""
    status: str
    """That of the manifest (``complete``, or one of `hushnet.simulator.experiment.execute.FAILURES`), or `FAILED`."""
    there: bool = False
    """Whether it was complete already, and was not made again."""
    error: str = ""
    """One sentence about a run that did not complete."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """`seconds` and `cpu_seconds`: Wall-clock and processor time that it took, data included."""
    compiling: float = 0.0
    """Seconds of these for which its process compiled, or waited for one that did."""

    @property
    def own_seconds(self) -> float | None:
        """Seconds that the run took by itself; None if it was there."""
        return None if self.there else max(self.seconds - self.compiling, 0.0)


def run_once(
    experiment: Experiment, planned: PlannedRun, on_sample: Callable[[World], None] | None = None
) -> RunOutcome:
    """Make sure that a run is in the store; `on_sample` is called with the world at every record instant.

    Raises `HushnetError` if the scenario, the data or this machine does not admit it: others would fare no better.
    """
    store, run_id = Store(experiment.folder, experiment.token), None
    began, worked, compiled = time.perf_counter(), time.process_time(), seconds_spent()
    there, status, error = False, FAILED, ""
    if planned.kind in experiment.unrepeatable:
        error = experiment.unrepeatable[planned.kind]
        keep_failure(experiment, planned, error)
        return RunOutcome(None, FAILED, error=error)
    try:
        run_id = experiment.run_id(planned.run)
        there = not experiment.metrics and is_there(experiment, planned.run, run_id)
        if there:
            manifest = store.manifest(run_id)
        else:
            with contained() as left:
                result = execute(experiment, planned.run, on_sample)
            if left:
                raise ThreadLeft(*left[0])
            keep(experiment, {run_id: (planned.run, result)})
            manifest = result.manifest
        status, error = manifest["status"], manifest["error"]
    except HushnetError:
        raise
    except MemoryError as exhausted:
        raise OutOfResources(
            f"{experiment.loaded.scenario.scenario}: {planned.run.place}: there is not enough memory for it; use "
            "fewer --jobs, agents, edges, data or samples"
        ) from exhausted
    except INTERRUPTED:
        raise
    except BaseException as failure:  # a class of an author's own may derive from it
        trouble = out_of_order(failure, failure.filename or experiment.folder) if isinstance(failure, OSError) else None
        if trouble is not None:
            raise trouble from failure
        where = failure.where if isinstance(failure, ThreadLeft) else author_place(failure)
        error = f"{type(failure).__name__}: {words_of(failure)}"
        error = f"{where}: {error}" if where else error
        keep_failure(experiment, planned, details_of(failure))
    times = (time.perf_counter() - began, time.process_time() - worked, seconds_spent() - compiled)
    return RunOutcome(run_id, status, there, error, *times)


def keep(experiment: Experiment, made: Mapping[str, tuple[Run, RunResult]]) -> None:
    """Save what has come of runs, by their ids, with the graphs that they ran on: as many as there is room for."""
    store = Store(experiment.folder, experiment.token)
    try:
        for run, result in made.values():
            result.manifest["topology"]["graph"] = store.save_graph(experiment.data(run)[1])
        store.save_all({run_id: result for run_id, (_, result) in made.items()})
    except OutOfResources:
        if len(made) == 1:
            raise
        for run_id, one in made.items():
            keep(experiment, {run_id: one})


def is_there(experiment: Experiment, run: Run, run_id: str) -> bool:
    """True if a run need not be made: it is complete, and reached no limit that has been raised since."""
    store = Store(experiment.folder, experiment.token)
    if store.state(run_id) != "complete":
        return False
    reached = store.manifest(run_id).get("limit")
    return reached is None or not raised(reached, run.point.scenario.limits.limits())


def failure_file(experiment: Experiment, planned: PlannedRun) -> Path:
    """Path of the file with the details of a failed run."""
    return experiment.folder / "failures" / f"{planned.name}.txt"


def keep_failure(experiment: Experiment, planned: PlannedRun, details: str) -> None:
    """Keep what is known about a run that failed."""
    text = f"{experiment.loaded.scenario.scenario}: {planned.run.place}\nprocess {os.getpid()}\n\n{details}"
    with writing(experiment.folder):
        put_file(text.encode(errors="backslashreplace"), failure_file(experiment, planned), within=experiment.folder)
