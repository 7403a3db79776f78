"""Messages that all agents send at their starts, compiled: their versions, and their receivers."""

from __future__ import annotations

from typing import Any

from ...agents.compilation import compiled
from ..tables.run import RunTables
from ..tables.tallies import ORDER
from .delivery import take_row
from .lazy import tell


@compiled(_nrt=False)
def keep_starts(run: RunTables, agents: Any, vectors: Any, now: float, size: Any):  # pragma: no cover - compiled
    """Keep a version of what each of some agents sends at its start; there must be room for them.

    Parameters
    ----------
    agents : (k,) int64
    vectors : (n, width) float64
        What each agent sends, in a message of the first kind and of this size.
    """
    for agent in agents:
        row = take_row(run, now, 0, -1, size)
        for k in range(vectors.shape[1]):
            run.pool[row, k] = vectors[agent, k]
        run.latest[agent] = row  # which holds its one reference


@compiled(_nrt=False)
def tell_starts(run: RunTables, agents: Any, present: Any):  # pragma: no cover - compiled
    """Send present neighbours the starts of some agents, reliably and at once; return the number of copies."""
    before = run.counts[ORDER]
    for agent in agents:
        for edge in range(run.offsets[agent], run.offsets[agent + 1]):
            if present[run.heads[edge]]:
                run.counts[ORDER] += 1
                tell(run, run.reverse[edge], run.latest[agent], run.counts[ORDER])
    return run.counts[ORDER] - before
