"""When agents come up and go down, as events that are drawn as far ahead as a compiled window needs them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

from ...agents.availability import Timeline
from ..tables.effects import DOWN, GONE, UP

OFTEN = 1024
"""Changes between two looks at what they take."""


class Changes:
    """The changes of all agents, from the very timelines that the event engine follows.

    Parameters
    ----------
    timelines : sequence of Timeline
    look : callable
        Called now and then while changes are drawn, for there may be very many.

    Attributes
    ----------
    up : list of bool
        State of every agent at time 0.
    gone : list of bool
        Who is down at time 0 and never comes up.
    known_until : float
        All changes up to this time were handed out.
    """

    def __init__(self, timelines: Sequence[Timeline], look: Callable[[], None]) -> None:
        self.look = look
        self._timelines = list(timelines)
        self.up = [next(timeline)[1] for timeline in self._timelines]
        first = [next(timeline, None) for timeline in self._timelines]
        # By time and, at equal times, in the order in which a process per agent would have asked for them.
        self._heap = [(change[0], agent, change[1], agent) for agent, change in enumerate(first) if change is not None]
        heapq.heapify(self._heap)
        self._number = len(first)
        self.gone = [not up and change is None for up, change in zip(self.up, first, strict=True)]
        self.known_until = 0.0 if self._heap else math.inf

    def draw(self, until: float) -> list[tuple[float, int, int]]:
        """Time, what happens and agent of all further changes up to a time, in order."""
        found: list[tuple[float, int, int]] = []
        while self._heap and self._heap[0][0] <= until:
            time, _, up, agent = heapq.heappop(self._heap)
            following = next(self._timelines[agent], None)
            if following is not None:
                heapq.heappush(self._heap, (following[0], self._number, following[1], agent))
                self._number += 1
            if len(found) % OFTEN == 0:
                self.look()
            found.append((time, UP if up else GONE if following is None else DOWN, agent))
        self.known_until = until if self._heap else math.inf
        return found
