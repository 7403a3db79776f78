"""Time that an experiment still takes, by what its runs have taken so far; unknown before any has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import isfinite
from statistics import fmean, linear_regression, median

from .plan import Run, wake_ups
from .workers import Jobs

KNOWN = 0.05
"""Share of a run from which on its own pace tells more than other runs."""
Key = tuple[str, Hashable]
"""A protocol, and a grid point."""
Bounds = tuple[float, float]
"""Seconds at least and at most."""
NEAREST = 3
"""Grid points from which a point without runs is judged."""
SPAN = 2.0
"""How far apart, as a factor of work, points have to lie to tell of points as far beyond them."""


class TimeLeft:
    """Bounds of the time that is left, learnt from every run that ends.

    A run takes the median of those of its protocol at its grid point. Where none has ended yet, it takes between as
    long as the runs of the nearest points and as much longer as it has more work: right for any time a + b * work with
    a, b >= 0, whatever share a has. The nearest are the `NEAREST` points by work, of its protocol or else of any. Once
    points of its protocol span a factor of `SPAN`, a line through them says where between those bounds the time of a
    run is that has no more than `SPAN` times their work, and no less than such a part of it.

    So many runs each protocol has at each grid point, and so many processes, which may change, go on at once. Work is
    in any unit, positive; 1 where none is given.
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

    def seconds(self) -> Bounds | None:
        """Seconds until the last run will have ended, at least and at most; None before any run was made."""
        if not self._taken:
            return None
        low, high = self._of_all(self._left)
        return low / max(self._going(), 1), high / max(self._going(), 1)

    def _of_all(self, runs: Mapping[Key, int]) -> Bounds:
        """Seconds that runs take one after the other, at least and at most."""
        low = high = 0.0
        known = {key: median(taken) for key, taken in self._taken.items()}
        for key, left in runs.items():
            if left > 0:
                least, most = self._of(key, known)
                low, high = low + least * left, high + most * left
        return low, high

    def _of(self, key: Key, known: Mapping[Key, float]) -> Bounds:
        """Seconds that a run takes, at least and at most."""
        if key in known:
            return known[key], known[key]
        mine = self._work.get(key, 1.0)
        own = [(self._work.get(other, 1.0), known[other]) for other in known if other[0] == key[0]]
        points = own or [(self._work.get(other, 1.0), seconds) for other, seconds in known.items()]
        nearest = sorted(points, key=lambda point: abs(point[0] - mine))[:NEAREST]
        work, seconds = map(fmean, zip(*nearest, strict=True))
        low, high = sorted((seconds, seconds * mine / work))
        least, most = min(points)[0], max(points)[0]
        if own and most >= SPAN * least and least / SPAN <= mine <= most * SPAN:
            slope = linear_regression(*zip(*own, strict=True)).slope
            low = high = min(max(seconds + slope * (mine - work), low), high)
        return low, high

    def seconds_after(self, gone: float, *, begun: Sequence[Key] = (), share: float = 0.0) -> Bounds | None:
        """The time left so many seconds after the last run has ended: those that go on have worked for as long.

        What is left of them is never taken to be less than a tenth of a run, for nobody knows why one takes longer. Of
        the runs that this process has begun and makes side by side a share in [0, 1] is done; 0 if that is unknown.
        """
        if begun and share >= KNOWN:
            others = self._left - Counter(begun)
            low, high = self._of_all(others) if self._taken else self._at_pace(gone / share, begun, others)
            rest = gone * (1 - share) / share
            return rest + low, rest + high
        going, bounds = self._going(), self.seconds()
        if bounds is None or not going:
            return bounds
        low, high = (max(left - gone, left - 0.9 * going * left / self.runs()) for left in bounds)
        return low, high

    def _at_pace(self, seconds: float, begun: Sequence[Key], others: Counter[Key]) -> Bounds:
        """Seconds that others take where some take so many: between as many a run and as many for as much work."""
        work = sum(self._work.get(key, 1.0) for key in begun)
        by_work = sum(left * self._work.get(key, 1.0) for key, left in others.items()) / work
        low, high = sorted((seconds * others.total() / len(begun), seconds * by_work))
        return low, high

    def runs(self) -> int:
        """Number of runs that have not ended."""
        return sum(left for left in self._left.values() if left > 0)

    def _going(self) -> int:
        return min(max(self.processes, 1), self.runs())


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

    >>> [in_words(seconds) for seconds in (0.2, 8.4, 61.0, 200.0, 7830.0)]
    ['1 s', '8 s', '60 s', '3 min', '2 h 10 min']
    """
    if seconds < 90:
        return f"{max(round(seconds) if seconds < 10 else 5 * round(seconds / 5), 1)} s"
    minutes = max(round(seconds / 60), 1)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {10 * (minutes % 60 // 10)} min"


def range_in_words(bounds: Bounds) -> str:
    """Two durations, or about one where they are less than half apart.

    >>> [range_in_words(bounds) for bounds in ((30.0, 40.0), (31.0, 78.0), (100.0, 700.0), (50.0, 9000.0))]
    ['about 35 s', '30 to 80 s', '2 to 12 min', '50 s to 2 h 30 min']
    """
    low, high = bounds
    if high <= 1.5 * low:
        return f"about {in_words((low * high) ** 0.5)}"
    least, most = in_words(low), in_words(high)
    same = least.count(" ") == most.count(" ") == 1 and least.split()[1] == most.split()[1]
    return f"{least.split()[0] if same else least} to {most}" if least != most else f"about {most}"


def processes_of(jobs: Jobs) -> int:
    """Number of processes that somebody asks for."""
    if jobs != "auto":
        return jobs
    from dask.system import cpu_count

    return cpu_count()
