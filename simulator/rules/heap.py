"""A binary heap of what is to come, compiled: the first by time and, at equal times, by rank is at its top.

It has ``sizes[place]`` entries, the first ones of an array of `hushnet.simulator.tables.run.DUE` with room for more.
"""

from __future__ import annotations

from typing import Any

from ...agents.compilation import part


@part(_nrt=False)
def precedes(heap: Any, place: int, time: float, rank: int):  # pragma: no cover - compiled
    """True if an entry comes before something else: it is earlier, or of the same time and a lower rank."""
    return heap.time[place] < time or (heap.time[place] == time and heap.rank[place] < rank)


@part(_nrt=False)
def put(heap: Any, place: int, time: float, rank: int, load: int):  # pragma: no cover - compiled
    """Write an entry down."""
    heap.time[place], heap.rank[place], heap.load[place] = time, rank, load


@part(_nrt=False)
def push(heap: Any, sizes: Any, place: int, time: float, rank: int, load: int):  # pragma: no cover - compiled
    """Put an entry on the heap, where there must be room for it."""
    here = sizes[place]
    sizes[place] += 1
    while here > 0:
        parent = (here - 1) // 2
        if precedes(heap, parent, time, rank):
            break
        put(heap, here, heap.time[parent], heap.rank[parent], heap.load[parent])
        here = parent
    put(heap, here, time, rank, load)


@part(_nrt=False)
def replace_top(heap: Any, size: int, time: float, rank: int, load: int):  # pragma: no cover - compiled
    """Put an entry into a heap of so many in place of its top."""
    here = 0
    while 2 * here + 1 < size:
        child = 2 * here + 1
        if child + 1 < size and precedes(heap, child + 1, heap.time[child], heap.rank[child]):
            child += 1
        if not precedes(heap, child, time, rank):
            break
        put(heap, here, heap.time[child], heap.rank[child], heap.load[child])
        here = child
    put(heap, here, time, rank, load)


@part(_nrt=False)
def pop(heap: Any, sizes: Any, place: int):  # pragma: no cover - compiled
    """Take the first entry from the heap."""
    sizes[place] -= 1
    last = sizes[place]
    if last > 0:
        replace_top(heap, last, heap.time[last], heap.rank[last], heap.load[last])
