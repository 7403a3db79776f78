"""Wake-ups leave their heap in the order of time and agent, whatever was put on it in whatever order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hushnet.simulator.rules.clock_rules import add, order_heap, push, sift_down, take_top
from hushnet.simulator.tables.run import WAKE, zeros
from hushnet.simulator.tables.tallies import COUNTERS, HEAP


class Tables(NamedTuple):
    """What of the tables of a run the heap needs."""

    wakes: Any
    counts: Any


def tables(agents: int) -> Tables:
    return Tables(zeros(agents + 1, WAKE), counts=np.zeros(COUNTERS, dtype=np.int64))


def taken(run: Tables) -> list[tuple[float, int]]:
    found = []
    while run.counts[HEAP]:
        found.append((float(run.wakes.time[0]), int(run.wakes.agent[0])))
        take_top(run)
    return found


def times_of(rng: np.random.Generator, agents: int) -> list[float]:
    """Many at one time, as of periodic clocks."""
    return rng.integers(0, max(1, agents // 3), size=agents).astype(float).tolist()


@pytest.mark.parametrize("agents", [1, 2, 4, 5, 6, 21, 22, 100])
def test_who_wakes_goes_back_among_the_others(agents):
    rng, run, now = np.random.default_rng(7), tables(agents), []
    waiting = list(zip(times_of(rng, agents), range(agents), strict=True))
    for time, agent in waiting:
        add(run, time, agent)
    order_heap(run)
    for _ in range(20 * agents):
        now.append((float(run.wakes.time[0]), int(run.wakes.agent[0])))
        assert now[-1] == min(waiting)
        waiting.remove(now[-1])
        if rng.random() < 0.02 and len(waiting) > 1:
            take_top(run)
            continue
        waiting.append((now[-1][0] + float(rng.integers(0, 4)), now[-1][1]))
        sift_down(run, *waiting[-1])
    assert taken(run) == sorted(waiting)


@pytest.mark.parametrize("agents", [0, 1, 2, 3, 4, 5, 6, 17, 85, 86, 300])
@pytest.mark.parametrize("pushed", [True, False])
def test_wake_ups_leave_in_order(agents, pushed):
    rng, run = np.random.default_rng(agents), tables(agents)
    expected = list(zip(times_of(rng, agents), rng.permutation(agents).tolist(), strict=True))
    for time, agent in expected:
        (push if pushed else add)(run, time, agent)
    if not pushed:
        order_heap(run)
    assert taken(run) == sorted(expected)
