"""The state of pairwise sessions: what is open, what is under way, and what callers wait for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...agents.authors import class_place
from ...agents.errors import InputError
from ...agents.graph import Graph
from ...protocols.base import Layout, Protocol, Traits
from ...protocols.schedule import ExchangeSchedule
from ...protocols.steps.single_steps import PHASES
from ..network.network import Network
from ..network.randomness import QUANTUM, lasting
from .allocation import extended
from .effects import EFFECT_COLUMNS, FREE_COPIES, SHARED

REQUEST, REPLY, REFUSAL = range(3)
"""Kinds of copies."""
REQUESTING, RESPONDING, COMPLETING = range(1, 4)
"""Phases of a session: its opening, and both halves of the exchange."""
(
    PHASE,
    EDGE,
    ROW,
    CLOSING,
    AGAIN,
    ENDED,
    OPEN,
    OPENED,
    FINISHED,
    VOID,
    REFUSALS,
    GIVEN_UP,
    SKIPPED,
    COUNTERS,
) = range(SHARED, SHARED + 14)
"""Places in `SessionTables.counts` after those of all tables with effects: the half that is being made (0: none), its
session and its version; the session that an arrival closes and the one that it lets the callee answer again (-1: none);
an agent that will never step again (-1: none); how many sessions are open, and how many were opened, finished, void,
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
    sizes : (2, n) int64
        Bytes of a request and of a reply of each agent.
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
    sizes: Any
    sessions: Any
    reply_due: Any
    watches: Any
    over: Any
    copies: Any
    copy_sent_at: Any
    free_copies: Any
    due: Any
    effects: Any


BOTH_KINDS, REFUSED_KIND = ("request", "reply"), "refusal"
"""Kinds of messages with and without numbers, in the order of kinds of copies."""
MOST_EFFECTS = 8
"""Copies and timers that one event brings about, at most."""


def check_exchange(protocol: type[Protocol], traits: Traits, layout: Layout) -> None:
    """Refuse a protocol whose functions, traits or kinds of messages do not fit an exchange.

    Raises `InputError` with the line of the author's class.
    """
    where = class_place(protocol)
    name = f"{where}: {protocol.__name__}" if where else protocol.__name__
    lacking = [phase for phase in PHASES if getattr(protocol, phase) is None]
    if lacking:
        raise InputError(f"{name} exchanges pairwise, but has no function {lacking[0]}")
    if traits.trigger != "wake" or traits.inbox != "latest":
        raise InputError(f"{name} exchanges pairwise, so its trigger must be 'wake' and its inbox 'latest'")
    if not {*BOTH_KINDS} <= layout.messages.keys() or REFUSED_KIND in layout.messages:
        kinds = ", ".join(layout.messages) or "none"
        raise InputError(
            f"{name} exchanges pairwise, so the messages of its layout must include 'request' and 'reply' and "
            f"must not include 'refusal'; they are: {kinds}"
        )


def callers_repeat(traits: Traits, layout: Layout) -> bool:
    """True if callers repeat a request until it is answered; False if they give up."""
    return (traits.unanswered or ("repeat" if layout.edge else "give_up")) == "repeat"


def patience(layout: Layout, network: Network, parameters: ExchangeSchedule, *, repeat: bool) -> float:
    """Time that a caller waits before it repeats its request or gives up; a positive multiple of 2^-30."""
    widths = [np.max(layout.messages[kind].width) for kind in BOTH_KINDS]
    resend_after = 1 + sum(network.mean_delay(network.size(int(width))) for width in widths)
    waits = parameters.resend_after or resend_after if repeat else parameters.timeout or 5 * resend_after
    return max(QUANTUM, lasting(waits))


def session_tables(
    graph: Graph, layout: Layout, network: Network, parameters: ExchangeSchedule, *, repeat: bool
) -> SessionTables:
    """The tables of a run of pairwise exchanges, before its first call."""
    agents, edges, kinds = graph.agents, len(graph.heads), layout.messages
    ranks = {kind: rank for rank, kind in enumerate(kinds)}
    rules, sizes = [repeat, network.size(0)], list[list[int]]()
    for kind in BOTH_KINDS:
        rules += [ranks[kind], layout.shares_of(kind)]
        widths = np.broadcast_to(kinds[kind].width, (agents,))
        sizes.append([network.size(width) for width in widths.tolist()])
    copies = agents + 64
    counts = np.zeros(COUNTERS, dtype=np.int64)
    counts[ENDED], counts[FREE_COPIES] = -1, copies
    sessions = np.zeros((edges, FIELDS), dtype=np.int32)
    sessions[:, TICK] = -1
    return SessionTables(
        counts=counts,
        times=np.array([patience(layout, network, parameters, repeat=repeat), 0.0, -1.0]),
        rules=np.array(rules, dtype=np.int64),
        sizes=np.array(sizes, dtype=np.int64),
        sessions=sessions,
        reply_due=np.zeros(edges),
        watches=np.zeros(agents, dtype=np.int64),
        over=np.zeros(agents, dtype=bool),
        copies=np.zeros((copies, 5), dtype=np.int64),
        copy_sent_at=np.zeros(copies),
        free_copies=np.arange(copies),
        due=np.zeros(MOST_EFFECTS),
        effects=np.zeros((MOST_EFFECTS, EFFECT_COLUMNS), dtype=np.int64),
    )


def counted(tables: SessionTables) -> dict[str, int]:
    """Counts of sessions by their outcome, for a run's totals; see `hushnet.simulator.tables.session_table.COUNTED`."""
    return {f"sessions_{name}": int(tables.counts[place]) for name, place in COUNTED.items()}


def with_more_copies(tables: SessionTables) -> SessionTables:
    """Tables with room for twice as many copies under way."""
    size, counts = len(tables.copies), tables.counts
    names = ("copies", "copy_sent_at", "free_copies")
    more = tables._replace(**{name: extended(getattr(tables, name), size) for name in names})
    free = int(counts[FREE_COPIES])
    more.free_copies[free : free + size] = np.arange(size, 2 * size)
    counts[FREE_COPIES] += size
    return more
