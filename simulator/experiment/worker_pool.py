"""Choice of workers: this process, others on this machine, or a dask cluster that is there already."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import final

from typing_extensions import override

from ...agents.errors import InputError
from ..contract.verdict import Verdict
from .contract_replays import judge
from .plan import Experiment, PlannedRun, wake_ups
from .processes import OwnProcesses
from .stacks import in_stacks, run_stack
from .time_left import key_of, processes_of, time_left
from .workers import Jobs, OnSample, OnStart, Outcomes, Queue, Workers

WORTH = 10.0
"""Seconds of work from which on other processes are started, which takes each some 4 s of processor time."""
MANY = 2e6
"""Wake-ups that take more than that, whatever an agent does in them."""


@final
class InProcess(Workers):
    """One run after the other, in this process; those of a protocol that may end it, in another one."""

    @override
    def work(
        self, experiment: Experiment, queue: Queue, *, on_start: OnStart = None, on_sample: OnSample = None
    ) -> Outcomes:
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


@final
class AsNeeded(Workers):
    """This process, and others as soon as what is left takes longer than starting them: one a processor, if they fit.

    How long it takes is measured, after a guess from the number of wake-ups.
    """

    def __init__(self) -> None:
        self._here, self._others = InProcess(), None

    @override
    def processes(self) -> int:
        return 1 if self._others is None else self._others.processes()

    @override
    def work(
        self, experiment: Experiment, queue: Queue, *, on_start: OnStart = None, on_sample: OnSample = None
    ) -> Outcomes:
        runs = [planned.run for planned in queue]
        left, on = time_left(runs), {"on_start": on_start, "on_sample": on_sample}
        many = sum(wake_ups(run.point.scenario) for run in runs)
        is_long = self._others is not None or MANY < many < math.inf
        waiting = deque(in_stacks(experiment, queue))
        while waiting:
            if is_long and len(waiting) + len(waiting[0]) > 2 and (others := self._start_others(experiment, queue)):
                ranks = [rank for stack in waiting for rank in stack]
                for rank, outcome in others.work(experiment, [queue[rank] for rank in ranks]):
                    yield ranks[rank], outcome
                return
            ranks = waiting.popleft()
            for rank, outcome in self._here.work(experiment, [queue[rank] for rank in ranks], **on):
                left.ended(key_of(queue[ranks[rank]].run), outcome.own_seconds)
                yield ranks[rank], outcome
            is_long = (left.seconds() or (0.0, 0.0))[0] > WORTH

    def _start_others(self, experiment: Experiment, queue: Sequence[PlannedRun]) -> OwnProcesses | None:
        """Other processes, as many as processors and memory admit; None if that is one."""
        if self._others is None:
            scenarios = {planned.run.data_key[0]: planned.run.point.scenario for planned in queue}.values()
            most = min([processes_of("auto"), *map(experiment.processes_that_fit, scenarios)])
            self._others = OwnProcesses(most) if most > 1 else None
        return self._others

    @override
    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        return self._here.judge(experiment, planned)

    @override
    def close(self) -> None:
        if self._others is not None:
            self._others.close()


def start_workers(jobs: Jobs = 1, scheduler: str | None = None) -> Workers:
    """The workers that somebody asks for.

    On this machine 1 is this process, ``auto`` as many as processors and memory admit where that is faster; instead,
    the workers of a dask scheduler (``tcp://host:8786`` or ``tls://host:8786``). Raises `InputError` if the number is
    none.
    """
    if scheduler is not None:
        from .cluster import GivenCluster

        return GivenCluster(scheduler)
    if jobs == "auto":
        return AsNeeded()
    if isinstance(jobs, str | float) or jobs < 1:
        raise InputError(f"jobs = {jobs!r}: must be a number from 1, or auto")
    return InProcess() if jobs == 1 else OwnProcesses(jobs)
