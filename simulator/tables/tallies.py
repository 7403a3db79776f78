"""Places of compiled code's counts in `hushnet.simulator.tables.run.RunTables.counts`."""

from __future__ import annotations

(
    ORDER,
    FREE_ROWS,
    FREE_NODES,
    MESSAGES,
    VECTORS,
    SENT,
    LOST,
    DELIVERED,
    DROPPED,
    IN_FLIGHT,
    OVERTAKEN,
    SENT_BYTES,
    LOST_BYTES,
    DELIVERED_BYTES,
    DROPPED_BYTES,
    IN_FLIGHT_BYTES,
    ACTIVATIONS,
    ACTIVE,
    SHORT,
    BARRIER,
    HEAP,
    UNFINISHED,
    WAKES,
    NOTES,
    OBSERVED,
    OPENED,
    ASKED_TICK,
    BEGUN,
    COUNTERS,
) = range(29)
"""Places in `RunTables.counts`; `UNFINISHED` is whether the last wake-up's agent still has to be put back on its clock,
and `WAKES` counts wake-ups and timers (`hushnet.simulator.world.watchdog`). `NOTES` are notes that there are, or that
nobody was told of yet, and `OBSERVED` is what becomes of them (`hushnet.simulator.tables.effects`). Where the graph
changes, the open edges of agent `OPENED` - 1 are known, at the step of whose tick (`ASKED_TICK`) they were asked for.
`BEGUN` is how many steps that take time were begun."""
