"""Pairwise exchange beside its rules (`hushnet.simulator.rules.sessions`): which protocols fit, and its tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...agents.authors import class_place
from ...agents.errors import InputError
from ...agents.graph import Graph
from ...protocols.base import Layout, Protocol, Traits
from ...protocols.schedule import ExchangeSchedule
from ...protocols.steps.single_steps import PHASES
from ..network.network import Network
from ..network.randomness import QUANTUM, lasting
from ..tables import sessions as columns
from ..tables.effects import EFFECT_COLUMNS
from ..tables.room import extended
from ..tables.sessions import SessionTables

REQUEST, REPLY, REFUSAL = "request", "reply", "refusal"
MOST_EFFECTS = 8
"""Copies and timers that one event brings about, at most."""


def check_exchange(protocol: type[Protocol], traits: Traits, layout: Layout) -> None:
    """Refuse a protocol whose functions, traits or kinds of messages do not fit an exchange.

    Raises
    ------
    InputError
        With the line of the author's class.
    """
    where = class_place(protocol)
    name = f"{where}: {protocol.__name__}" if where else protocol.__name__
    lacking = [phase for phase in PHASES if getattr(protocol, phase) is None]
    if lacking:
        raise InputError(f"{name} exchanges pairwise, but has no function {lacking[0]}")
    if traits.trigger != "wake" or traits.inbox != "latest":
        raise InputError(f"{name} exchanges pairwise, so its trigger must be 'wake' and its inbox 'latest'")
    if not {REQUEST, REPLY} <= layout.messages.keys() or REFUSAL in layout.messages:
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
    widths = [np.max(layout.messages[kind].width) for kind in (REQUEST, REPLY)]
    resend_after = 1 + sum(network.mean_delay(network.size(int(width))) for width in widths)
    waits = parameters.resend_after or resend_after if repeat else parameters.timeout or 5 * resend_after
    return max(QUANTUM, lasting(waits))


def session_tables(
    graph: Graph, layout: Layout, network: Network, parameters: ExchangeSchedule, *, repeat: bool
) -> SessionTables:
    """The tables of a run of pairwise exchanges, before its first call."""
    agents, edges, kinds = graph.agents, len(graph.heads), layout.messages
    ranks = {kind: rank for rank, kind in enumerate(kinds)}
    rules = [repeat, network.size(0)]
    for kind in (REQUEST, REPLY):
        rules += [ranks[kind], kinds[kind].vectors]
    copies = agents + 64
    counts = np.zeros(columns.COUNTERS, dtype=np.int64)
    counts[columns.ENDED], counts[columns.FREE_COPIES] = -1, copies
    sessions = np.zeros((edges, columns.FIELDS), dtype=np.int32)
    sessions[:, columns.TICK] = -1
    return SessionTables(
        counts=counts,
        times=np.array([patience(layout, network, parameters, repeat=repeat), 0.0, -1.0]),
        rules=np.array(rules, dtype=np.int64),
        widths=np.array([np.broadcast_to(kinds[kind].width, (agents,)) for kind in (REQUEST, REPLY)], np.int64),
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
    """Counts of sessions by their outcome, for a run's totals; see `hushnet.simulator.tables.sessions.COUNTED`."""
    return {f"sessions_{name}": int(tables.counts[place]) for name, place in columns.COUNTED.items()}


def with_more_copies(tables: SessionTables) -> SessionTables:
    """Tables with room for twice as many copies under way."""
    size, counts = len(tables.copies), tables.counts
    names = ("copies", "copy_sent_at", "free_copies")
    more = tables._replace(**{name: extended(getattr(tables, name), size) for name in names})
    free = int(counts[columns.FREE_COPIES])
    more.free_copies[free : free + size] = np.arange(size, 2 * size)
    counts[columns.FREE_COPIES] += size
    return more


def called_edges(tables: SessionTables) -> NDArray[np.bool_]:
    """(E,) over which directed edges a session is open."""
    return tables.sessions[:, columns.TICK] >= 0
