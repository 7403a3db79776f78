"""Asking for memory before it is needed, compiled: in large worlds wake-ups spend most of their time waiting for it.

Whoever wakes needs some hundred lines of memory that nobody has read for long: its slots, the copies that have come
there and the versions that they carry, what its step reads, and where its own copies go. Some are only known from
others. So they are asked for in stages: what the wake-up after the next one begins with, and of the next one whatever
that leads to, a part at a time while the agent before it steps (`look_ahead`, `fetch_versions`, `fetch_copies`). None
of it changes a result.

All arrays travel as one named tuple (`hushnet.simulator.tables.run.RunTables`), so these functions must not allocate.
"""

from __future__ import annotations

from typing import Any

from ....agents.compilation.compiled import compiled
from ....agents.compilation.fetching import prefetch, prefetch_read, prefetch_row
from ...tables.run import (
    CHILDREN,
    FORESEEN_AGENT,
    FORESEEN_COPIES,
    FORESEEN_PLACE,
    FORESEEN_SLOTS,
    LINE,
    SLOT,
    WAKE_UP,
    RunTables,
)
from ...tables.tallies import FREE_ROWS, HEAP
from .wake_heap import first_child, is_sooner

NUMBERS = 8
"""Of a line of memory."""
NEAR_LEVELS = 4
"""Of the heap of wake-ups, below its first children: so many stay in a near cache."""


@compiled(forceinline=True, _nrt=False)
def is_far(run: RunTables):  # pragma: no cover - compiled
    """Whether a world is so large that its memory is worth asking for beforehand."""
    return len(run.foreseen) > 0


@compiled(forceinline=True, _nrt=False)
def second_next(run: RunTables, coming: int):  # pragma: no cover - compiled
    """The place of the wake-up after the one at ``coming``, which is the top's first child; of at least two."""
    second = first_child(run, coming) if CHILDREN * coming + 1 < run.counts[HEAP] else coming
    for sibling in range(1, CHILDREN + 1):
        if sibling != coming and (second == coming or is_sooner(run, sibling, second)):
            second = sibling
    return second


@compiled(forceinline=True, _nrt=False)
def descend(run: RunTables, levels: int):  # pragma: no cover - compiled
    """Go on down the way that the next sift will take, and ask for the children of where it leads."""
    place = run.foreseen[FORESEEN_PLACE]
    for _ in range(levels):
        if CHILDREN * place + 1 < run.counts[HEAP]:
            place = first_child(run, place)
            prefetch(run.heap_time, WAKE_UP * (CHILDREN * place + 1))
    run.foreseen[FORESEEN_PLACE] = place


@compiled(forceinline=True, _nrt=False)
def fetch_agent(run: RunTables, agent: int):  # pragma: no cover - compiled
    """Ask for the memory of what an agent and its slots are known by."""
    prefetch(run.ticks, agent)
    prefetch(run.latest, agent)
    prefetch(run.means, agent)
    prefetch(run.numbers, agent)
    prefetch_read(run.read, agent, False)
    edges, first, last = len(run.heads), run.offsets[agent], run.offsets[agent + 1]
    for edge in range(first, last + NUMBERS - 1, NUMBERS):
        prefetch(run.heads, edge)
        prefetch(run.reverse, edge)
    for slots in range(0, len(run.known), max(1, edges)):
        for slot in range(slots + first, slots + last + NUMBERS - 1, NUMBERS):
            prefetch(run.known, slot)
        for slot in range(slots + first, slots + last + 1, NUMBERS // SLOT):
            prefetch(run.first_node, SLOT * slot)


@compiled(forceinline=True, _nrt=False)
def fetch_slots(run: RunTables, agent: int, kinds: Any):  # pragma: no cover - compiled
    """Ask for the newest copies that come for an agent, what it knows, and where messages of so many kinds will go."""
    edges, first, last, paid = len(run.heads), run.offsets[agent], run.offsets[agent + 1], run.paid[agent]
    prefetch_read(run.read, agent, True)
    if paid >= 0:
        prefetch(run.references, LINE * paid)
        prefetch(run.pool[paid], 0)
    for slots in range(0, len(run.known), max(1, edges)):
        for slot in range(slots + first, slots + last):
            prefetch(run.arrival, run.first_node[SLOT * slot])
            prefetch(run.references, LINE * run.known[slot])
    for edge in range(first, last):
        prefetch(run.numbers, run.heads[edge])
        for kind in range(kinds):
            prefetch(run.first_node, SLOT * (kind * edges + run.reverse[edge]))


@compiled(forceinline=True, _nrt=False)
def look_ahead(run: RunTables, kinds: Any):  # pragma: no cover - compiled
    """Begin to ask for what the next wake-up needs, which sends so many kinds, and the one after it.

    The agent on top of the heap is awake.
    """
    coming = first_child(run, 0) if run.counts[HEAP] > 1 else 0
    run.foreseen[FORESEEN_PLACE], run.foreseen[FORESEEN_AGENT] = coming, run.heap_agent[WAKE_UP * coming]
    if coming > 0:
        fetch_agent(run, run.heap_agent[WAKE_UP * second_next(run, coming)])
        fetch_slots(run, run.foreseen[FORESEEN_AGENT], kinds)
        descend(run, NEAR_LEVELS)


@compiled(forceinline=True, _nrt=False)
def fetch_versions(run: RunTables):  # pragma: no cover - compiled
    """Ask for what the next agent's step will read of its neighbours, and what this one's message will be written into.

    There is no branch in it that a processor would have to guess, and would guess wrong half of the time.
    """
    agent, slots = run.foreseen[FORESEEN_AGENT], 0
    first, last = run.offsets[agent], run.offsets[agent + 1]
    for before in range(0, len(run.known), max(1, len(run.heads))):
        for slot in range(before + first, before + last):
            node, known = run.first_node[SLOT * slot], run.known[slot]
            prefetch_row(run.pool, run.version[node] if node >= 0 else known)
            run.foreseen[FORESEEN_COPIES + slots] = node
            slots += 1
    run.foreseen[FORESEEN_SLOTS] = slots
    prefetch_row(run.pool, run.free_rows[run.counts[FREE_ROWS] - 1])
    fetch_copies(run)


@compiled(forceinline=True, _nrt=False)
def fetch_copies(run: RunTables):  # pragma: no cover - compiled
    """Ask for the versions of the copies asked for last, and for the copies after these; and a level of the heap."""
    for k in range(FORESEEN_COPIES, FORESEEN_COPIES + run.foreseen[FORESEEN_SLOTS]):
        node = run.foreseen[k]
        prefetch(run.references, LINE * run.version[node])
        run.foreseen[k] = run.following[node] if node >= 0 else -1
        prefetch(run.arrival, run.foreseen[k])
    descend(run, 1)
