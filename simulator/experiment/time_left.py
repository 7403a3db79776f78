"""How much longer an experiment takes, told from what its runs have taken so far.

Before any has ended nobody knows. What a protocol's runs take for each of their events
(`hushnet.simulator.experiment.estimate`) tells of its other grid points; what a grid point's own runs take replaces
that bit by bit. So one slow run, such as the first, which compiles, moves the whole a little.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from statistics import median

from ...agents.errors import HushnetError
from .estimate import costs_of_runs
from .plan import Experiment, Run
from .workers import Jobs

Key = tuple[str, Hashable]
"""A protocol, and a grid point."""


class TimeLeft:
    """The time that is left, told of every run that ends.

    Parameters
    ----------
    runs : mapping of Key to int
        How many runs each protocol has at each grid point.
    events : mapping of Key to float
        Of one such run; 0 where they cannot be counted.
    processes : int
        How many runs go on at once.
    """

    def __init__(self, runs: Mapping[Key, int], events: Mapping[Key, float], processes: int = 1) -> None:
        self._left = Counter(dict(runs))
        known = [number for number in events.values() if number]
        usual = median(known) if known else 1.0
        self._events = {key: events.get(key) or usual for key in runs}
        self._taken: dict[Key, list[float]] = {}
        self._processes = max(processes, 1)

    def ended(self, key: Key, seconds: float | None) -> None:
        """Count a run that has ended; it took so many seconds, or was there already (None)."""
        self._left[key] -= 1
        if seconds is not None:
            self._taken.setdefault(key, []).append(seconds)

    def of(self, key: Key) -> float:
        """Seconds that the next run of a protocol at a grid point will take, about, once any run has ended."""
        guess = self._events[key] * self._for_each(key[0])
        taken = self._taken.get(key, [])
        # The guess counts as one run: a single slow one does not stand for all.
        return (guess + sum(_usual(taken))) / (1 + len(taken))

    def seconds(self) -> float | None:
        """Seconds until the last run will have ended, about; None before anybody knows."""
        if not self._taken:
            return None
        work = sum(self.of(key) * left for key, left in self._left.items() if left > 0)
        return work / min(self._processes, max(sum(left for left in self._left.values() if left > 0), 1))

    def seconds_after(self, gone: float) -> float | None:
        """The time left so many seconds after the last run has ended: those that go on have worked for as long.

        What is left of them is never taken to be less than a tenth of a run, for nobody knows why one takes longer.
        """
        going = min(self._processes, sum(left for left in self._left.values() if left > 0))
        left = self.seconds()
        if left is None or not going:
            return left
        each = left / max(sum(left for left in self._left.values() if left > 0) / going, 1.0)
        return max(left - gone, left - 0.9 * each)

    def _for_each(self, protocol: str) -> float:
        """Seconds for each event: of the protocol's runs, or of all where none of its own has ended."""
        own = {key: taken for key, taken in self._taken.items() if key[0] == protocol} or self._taken
        ratios = [median(taken) / self._events[key] for key, taken in own.items()]
        return math.exp(sum(math.log(max(ratio, 1e-9)) for ratio in ratios) / len(ratios))


def _usual(taken: Sequence[float]) -> list[float]:
    """What runs took, none more than three times the median, for one that compiles or waits tells of no other."""
    most = 3 * median(taken) if taken else 0.0
    return [min(seconds, most) for seconds in taken]


def key_of(run: Run) -> Key:
    """The protocol and the grid point of a run."""
    return run.protocol, tuple(sorted((path, repr(value)) for path, value in run.point.values.items()))


def time_left(experiments: Sequence[Experiment], processes: int = 1) -> TimeLeft:
    """The time that experiments take, of which nothing is known before they begin; nothing is run, no data are made."""
    runs: Counter[Key] = Counter()
    events: dict[Key, float] = {}
    for experiment in experiments:
        firsts: dict[Key, Run] = {}
        for run in experiment.runs():
            key = key_of(run)
            runs[key] += 1
            firsts.setdefault(key, run)
        try:
            counted = [cost.events for cost in costs_of_runs(experiment, list(firsts.values()))]
        except (HushnetError, OSError):  # said when the runs are made
            counted = [0.0] * len(firsts)
        events.update({key: number or events.get(key, 0.0) for key, number in zip(firsts, counted, strict=True)})
    return TimeLeft(runs, events, processes)


def in_words(seconds: float) -> str:
    """A duration, as exact as a guess is: ``8 s``, ``3 min``, ``2 h 10 min``.

    Examples
    --------
    >>> [in_words(seconds) for seconds in (0.2, 8.4, 61.0, 200.0, 7830.0)]
    ['1 s', '8 s', '60 s', '3 min', '2 h 10 min']
    """
    if seconds < 90:
        return f"{max(round(seconds) if seconds < 10 else 5 * round(seconds / 5), 1)} s"
    minutes = max(round(seconds / 60), 1)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {10 * (minutes % 60 // 10)} min"


def processes_of(jobs: Jobs) -> int:
    """How many processes somebody asks for."""
    if jobs != "auto":
        return jobs
    from dask.system import cpu_count

    return cpu_count()
