"""The tables of a run: of deliveries and clocks, as one argument of compiled functions.

Things of one kind are records of a structured array, and ``versions.tick[row]`` is a field of one of them. A function
that takes the tables must not allocate: it is compiled with ``_nrt=False``, without which numba would count references
to each array at every access.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

(
    DELAY_CODE,
    DELAY_FIRST,
    DELAY_SECOND,
    LOSS_CHANCE,
    MEAN_GOOD,
    MEAN_BAD,
    LOSS_GOOD,
    LOSS_BAD,
    BANDWIDTH,
    MOST_ACTIVATIONS,
    MOST_VECTORS,
    MOST_UPDATES,
    EVENTS_BEFORE_LOOK,
    PLANNED,
    CLOCK_CODE,
    JITTER,
    RANDOM_PHASE,
    RECORD_EVERY,
    ENDS_BY_TIME,
    FIRST_NOTED,
    LAST_NOTED_AT,
    LOST_DELAY,
    CONSTANTS,
) = range(23)
"""Places in `RunTables.constants`: code and two parameters of the delay; loss probability, or the mean durations and
loss probabilities of a link's states (0 if it has none); bytes per time unit (or infinite); limits of activations,
vectors (infinite: none) and an agent's updates (-1: none); events up to which windows may go on before somebody looks
at the run's limits; whether steps are planned, so that rows that nothing refers to are kept until those that read them
are made, and vectors are not copied into the inbox; the clocks' code and jitter, and whether their first phase is
random; activations between two records (0: none), and whether the run ends at some time; first and last time of steps,
and of copies under way, that are noted; the delay that was drawn for the last copy that was lost."""

_WHOLE, _REAL, _BOOL = np.int64, np.float64, np.bool_
VERSION = np.dtype(
    [
        ("sent_at", _REAL),
        ("order", _WHOLE),
        ("tick", _WHOLE),
        ("bytes", _WHOLE),
        ("references", _WHOLE),
        ("free", _WHOLE),
    ]
)
"""A message that was sent: when, its order of sending, its sender's tick, its bytes, and by how many it is referred to.
``free`` is apart from the others: the k-th is the k-th row that nobody refers to, as many as are free."""
COPY = np.dtype(
    [("arrival", _REAL), ("version", _WHOLE), ("following", _WHOLE), ("rank", _WHOLE), ("free", _WHOLE)],
)
"""A copy under way: when it arrives, its version, the copy to its slot that was sent before it (-1: none), and its
order of sending; ``free`` as of versions."""
SLOT = np.dtype(
    [
        ("known", _WHOLE),
        ("first_node", _WHOLE),
        ("heard_sent_at", _REAL),
        ("heard_order", _WHOLE),
        ("heard_tick", _WHOLE),
    ]
)
"""What is known of a kind over a directed edge: the version (-1: none), the newest copy under way (-1: none), and what
the inbox says of the version."""
AGENT = np.dtype(
    [
        ("ticks", _WHOLE),
        ("updates", _WHOLE),
        ("charged", _WHOLE),
        ("paid", _WHOLE),
        ("joins", _REAL),
        ("leaves", _REAL),
        ("gone_from", _REAL),
        ("interval", _REAL),
        ("numbers", np.uint64),
        ("was_up", _BOOL),
        ("silent", _BOOL),
        ("alone", _BOOL),
        ("watched", _BOOL),
    ],
    align=True,
)
"""An agent: its last tick, completed steps and charged messages; the last version without noise that it was charged
for (-1: none); when it joins and leaves, and from when on it is down for good; its clock's mean interval; its stable
number; whether it was up before the first of its changes, takes no further step, has a process of its own for the end
of its clock, and is one whose steps and copies are noted."""
WAKE = np.dtype([("time", _REAL), ("agent", _WHOLE)])
"""A wake-up to come, by its place in a heap (`hushnet.simulator.engine.batched.wake_heap`)."""
LINK = np.dtype([("period", _WHOLE), ("good", _WHOLE), ("until", _REAL)])
"""The state of a link that is good and bad in turn: its period (0: not begun), whether it is good, and until when."""
NOTHING_HEARD = np.array([(-1, -1, -np.inf, -1, -2)], dtype=SLOT)


class RunTables(NamedTuple):
    """All tables of deliveries and clocks; structured ones are `numpy.recarray`.

    Attributes
    ----------
    counts : (COUNTERS,) int64
    constants : (CONSTANTS,) float64
    key : (2,) uint64
    offsets, heads, reverse
        The graph.
    link_delays : (E,) float64
        Delays per link, or empty.
    links : (E,) LINK
        Or empty.
    pool : (R, width) float64
        Vectors of the versions.
    versions : (R,) VERSION
    nodes : (N,) COPY
    slots : (kinds E,) SLOT
        That of kind k on edge e is k E + e.
    agents : (n,) AGENT
    wakes : (n + 1,) WAKE
    awaited : (S + 1,) int64
        Room for the slots of an agent for which copies are under way; S is the most slots that an agent has.
    receivers : (D,) uint64
        Room for the stable numbers of those who are sent a message; D is the largest degree.
    copy_draws : (3, D) float64
        Room for the uniforms of its copies, see `hushnet.simulator.rules.delivery.draw_copies`.
    values, places
        The vectors of the inbox, and where that of each slot is; both are empty while nobody reads copies.
    changes : (n, C) float64
        Times at which an agent comes up or goes down in turn; infinite from the last one on.
    recorded, recorded_offsets
        Recorded times of the clocks.
    latest : (kinds n,) int64
        Last version of a kind that each agent has sent to all (-1: none), kind after kind.
    note_times : (L, 2) float64
    notes : (L, NOTE_COLUMNS) int64
        See `hushnet.simulator.tables.notes`.
    """

    counts: Any
    constants: Any
    key: Any
    offsets: Any
    heads: Any
    reverse: Any
    link_delays: Any
    links: Any
    pool: Any
    versions: Any
    nodes: Any
    slots: Any
    agents: Any
    wakes: Any
    awaited: Any
    receivers: Any
    copy_draws: Any
    values: Any
    places: Any
    changes: Any
    recorded: Any
    recorded_offsets: Any
    latest: Any
    note_times: Any
    notes: Any
