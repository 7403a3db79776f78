"""Up and down times of agents, as arrays that deferred deliveries search."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...tables.effects import GONE, UP
from ...tables.run import RunTables
from .changes import Changes

AHEAD = 16.0
"""Time units that changes are drawn ahead, unless they are many."""


@final
class AvailabilityArrays:
    """The up and down times of all agents, laid out agent by agent.

    Parameters
    ----------
    changes : Changes
    run : RunTables
        Its ``was_up`` and ``gone_from`` are filled in.
    """

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
