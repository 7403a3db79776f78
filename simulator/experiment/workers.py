"""Contract of all that execute runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Literal

from ..contract.verdict import Verdict
from ..world.world import World
from .plan import Experiment, PlannedRun, Run
from .run_once import RunOutcome

OnStart = Callable[[Run], None] | None
OnSample = Callable[[World], None] | None
Queue = Sequence[PlannedRun]
Outcomes = Generator[tuple[int, RunOutcome], None, None]
Jobs = int | Literal["auto"]


class Workers(ABC):
    """Executes runs; ``with`` ends the processes that were started for it."""

    @abstractmethod
    def work(
        self, experiment: Experiment, queue: Queue, *, on_start: OnStart = None, on_sample: OnSample = None
    ) -> Outcomes:
        """Execute every run that is not there yet; gives (its rank, what became of it) in order of completion.

        Where this process makes a run, somebody is told of it before it begins, and of its world at every record
        instant. Raises `HushnetError` if something does not admit further runs; what was complete is kept.
        """

    @abstractmethod
    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        """Verdict on the privacy contract of a run's protocol, found where runs are executed; raises as `work`."""

    def processes(self) -> int:
        """Number of runs that are made at once now."""
        return 1

    def close(self) -> None:  # noqa: B027 (most have nothing to end)
        """End processes at once, whatever they are doing: what is complete has been saved."""

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
