"""Runs on other processes, whoever starts them: handed out a few at a time, and once more where a process died."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from ...agents.errors import OutOfResources
from ...agents.input_files import read_bytes
from ...agents.scratch import scratch
from ..contract.repeats import last_words
from ..contract.verdict import Verdict
from ..storage.files import writing
from .plan import Experiment, PlannedRun
from .remote import context_of, judge_there, pack, work
from .run_once import FAILED, RunOutcome, keep_failure
from .stacks import in_stacks
from .workers import OnSample, OnStart, Outcomes, Queue, Workers

MOST_DEATHS = 3
"""A run during which this many processes died is not tried again."""
STARTS = 3
"""Processes that may die in a row before they have begun a run."""
LOOK = 1.0
"""Seconds after which to see whether there are more processes."""


class WorkerDied(Exception):
    """The process that was given something has died."""


class Elsewhere(Workers):
    """Executes runs through other processes, each of which is given one thing at a time."""

    deaths: ClassVar[int] = 1
    """Processes that have died when `result` says so."""

    @abstractmethod
    def prepare(self, experiment: Experiment, queue: Sequence[PlannedRun]) -> None:
        """See to it that there are processes for some runs, or will be."""

    @abstractmethod
    def count(self) -> int:
        """Number of processes that there are now."""

    @override
    def processes(self) -> int:
        return self.count()

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have one of them call a function; raises an `OutOfResources` if there are none any more."""

    @abstractmethod
    def result(self, future: Future[Any]) -> Any:
        """Wait for what comes of that; raises `WorkerDied`, or a `HushnetError` that says what a user can do."""

    @abstractmethod
    def forget(self, futures: Iterable[Future[Any]]) -> None:
        """Take no more notice of what was submitted: nobody waits for it."""

    @override
    def work(
        self, experiment: Experiment, queue: Queue, *, on_start: OnStart = None, on_sample: OnSample = None
    ) -> Outcomes:
        """Let them work; what begins and what a run samples is known there only."""
        self.prepare(experiment, queue)
        with _folder(experiment.folder.resolve()) as folder:
            yield from _Dispatch(self, experiment, queue, folder).outcomes()

    @override
    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        self.prepare(experiment, [planned])
        with _folder(experiment.folder.resolve()) as folder:
            context = context_of(experiment, [planned], folder)
            for _ in range(MOST_DEATHS):
                future = self.submit(judge_there, context, pack(planned))
                try:
                    return self.result(future)
                except WorkerDied:
                    continue
        return Verdict("unchecked", f"it killed {MOST_DEATHS} processes that checked it")


@contextmanager
def _folder(root: Path) -> Iterator[Path]:
    """A hidden folder by which workers know that somebody waits; one that a killed process left is `Store.sweep`'s."""
    folder = scratch(root / "under-way")
    with writing(root):
        folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Dispatch:
    """Gives runs out, those of a stack together, and looks for the run that a process has died of."""

    def __init__(self, workers: Elsewhere, experiment: Experiment, queue: Sequence[PlannedRun], folder: Path) -> None:
        self.workers, self.experiment, self.queue = workers, experiment, queue
        self.context = context_of(experiment, queue, folder)
        most = max(len(queue) // (2 * max(workers.count(), 1)), 1)  # so that the last ones end at about one time
        stacks = in_stacks(experiment, queue)
        self.waiting = deque(stack[k : k + most] for stack in stacks for k in range(0, len(stack), most))
        self.open: dict[Future[Any], list[int]] = {}
        self.deaths, self.stillborn = Counter[int](), 0

    def outcomes(self) -> Iterator[tuple[int, RunOutcome]]:
        """(Rank, outcome) of every run, in order of completion."""
        try:
            while self.waiting or self.open:
                count = max(self.workers.count(), 1)
                while self.waiting and len(self.open) < count:
                    ranks = self.waiting.popleft()
                    packed = pack([self.queue[rank] for rank in ranks])
                    self.open[self.workers.submit(work, self.context, packed)] = ranks
                for future in wait(self.open, LOOK, FIRST_COMPLETED).done:
                    ranks = self.open.pop(future)
                    try:
                        made, self.stillborn = self.workers.result(future), 0
                    except WorkerDied:
                        made = self._died(ranks)
                    self.waiting.extendleft([rank] for rank in reversed(ranks[len(made) :]))
                    yield from zip(ranks, made, strict=False)
        finally:
            self.workers.forget(self.open)

    def _died(self, ranks: Sequence[int]) -> list[RunOutcome]:
        """Outcomes of runs at which a process has died: none if they are to be tried again, each by itself."""
        begun = [path for rank in ranks if (path := self.context.folder / self.queue[rank].name).exists()]
        said = "".join(read_bytes(path).decode(errors="replace") for path in begun)
        for path in begun:
            path.unlink()
        self.stillborn = 0 if begun else self.stillborn + 1
        if self.stillborn == STARTS:
            raise OutOfResources(
                f"{self.workers.count()} processes cannot be started ({STARTS} have ended before they had begun); "
                "use fewer --jobs"
            )
        if not begun or len(ranks) > 1:
            return []
        self.deaths[ranks[0]] += self.workers.deaths
        planned, deaths = self.queue[ranks[0]], self.deaths[ranks[0]]
        if deaths < (1 if planned.kind in self.experiment.deadly else MOST_DEATHS):
            return []
        why = last_words(said) if said else "a crash in compiled code, or too little memory"
        error = f"killed its worker {deaths} time{'' if deaths == 1 else 's'} ({why})"
        keep_failure(self.experiment, planned, f"{error}\n\n{said}")
        return [RunOutcome(None, FAILED, error=error)]
