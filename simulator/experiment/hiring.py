"""Who is hired to execute runs: this process, others on this machine, or a dask cluster that is there already."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from typing_extensions import override

from ...agents.errors import InputError
from ..contract.verdict import Verdict
from .plan import Experiment, PlannedRun
from .processes import OwnProcesses
from .proofs import judge
from .run_once import RunOutcome, run_once
from .workers import Jobs, OnSample, OnStart, Workers


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
        for rank, planned in enumerate(queue):
            if on_start:
                on_start(planned.run)
            if planned.run.point.scenario.protocols[planned.run.protocol].kind in experiment.deadly:
                yield from ((rank, outcome) for _, outcome in self._other_process().work(experiment, [planned]))
            else:
                yield rank, run_once(experiment, planned, on_sample)

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
        from dask.system import cpu_count

        jobs = cpu_count()
    if isinstance(jobs, str | float) or jobs < 1:
        raise InputError(f"jobs = {jobs!r}: must be a number from 1, or auto")
    if jobs == 1:
        return InProcess()
    return OwnProcesses(jobs)
