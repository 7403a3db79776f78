"""Changes of agents' availability, in order, drawn as far ahead as a window needs them."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ....agents.availability import ALWAYS, Absences, Availability, Timeline
from ....agents.compilation import form_of
from ...network.randomness import Draws
from ...rules.clock_rules import begin_changes, draw_changes
from ...tables.allocation import zeros
from ...tables.effects import DOWN, GONE, UP
from ...tables.run import DUE, RunTables

OFTEN = 4096
"""Changes between two looks at what they take."""
MANY, MANY_EACH = 2**16, 8
"""Changes, in all and per agent, after which nobody looks further ahead than is necessary."""


class FoundChanges(NamedTuple):
    """Changes in order: when, what (`UP`, `DOWN` or `GONE`) and to whom."""

    times: NDArray[np.float64]
    whats: NDArray[np.int64]
    agents: NDArray[np.int64]

    def first(self, count: int) -> FoundChanges:
        """The first so many of them."""
        return FoundChanges(self.times[:count], self.whats[:count], self.agents[:count])


class Changes(ABC):
    """The changes of all agents, in the order of times and agents.

    There are (n,) states ``up`` at time 0, and in ``gone`` who is down then and never comes up. All changes up to the
    time ``known_until``, and at it, were handed out.
    """

    up: NDArray[np.bool_]
    gone: NDArray[np.bool_]
    known_until: float

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look

    def draw(self, needed: float, wished: float) -> FoundChanges:
        """All further changes up to a time that is needed, and on to one that is wished unless they are many."""
        parts: list[FoundChanges] = []
        count, most = 0, max(MANY, MANY_EACH * len(self.up))
        wished = max(needed, wished)
        while self.known_until < needed or (self.known_until < wished and count < most):
            self._look()
            parts.append(self._next(wished))
            count += len(parts[-1].times)
            following = self._upcoming()
            if following > wished:
                self.known_until = wished if following < math.inf else math.inf
            else:
                self.known_until = max(self.known_until, math.nextafter(following, -math.inf))
        if not parts:
            return FoundChanges(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        return parts[0] if len(parts) == 1 else FoundChanges(*map(np.concatenate, zip(*parts, strict=True)))

    @abstractmethod
    def _next(self, until: float) -> FoundChanges:
        """The next `OFTEN` changes up to a time at most."""

    @abstractmethod
    def _upcoming(self) -> float:
        """Time of the first change that was not returned yet; infinite if there is none."""


@final
class DrawnChanges(Changes):
    """Changes that compiled code draws, by the agents' stable (n,) numbers.

    It looks now and then while changes are drawn, for there may be very many.
    """

    def __init__(self, form: Absences, draws: Draws, numbers: NDArray[np.uint64], look: Callable[[], None]) -> None:
        super().__init__(look)
        agents = len(numbers) if form.code != ALWAYS else 0
        self.up, self.gone = np.ones(len(numbers), dtype=bool), np.zeros(len(numbers), dtype=bool)
        self.known_until = 0.0 if agents else math.inf
        self._key = np.array(draws.key, dtype=np.uint64)
        self._absences, self._numbers = form, numbers
        self._heap, self._counts = zeros(agents, DUE), np.zeros(1, dtype=np.int64)  # changes to come
        if agents:
            begin_changes(form, self._key, numbers, self._heap, self._counts, self.up)
            # What changes at time 0 is yet to come.
            self.known_until = math.nextafter(0.0, -math.inf)

    def _next(self, until: float) -> FoundChanges:
        found = FoundChanges(np.empty(OFTEN), np.empty(OFTEN, dtype=np.int64), np.empty(OFTEN, dtype=np.int64))
        count = draw_changes(self._absences, self._key, self._numbers, self._heap, self._counts, until, *found)
        return found if count == OFTEN else found.first(count)

    def _upcoming(self) -> float:
        return float(self._heap["time"][0])


@final
class ToldChanges(Changes):
    """Changes that the agents' own timelines tell, one by one; it looks as `DrawnChanges` does."""

    def __init__(self, timelines: Sequence[Timeline], look: Callable[[], None]) -> None:
        super().__init__(look)
        self._timelines = list(timelines)
        self.up = np.array([next(timeline)[1] for timeline in self._timelines], dtype=bool)
        first = [next(timeline, None) for timeline in self._timelines]
        self._heap = [(change[0], agent, change[1]) for agent, change in enumerate(first) if change is not None]
        heapq.heapify(self._heap)
        self.gone = ~self.up & np.array([change is None for change in first], dtype=bool)
        self.known_until = math.nextafter(0.0, -math.inf) if self._heap else math.inf

    def _next(self, until: float) -> FoundChanges:
        found: list[tuple[float, int, int]] = []
        while self._heap and self._heap[0][0] <= until and len(found) < OFTEN:
            time, agent, up = self._heap[0]
            following = next(self._timelines[agent], None)
            if following is None:
                heapq.heappop(self._heap)
            else:
                heapq.heapreplace(self._heap, (following[0], agent, following[1]))
            found.append((time, UP if up else GONE if following is None else DOWN, agent))
        times, whats, agents = zip(*found, strict=True) if found else ((), (), ())
        return FoundChanges(np.array(times, dtype=np.float64), np.array(whats, np.int64), np.array(agents, np.int64))

    def _upcoming(self) -> float:
        return self._heap[0][0] if self._heap else math.inf


def changes_of(
    availability: Availability,
    draws: Draws,
    numbers: NDArray[np.uint64],
    timelines: Sequence[Timeline],
    look: Callable[[], None],
) -> Changes:
    """The changes of all agents: drawn by compiled code if their availability has a form for it (`form_of`)."""
    form = form_of(availability, "form")
    return ToldChanges(timelines, look) if form is None else DrawnChanges(form, draws, numbers, look)


AHEAD = 16.0
"""Time units that changes are drawn ahead, unless they are many."""


@final
class AvailabilityArrays:
    """The up and down times of all agents, agent by agent, of which was_up and gone_from of the run are filled in."""

    def __init__(self, changes: Changes, run: RunTables) -> None:
        self.changes = changes
        self._times = np.empty(0)
        self._agents = np.empty(0, dtype=np.int64)
        self._up = changes.up.copy()
        run.agents.was_up[:] = changes.up
        run.agents.gone_from[changes.gone] = 0.0

    @property
    def drawn(self) -> float:
        """Everything up to this time is known."""
        return self.changes.known_until

    def draw(self, needed: float, run: RunTables) -> RunTables:
        """Know all changes up to a time, and some way beyond; the tables with them."""
        if needed < self.drawn:
            return run
        times, whats, agents = self.changes.draw(needed, needed + AHEAD)
        gone = whats == GONE
        run.agents.gone_from[agents[gone]] = times[gone]
        order = np.argsort(agents, kind="stable")
        times, agents, up = times[order], agents[order], whats[order] == UP
        others = agents[1:] != agents[:-1]
        first, last = np.append(True, others)[: len(agents)], np.append(others, True)[: len(agents)]
        before = np.append(True, up[:-1])[: len(agents)]
        before[first] = self._up[agents[first]]
        self._up[agents[last]] = up[last]
        told = up != before  # an invented availability may say the same twice
        self._times, self._agents = np.append(self._times, times[told]), np.append(self._agents, agents[told])
        order = np.argsort(self._agents, kind="stable")
        self._times, self._agents = self._times[order], self._agents[order]
        return self._laid_out(run)

    def forget(self, before: float, run: RunTables) -> RunTables:
        """Drop changes before a time that nobody will ask about any more."""
        kept = self._times >= before
        if kept.all():
            return run
        run.agents.was_up[:] ^= self._counts(self._agents[~kept]) % 2 == 1
        self._times, self._agents = self._times[kept], self._agents[kept]
        return self._laid_out(run)

    def _counts(self, agents: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(agents, minlength=len(self._up))

    def _laid_out(self, run: RunTables) -> RunTables:
        counts = self._counts(self._agents)
        changes = np.full((len(counts), int(counts.max(initial=0))), math.inf)
        starts = np.cumsum(counts) - counts
        changes[self._agents, np.arange(len(self._agents)) - starts[self._agents]] = self._times
        return run._replace(changes=changes)
