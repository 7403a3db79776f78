"""Where compiled code keeps its counts: places in `hushnet.simulator.tables.mail.Mail.counts`."""

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
    COUNTERS,
) = range(24)
"""Places in `Mail.counts`; `UNFINISHED` is whether the last wake-up's agent still has to be put back on its clock, and
`WAKES` counts wake-ups and timers (`hushnet.simulator.effort`)."""
