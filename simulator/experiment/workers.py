"""Who executes runs: this process, a cluster of its own on this machine, or one that is there already."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Literal

from ...agents.errors import InputError
from ..contract.verdict import Verdict
from ..world.world import World
from .attempts import Answer, attempt
from .plan import Experiment, PlannedRun, Run
from .proofs import judge

OnStart = Callable[[Run], None]
OnSample = Callable[[World], None]
Jobs = int | Literal["auto"]


class Workers(ABC):
    """Executes runs; ``with`` ends the processes that were started for it."""

    @abstractmethod
    def work(
        self,
        experiment: Experiment,
        queue: Sequence[PlannedRun],
        *,
        on_start: OnStart | None = None,
        on_sample: OnSample | None = None,
    ) -> Generator[tuple[int, Answer], None, None]:
        """Execute every run that is not there yet; gives (its rank, what became of it) in order of completion.

        Parameters
        ----------
        experiment : Experiment
        queue : sequence of PlannedRun
            See `hushnet.simulator.experiment.plan.plan`.
        on_start : callable, optional
            Told of every run before it begins, where that is known.
        on_sample : callable, optional
            Called with the world at every record instant, where there is one in this process.

        Raises
        ------
        HushnetError
            If something does not admit further runs; what was complete is kept.
        """

    @abstractmethod
    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        """What the privacy contract of a run's protocol comes to, found where runs are executed.

        Raises
        ------
        HushnetError
            If something does not admit any runs.
        """

    def close(self) -> None:  # noqa: B027 (most have nothing to end)
        """End processes at once, whatever they are doing: what is complete has been saved."""

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InProcess(Workers):
    """One run after the other, in this process."""

    def work(
        self,
        experiment: Experiment,
        queue: Sequence[PlannedRun],
        *,
        on_start: OnStart | None = None,
        on_sample: OnSample | None = None,
    ) -> Generator[tuple[int, Answer], None, None]:
        """See `Workers.work`."""
        for rank, planned in enumerate(queue):
            if on_start:
                on_start(planned.run)
            yield rank, attempt(experiment, planned, on_sample)

    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        """See `Workers.judge`."""
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
        from .cluster import Existing

        return Existing(scheduler)
    if jobs == "auto":
        from dask.system import cpu_count

        jobs = cpu_count()
    if isinstance(jobs, str | float) or jobs < 1:
        raise InputError(f"jobs = {jobs!r}: must be a number from 1, or auto")
    if jobs == 1:
        return InProcess()
    from .cluster import Local

    return Local(jobs)
