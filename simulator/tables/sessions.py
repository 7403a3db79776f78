"""The state of pairwise sessions: what is open, what is under way, and what callers wait for."""

from __future__ import annotations

from typing import Any, NamedTuple

from .effects import EFFECTS

REQUEST, REPLY, REFUSAL = range(3)
"""Kinds of copies."""
REQUESTING, RESPONDING, COMPLETING = range(1, 4)
"""Phases of a session: its opening, and both halves of the exchange."""
(
    FREE_COPIES,
    PHASE,
    EDGE,
    ROW,
    CLOSING,
    AGAIN,
    ENDED,
    ENOUGH,
    WORN,
    OPEN,
    OPENED,
    FINISHED,
    VOID,
    REFUSALS,
    GIVEN_UP,
    SKIPPED,
    COUNTERS,
) = range(EFFECTS + 1, EFFECTS + 18)
"""Places in `SessionTables.counts` after those of all tables with effects: free copies; the half that is being made (0:
none), its session and its version; the session that an arrival closes and the one that it lets the callee answer again
(-1: none); an agent that will never step again (-1: none); whether the vectors asked for were sent, or a message was
repeated more often than there are draws for it; how many sessions are open, and how many were opened, finished, void,
refused and given up; and ticks of clocks at which nobody was called because the edge was busy."""
PATIENCE, NOW, LATE = range(3)
"""Places in `SessionTables.times`: how long callers wait, time of the last event, and of the last timer or wake-up."""
REPEATS, HEADER, KIND = range(3)
"""Places in `SessionTables.rules`: whether callers repeat, bytes of a header; from
`KIND` on, for requests and replies, the rank of the kind and the vectors that it counts as."""
TICK, ASKED, ANSWER, REQUESTS, ANSWERS, REFUSED, WATCHED, FIELDS = range(8)
"""Fields of a session: tick that opened it (-1: none is open), versions of request and reply (-1: not accepted), how
often each was transmitted, whether it was refused, and whether its caller still waits for it."""


COUNTED = {
    "opened": OPENED,
    "finished": FINISHED,
    "void": VOID,
    "refused": REFUSALS,
    "given_up": GIVEN_UP,
    "open": OPEN,
    "skipped": SKIPPED,
}
"""What a run says of its sessions, and where it is counted."""


class SessionTables(NamedTuple):
    """All arrays of pairwise exchange; compiled functions take them as one argument.

    Attributes
    ----------
    counts : (COUNTERS,) int64
    times : (3,) float64
    rules : (KIND + 4,) int64
    widths : (2, n) int64
        Numbers in a request and in a reply of each agent.
    sessions : (E, FIELDS) int32
    reply_due : (E,) float64
        When the last reply that was not lost arrives.
    watches : (n,) int64
        Sessions of its own that an agent still waits for.
    over : (n,) bool
        Agents whose clock has ended.
    copies : (C, 5) int64
        Kind, session's edge, tick, bytes and order of each copy under way, at its place.
    copy_sent_at, free_copies : (C,)
        When each was sent, and the free places.
    due : (F,) float64
    effects : (F, EFFECT_COLUMNS) int64
    """

    counts: Any
    times: Any
    rules: Any
    widths: Any
    sessions: Any
    reply_due: Any
    watches: Any
    over: Any
    copies: Any
    copy_sent_at: Any
    free_copies: Any
    due: Any
    effects: Any
