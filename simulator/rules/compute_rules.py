"""Steps that take time: when an agent begins one, how long it computes, and when it makes it."""

from __future__ import annotations

import math

from ..tables.run import RunTables
from ..tables.tallies import ORDER
from .forms import rule
from .lazy import changes_until


@rule
def begin_computing(run: RunTables, agent: int, now: float):
    """Begin a step; the time units that it takes, a multiple of 2^-30, and 0 where no step takes time."""
    if len(run.computing) == 0:
        return 0.0
    own, first, last = run.computing, run.step_offsets[agent], run.step_offsets[agent + 1]
    time = run.step_times[first + own.begun[agent] % (last - first)]
    own.spent[agent] += own.until[agent] - own.since[agent]
    own.begun[agent] += 1
    own.order[agent], own.since[agent], own.until[agent] = run.counts[ORDER], now, now + time
    return time


@rule
def up_again(run: RunTables, agent: int, now: float):
    """Time at which an agent comes up that is down after the changes at ``now``; -1 if it never does.

    It is infinite while it is not known.
    """
    leave = run.agents.leaves[agent]
    if now >= run.agents.gone_from[agent] or now >= leave:
        return -1.0
    changes, place = run.changes[agent], changes_until(run, agent, now, True)
    time = changes[place] if place < len(changes) else math.inf
    return -1.0 if leave <= time < math.inf else time
