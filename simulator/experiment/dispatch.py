"""Runs on other processes, whoever starts them: handed out in batches, and taken back where time was up or one died."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

from typing_extensions import override

from ..contract.verdict import Verdict
from .batches import MOST_DEATHS, SECONDS, judge_there, pack, post, quarantined, work
from .heartbeat import Heartbeat
from .interrupts import heeded
from .plan import Experiment, PlannedRun
from .run_once import RunOutcome
from .stacks import in_stacks
from .workers import OnSample, OnStart, Workers

MOST_RUNS = 200
"""Runs of a batch at most."""
LOOK = 1.0
"""Seconds after which to see whether there are more processes, or whether somebody has had enough."""

Answer = Callable[[], Any]
"""Gives what a function has given, or raises what it has raised."""


class Killed(Exception):
    """What was given is not tried again: `hushnet.simulator.experiment.batches.MOST_DEATHS` processes died of it."""


class Hands(ABC):
    """Processes, here or elsewhere, that call the functions that they are given, one at a time each."""

    @abstractmethod
    def count(self) -> int:
        """How many there are now."""

    @abstractmethod
    def give(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Have one of them call a function; again, should it die of that.

        Returns
        -------
        object
            What the answer will be known by; it can be hashed.

        Raises
        ------
        OutOfResources
            If there are none any more.
        """

    @abstractmethod
    def take(self, seconds: float) -> tuple[Any, Answer] | None:
        """The next answer, with what it is known by; None if there is none after so many seconds.

        The answer raises `Killed`, or an `HushnetError` in the place of what a user could not know what to do about.
        """

    @abstractmethod
    def forget(self, given: Iterable[Any]) -> None:
        """Take no more notice of what was given: nobody waits for it."""


class Elsewhere(Workers):
    """Executes runs through other processes; short ones many at a time."""

    @abstractmethod
    def hands(self, queue: Sequence[PlannedRun], experiment: Experiment) -> Hands:
        """The processes that may be used for some runs."""

    @override
    def work(
        self,
        experiment: Experiment,
        queue: Sequence[PlannedRun],
        *,
        on_start: OnStart | None = None,
        on_sample: OnSample | None = None,
    ) -> Generator[tuple[int, RunOutcome], None, None]:
        """Let them work; what begins and what a run samples is known there only."""
        hands = self.hands(queue, experiment)
        with Heartbeat.begun(experiment.folder.resolve()) as heartbeat:
            yield from _Dispatch(hands, experiment, queue, heartbeat).outcomes()

    @override
    def judge(self, experiment: Experiment, planned: PlannedRun) -> Verdict:
        hands = self.hands([planned], experiment)
        with Heartbeat.begun(experiment.folder.resolve()) as heartbeat:
            given = hands.give(judge_there, post(experiment, [planned], heartbeat.folder), pack(planned))
            try:
                while (found := hands.take(LOOK)) is None:
                    pass
                verdict, failure = found[1]()
            except Killed:
                return Verdict("unchecked", f"it killed {MOST_DEATHS} processes that checked it")
            finally:
                hands.forget([given])
        if failure is not None:
            raise failure
        assert verdict is not None
        return verdict


class _Dispatch:
    """Gives runs out in batches, one to every process at a time, and takes back what did not fit into its time."""

    def __init__(self, hands: Hands, experiment: Experiment, queue: Sequence[PlannedRun], heartbeat: Heartbeat) -> None:
        self.hands, self.experiment, self.queue, self.heartbeat = hands, experiment, queue, heartbeat
        self.post = post(experiment, queue, heartbeat.folder)
        self.waiting, self.alone = deque(in_stacks(experiment, queue)), set[int]()
        self.open: dict[Any, list[int]] = {}

    def outcomes(self) -> Iterator[tuple[int, RunOutcome]]:
        """(Rank, outcome) of every run, in order of completion."""
        with heeded() as met:
            yield from self._outcomes(met)

    def _outcomes(self, met: Sequence[int]) -> Iterator[tuple[int, RunOutcome]]:
        try:
            while self.waiting or self.open:
                if met:
                    raise KeyboardInterrupt
                self._send()
                found = self.hands.take(LOOK)
                if found is None:
                    continue
                batch = self.open.pop(found[0])
                outcomes, error = self._received(found[1], batch)
                yield from zip(batch, outcomes, strict=False)
                self.waiting.extendleft(reversed(batch[len(outcomes) :]))
                if error is not None:
                    raise error
        finally:
            self.hands.forget(self.open)

    def _send(self) -> None:
        processes = max(1, self.hands.count())
        while self.waiting and len(self.open) < processes:
            batch = self._next(len(self.waiting) // (2 * processes))
            self.open[self.hands.give(work, self.post, pack([self.queue[k] for k in batch]), SECONDS)] = batch

    def _next(self, most: int) -> list[int]:
        batch = [self.waiting.popleft()]
        while self.waiting and len(batch) < min(most, MOST_RUNS) and not self.alone & {batch[-1], self.waiting[0]}:
            batch.append(self.waiting.popleft())
        return batch

    def _received(self, answer: Answer, batch: list[int]) -> tuple[list[RunOutcome], Exception | None]:
        try:
            return answer()
        except Killed:
            if len(batch) == 1:
                return [quarantined(self.experiment, self.queue[batch[0]], MOST_DEATHS, self.heartbeat)], None
            self.alone.update(batch)
            return [], None
