"""All arrays of lazy delivery, as one argument of compiled functions.

Without ``_nrt=False`` numba would count references to each of them at every access, which costs ten times the work
itself; so functions that take them must not allocate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
    COPIES_OUT,
    MOST_ACTIVATIONS,
    MOST_VECTORS,
    MOST_UPDATES,
    EVENTS_BEFORE_LOOK,
    KEEPS_ROWS,
    CONSTANTS,
) = range(16)
"""Places in `RunTables.constants`."""
LINE = 8
"""Numbers of a version's line: its entries are at ``LINE * row``."""
NODE = 4
"""Numbers of the line of a copy under way, which is known by where its line begins."""
SLOT = 4
"""Numbers of a slot's part of a line: its entries are at ``SLOT * slot``."""
WAKE_UP = 2
"""Numbers of a wake-up's part of a line: its entries are at ``WAKE_UP * place``."""
CHILDREN = 4
"""Of a wake-up in the heap: so many fill a line."""
CLOCK_CODE, JITTER, RANDOM_PHASE, RECORD_EVERY, ENDS_BY_TIME, CLOCK_CONSTANTS = range(6)
"""Places in `RunTables.clock`."""


class RunTables(NamedTuple):
    """All arrays of lazy delivery and of the clocks; compiled functions take them as one argument.

    Attributes
    ----------
    counts : (COUNTERS,) int64
    constants : (CONSTANTS,) float64
        Code and two parameters of the delay; loss probability, or the mean durations and loss probabilities of a link's
        states (0 if it has none); bytes per time unit (or infinite); whether vectors are copied into the inbox; limits
        of activations, vectors (infinite: none) and an agent's updates (-1: none); events up to which windows may go
        on before somebody looks at the run's limits; whether rows that nothing refers to are kept until planned steps
        that read them are made.
    key : (2,) uint64
    offsets, heads, reverse, numbers
        The graph, and the stable numbers of the agents.
    link_delays : (E,) float64
        Delays per link, or empty.
    bursts : (E, 2) int64
        Period (0: not begun) and state (1: good) of each link, or empty.
    burst_until : (E,) float64
        When that state ends, or empty.
    pool : (R, width) float64
    sent_at, order, tick, size, references : (LINE R,)
        Of each version, at where its line begins (`hushnet.simulator.tables.room.lines`).
    free_rows : (R,) int64
        Rows of versions that nobody refers to; as many of them as are free.
    arrival, version, following, rank : (NODE N,)
        Of each copy under way: when it arrives, its version, the copy that was sent before it (-1: none) and its order
        of sending, at where its line begins (`hushnet.simulator.tables.room.lines`).
    free_nodes : (N,) int64
        Where lines begin that no copy takes; as many of them as are free.
    awaited : (S + 1,) int64
        Room for the slots of an agent for which copies are under way; S is the most slots that an agent has.
    receivers : (D,) uint64
        Room for the stable numbers of those who are sent a message; D is the largest degree.
    copy_draws : (3, D) float64
        Room for the uniforms of its copies, see `hushnet.simulator.rules.delivery.draw_copies`.
    known : (Q,) int64
        Per slot: the version known; -1 for none.
    first_node, heard_sent_at, heard_order, heard_tick : (SLOT Q,)
        Of each slot: the newest copy under way (-1: none), and what the inbox says of the version known.
    values, places
        The vectors of the inbox, and where that of each slot is; both are empty while nobody reads copies.
    joins, leaves, gone_from : (n,) float64
        When agents join and leave, and from when on they are down for good.
    was_up : (n,) bool
        State before the first of the changes.
    changes : (n, C) float64
        Times at which an agent comes up or goes down in turn; infinite from the last one on.
    heap_time, heap_agent : (WAKE_UP (n + CHILDREN - 1),)
        Next wake-ups by their places in a heap (`hushnet.simulator.engine.batched.wake_heap`): the first at its top.
    clock : (CLOCK_CONSTANTS,) float64
        Code, jitter, whether the first phase is random; activations between two records (0: none), and whether the run
        ends at some time.
    means, recorded, recorded_offsets
        The clocks' means, or their recorded times.
    ticks, updates, charged : (n,) int64
        Last tick, completed steps, charged messages.
    latest : (kinds * n,) int64
        Last version of a kind that each agent has sent to all (-1: none), kind after kind.
    paid : (n,) int64
        Last version without noise that each agent was charged for (-1: none).
    silent, alone : (n,) bool
        Whether an agent takes no further step, and whether the end of its clock concerns a process of its own.
    noting : (NOTING,) float64
        What is noted, see `hushnet.simulator.tables.notes`.
    watched : (n,) bool
        Agents whose steps, and the copies between them, are noted; empty if nobody observes.
    note_times : (L, 2) float64
    notes : (L, NOTE_COLUMNS) int64
    """

    counts: Any
    constants: Any
    key: Any
    offsets: Any
    heads: Any
    reverse: Any
    numbers: Any
    link_delays: Any
    bursts: Any
    burst_until: Any
    pool: Any
    sent_at: Any
    order: Any
    tick: Any
    size: Any
    references: Any
    free_rows: Any
    arrival: Any
    version: Any
    following: Any
    rank: Any
    free_nodes: Any
    awaited: Any
    receivers: Any
    copy_draws: Any
    known: Any
    first_node: Any
    heard_sent_at: Any
    heard_order: Any
    heard_tick: Any
    values: Any
    places: Any
    joins: Any
    leaves: Any
    gone_from: Any
    was_up: Any
    changes: Any
    heap_time: Any
    heap_agent: Any
    clock: Any
    means: Any
    recorded: Any
    recorded_offsets: Any
    ticks: Any
    updates: Any
    charged: Any
    latest: Any
    paid: Any
    silent: Any
    alone: Any
    noting: Any
    watched: Any
    note_times: Any
    notes: Any
