"""Who is hired to execute runs: this process, others on this machine, or a dask cluster that is there already."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import final

from typing_extensions import override

from ...agents.errors import InputError
from ..contract.verdict import Verdict
from .plan import Experiment, PlannedRun, wake_ups
from .processes import OwnProcesses
from .proofs import judge
from .run_once import RunOutcome, is_there, run_once
from .stacks import MOST_RUNS, in_stacks, run_stack, stack_of
from .time_left import processes_of
from .workers import Jobs, OnSample, OnStart, Workers

START, RUN, WAKE_UP = 3.0, 0.02, 2e-5
"""Seconds of processor time, about: to start two processes, and of a run and of each of its wake-ups."""


@final
class InProcess(Workers):
    """One run after the other, in this process; those of a protocol that may end it, in another one."""

    def __init__(self) -> None:
        self._apart: Workers | None = None

    @override
    def work(
        self,
        experiment: Experiment,
        queue: Sequence[PlannedRun],
        *,
        on_start: OnStart | None = None,
        on_sample: OnSample | None = None,
    ) -> Generator[tuple[int, RunOutcome], None, None]:
        order = in_stacks(experiment, queue)
        while order:
            count = stack_of(experiment, [queue[rank] for rank in order[:MOST_RUNS]])
            ranks, order = order[:count], order[count:]
            for rank in ranks:
                if on_start:
                    on_start(queue[rank].run)
            made = run_stack(experiment, [queue[rank] for rank in ranks], on_sample) if count > 1 else None
            if made is not None:
                yield from zip(ranks, made, strict=True)
                continue
            for rank in ranks:
                yield rank, self._made(experiment, queue[rank], on_sample)

    def _made(self, experiment: Experiment, planned: PlannedRun, on_sample: OnSample | None) -> RunOutcome:
        """What becomes of a run that is made by itself."""
        if planned.run.point.scenario.protocols[planned.run.protocol].kind not in experiment.deadly:
            return run_once(experiment, planned, on_sample)
        ((_, outcome),) = self._other_process().work(experiment, [planned])
        return outcome

    @override
    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        return judge(experiment, planned.run)

    def _other_process(self) -> Workers:
        if self._apart is None:
            self._apart = OwnProcesses(1)
        return self._apart

    @override
    def close(self) -> None:
        if self._apart is not None:
            self._apart.close()
            self._apart = None


@final
class AsItTakes(Workers):
    """Other processes, unless all runs together take less than starting these would.

    Parameters
    ----------
    jobs : int
        Processes at most.
    """

    def __init__(self, jobs: int) -> None:
        self._here, self._others = InProcess(), OwnProcesses(jobs)

    @override
    def work(
        self,
        experiment: Experiment,
        queue: Sequence[PlannedRun],
        *,
        on_start: OnStart | None = None,
        on_sample: OnSample | None = None,
    ) -> Generator[tuple[int, RunOutcome], None, None]:
        who = self._here if is_short(experiment, queue) else self._others
        yield from who.work(experiment, queue, on_start=on_start, on_sample=on_sample)

    @override
    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        return self._others.judge(experiment, planned)

    @override
    def close(self) -> None:
        self._here.close()
        self._others.close()


def is_short(experiment: Experiment, queue: Sequence[PlannedRun]) -> bool:
    """Whether what is not there yet of some runs takes less than starting processes for it, about.

    Never where code of a user's own is run, for that may end its process.
    """
    if experiment.metrics or any(experiment.source(planned.run) is not None for planned in queue):
        return False
    seconds = 0.0
    for planned in queue:
        if not is_there(experiment, planned.run, experiment.run_id(planned.run)):
            seconds += RUN + wake_ups(planned.run.point.scenario) * WAKE_UP
        if seconds >= START:
            return False
    return True


def hire(jobs: Jobs = 1, scheduler: str | None = None) -> Workers:
    """The workers that somebody asks for.

    Parameters
    ----------
    jobs : int or "auto"
        Processes on this machine; 1 is this process, ``auto`` one for every processor that this process may use.
    scheduler : str, optional
        Address of a dask scheduler whose workers are used instead, ``tcp://host:8786`` or ``tls://host:8786``.

    Raises
    ------
    InputError
        If the number of processes is none.
    """
    if scheduler is not None:
        from .cluster import GivenCluster

        return GivenCluster(scheduler)
    if jobs == "auto":
        jobs = processes_of(jobs)
    if isinstance(jobs, str | float) or jobs < 1:
        raise InputError(f"jobs = {jobs!r}: must be a number from 1, or auto")
    if jobs == 1:
        return InProcess()
    return AsItTakes(jobs)
