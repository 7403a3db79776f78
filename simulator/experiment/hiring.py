"""Choice of workers: this process, others on this machine, or a dask cluster that is there already."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import final

from typing_extensions import override

from ...agents.errors import InputError
from ..contract.verdict import Verdict
from .plan import Experiment, PlannedRun
from .processes import OwnProcesses
from .proofs import judge
from .run_once import RunOutcome
from .stacks import in_stacks, run_stack
from .time_left import processes_of
from .workers import Jobs, OnSample, OnStart, Workers


@final
class InProcess(Workers):
    """One run after the other, in this process; those of a protocol that may end it, in another one."""

    @override
    def work(
        self,
        experiment: Experiment,
        queue: Sequence[PlannedRun],
        *,
        on_start: OnStart | None = None,
        on_sample: OnSample | None = None,
    ) -> Generator[tuple[int, RunOutcome], None, None]:
        with OwnProcesses(1) as other:
            for ranks in in_stacks(experiment, queue):
                stack = [queue[rank] for rank in ranks]
                for planned in stack:
                    if on_start:
                        on_start(planned.run)
                if stack[0].kind in experiment.deadly:
                    made = [outcome for _, outcome in other.work(experiment, stack)]
                else:
                    made = run_stack(experiment, stack, on_sample)
                yield from zip(ranks, made, strict=True)

    @override
    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        return judge(experiment, planned.run)


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
    return InProcess() if jobs == 1 else OwnProcesses(jobs)
