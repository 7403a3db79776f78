"""Time that an experiment still takes, by what its runs have taken so far; unknown before any has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from statistics import median

from .plan import Experiment, Run
from .workers import Jobs

KNOWN = 0.05
"""Share of a run from which on its own pace tells more than other runs."""
Key = tuple[str, Hashable]
"""A protocol, and a grid point."""


class TimeLeft:
    """The time that is left, told of every run that ends.

    A run is expected to take the median of those of its protocol at its grid point; where there is none yet, of those
    of its protocol, and then of all. So one slow run, such as the first, which compiles, moves the whole a little.

    Parameters
    ----------
    runs : mapping of Key to int
        How many runs each protocol has at each grid point.
    processes : int
        How many runs go on at once; may change.
    """

    def __init__(self, runs: Mapping[Key, int], processes: int = 1) -> None:
        self.processes = processes
        self._left = Counter(dict(runs))
        self._taken: dict[Key | str | None, list[float]] = {}

    def ended(self, key: Key, seconds: float | None) -> None:
        """Count a run that has ended; it took so many seconds, or was there already (None)."""
        self._left[key] -= 1
        if seconds is not None:
            for group in (key, key[0], None):
                self._taken.setdefault(group, []).append(seconds)

    def seconds(self) -> float | None:
        """Seconds until the last run will have ended, about; None before anybody knows."""
        if not self._taken:
            return None
        usual = {group: median(taken) for group, taken in self._taken.items()}
        going = [(usual.get(key, usual.get(key[0], usual[None])), left) for key, left in self._left.items() if left > 0]
        return sum(each * left for each, left in going) / max(self._going(), 1)

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


def key_of(run: Run) -> Key:
    """The protocol and the grid point of a run."""
    return run.protocol, tuple(sorted((path, repr(value)) for path, value in run.point.values.items()))


def time_left(experiments: Sequence[Experiment], processes: int = 1) -> TimeLeft:
    """The time that experiments take, of which nothing is known before they begin."""
    return TimeLeft(Counter(key_of(run) for experiment in experiments for run in experiment.runs()), processes)


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
