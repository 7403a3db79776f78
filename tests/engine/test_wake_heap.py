"""What is to come leaves its heap in the order of time and rank, whatever was put on it in whatever order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hushnet.simulator.rules.heap import pop, push, replace_top
from hushnet.simulator.tables.run import DUE, zeros

Entry = tuple[float, int, int]


def heap_of(entries: list[Entry]) -> tuple[Any, Any]:
    heap, sizes = zeros(len(entries) + 1, DUE), np.zeros(1, dtype=np.int64)
    for entry in entries:
        push(heap, sizes, 0, *entry)
    return heap, sizes


def taken(heap: Any, sizes: Any) -> list[Entry]:
    found = []
    while sizes[0]:
        found.append(tuple(heap[0].tolist()))
        pop(heap, sizes, 0)
    return found


def entries_of(rng: np.random.Generator, count: int) -> list[Entry]:
    """Many at one time, as of periodic clocks."""
    times = rng.integers(0, max(1, count // 3), size=count).astype(float).tolist()
    return list(zip(times, rng.permutation(count).tolist(), rng.permutation(count).tolist(), strict=True))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 17, 21, 22, 85, 86, 100])
def test_who_wakes_goes_back_among_the_others(count):
    rng = np.random.default_rng(7)
    waiting = entries_of(rng, count)
    heap, sizes = heap_of(waiting)
    for _ in range(20 * count):
        now = tuple(heap[0].tolist())
        assert now == min(waiting)
        waiting.remove(now)
        if rng.random() < 0.02 and len(waiting) > 1:
            pop(heap, sizes, 0)
            continue
        waiting.append((now[0] + float(rng.integers(0, 4)), *now[1:]))
        replace_top(heap, sizes[0], *waiting[-1])
    assert taken(heap, sizes) == sorted(waiting)
