"""Time that an experiment still takes, by what its runs have taken so far; unknown before any has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from math import isfinite
from statistics import linear_regression, median

from .plan import Run, wake_ups
from .workers import Jobs

KNOWN = 0.05
"""Share of a run from which on its own pace tells more than other runs."""
Key = tuple[str, Hashable]
"""A protocol, and a grid point."""


class TimeLeft:
    """The time that is left, from every run that ends.

    A run is expected to take the median of those of its protocol at its grid point, so that a slow one moves the whole
    a little. Where there is none yet, a line through these medians over the runs' work says how long: through those of
    its protocol, or else of all. While all that have ended have the same work, time is proportional to work.

    Parameters
    ----------
    runs : mapping of Key to int
        How many runs each protocol has at each grid point.
    processes : int
        How many runs go on at once; may change.
    work : mapping of Key to float, optional
        Work of a run in any unit, positive; 1 where none is given.
    """

    def __init__(self, runs: Mapping[Key, int], processes: int = 1, work: Mapping[Key, float] | None = None) -> None:
        self.processes = processes
        self._left, self._work = Counter(dict(runs)), work or {}
        self._taken: dict[Key, list[float]] = {}

    def ended(self, key: Key, seconds: float | None) -> None:
        """Count a run that has ended; it took so many seconds, or was there already (None)."""
        self._left[key] -= 1
        if seconds is not None:
            self._taken.setdefault(key, []).append(seconds)

    def seconds(self) -> float | None:
        """Seconds until the last run will have ended, about; None before anybody knows."""
        if not self._taken:
            return None
        known = {key: median(taken) for key, taken in self._taken.items()}
        points: dict[str | None, list[tuple[float, float]]] = {}
        for key, seconds in known.items():
            for group in (key[0], None):
                points.setdefault(group, []).append((self._work.get(key, 1.0), seconds))
        lines = {group: _line(found) for group, found in points.items()}
        total = 0.0
        for key, left in self._left.items():
            slope, intercept = lines.get(key[0], lines[None])
            each = known.get(key, max(intercept + slope * self._work.get(key, 1.0), 0.0))
            total += each * max(left, 0)
        return total / max(self._going(), 1)

    def seconds_after(self, gone: float, *, begun: int = 1, share: float = 0.0) -> float | None:
        """The time left so many seconds after the last run has ended: those that go on have worked for as long.

        What is left of them is never taken to be less than a tenth of a run, for nobody knows why one takes longer.

        Parameters
        ----------
        gone : float
            Seconds.
        begun : int
            Runs that this process makes side by side now.
        share : float
            Share of these that is done, in [0, 1]; 0 if that is unknown.
        """
        going, left = self._going(), self.seconds()
        if share >= KNOWN and going:
            others = self._runs_left() - begun
            each = gone / share / begun if left is None else left / self._runs_left()
            return gone * (1 - share) / share + each * others
        if left is None or not going:
            return left
        each = left * going / self._runs_left()
        return max(left - gone, left - 0.9 * each)

    def _runs_left(self) -> int:
        return sum(left for left in self._left.values() if left > 0)

    def _going(self) -> int:
        """Number of runs that go on at once."""
        return min(max(self.processes, 1), self._runs_left())


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Slope and intercept of seconds over work by least squares, neither of them negative."""
    work, seconds = zip(*points, strict=True)
    if len(set(work)) > 1:
        slope, intercept = linear_regression(work, seconds)
        if slope < 0:
            return 0.0, median(seconds)
        if intercept >= 0:
            return slope, intercept
    return sum(seconds) / sum(work), 0.0


def key_of(run: Run) -> Key:
    """The protocol and the grid point of a run."""
    return run.protocol, tuple(sorted((path, repr(value)) for path, value in run.point.values.items()))


def time_left(runs: Iterable[Run], processes: int = 1) -> TimeLeft:
    """The time that runs take, of which nothing is known before they begin but how many wake-ups each is to have."""
    counts, work = Counter[Key](), dict[Key, float]()
    for run in runs:
        counts[key := key_of(run)] += 1
        if key not in work:
            scenario = run.point.scenario
            expected = wake_ups(scenario, scenario.task.outline().agents or 1)
            work[key] = expected if isfinite(expected) and expected > 0 else 1.0
    return TimeLeft(counts, processes, work)


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
    """Number of processes that somebody asks for."""
    if jobs != "auto":
        return jobs
    from dask.system import cpu_count

    return cpu_count()
