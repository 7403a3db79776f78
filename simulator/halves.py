"""The halves of a pairwise exchange in Python, and what a protocol must declare to make them: the same for all engines.

See `hushnet.simulator.rules.sessions` for the rules of sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..agents.agent import Agent
from ..protocols.base import Out, Sent
from ..protocols.schedule import ExchangeSchedule
from .mail import extended
from .randomness import QUANTUM, lasting
from .tables import sessions as columns
from .tables.sessions import SessionTables

if TYPE_CHECKING:
    from .world import World

REQUEST, REPLY, REFUSAL = "request", "reply", "refusal"


def check_exchange(world: World) -> None:
    """Raise a `ValueError` if a protocol's traits or message kinds do not fit an exchange."""
    name = type(world.protocol).__name__
    if world.traits.trigger != "wake" or world.traits.inbox != "latest":
        raise ValueError(f"{name} exchanges pairwise, so its trigger must be 'wake' and its inbox 'latest'")
    if not {REQUEST, REPLY} <= world.layout.messages.keys() or REFUSAL in world.layout.messages:
        kinds = ", ".join(world.layout.messages) or "none"
        raise ValueError(
            f"{name} exchanges pairwise, so its message kinds must include 'request' and 'reply' and "
            f"must not include 'refusal'; they are: {kinds}"
        )


def callers_repeat(world: World) -> bool:
    """Whether callers repeat a request until it is answered, or give up."""
    return (world.traits.unanswered or ("repeat" if world.layout.edge else "give_up")) == "repeat"


def patience(world: World, parameters: ExchangeSchedule) -> float:
    """How long a caller waits before it repeats its request or gives up; a positive multiple of 2^-30."""
    network = world.network
    widths = [np.max(world.layout.messages[kind].width) for kind in (REQUEST, REPLY)]
    resend_after = 1 + sum(network.mean_delay(network.size(int(width))) for width in widths)
    if callers_repeat(world):
        waits = parameters.resend_after or resend_after
    else:
        waits = parameters.timeout or 5 * resend_after
    return max(QUANTUM, lasting(waits))


def session_tables(world: World, parameters: ExchangeSchedule) -> SessionTables:
    """The tables of sessions of a run."""
    agents, edges = len(world.agents), len(world.setting.graph.heads)
    kinds = world.layout.messages
    ranks = {kind: rank for rank, kind in enumerate(kinds)}
    rules = [callers_repeat(world), world.network.size(0)]
    for kind in (REQUEST, REPLY):
        rules += [ranks[kind], kinds[kind].vectors]
    copies, timers = agents + 64, 2 * agents + 64
    counts = np.zeros(columns.COUNTERS, dtype=np.int64)
    counts[columns.ENDED], counts[columns.FREE_COPIES] = -1, copies
    sessions = np.zeros((edges, columns.FIELDS), dtype=np.int32)
    sessions[:, columns.TICK] = -1
    return SessionTables(
        counts=counts,
        times=np.array([patience(world, parameters), 0.0, -1.0]),
        rules=np.array(rules, dtype=np.int64),
        widths=np.array([np.broadcast_to(kinds[kind].width, (agents,)) for kind in (REQUEST, REPLY)], np.int64),
        sessions=sessions,
        reply_due=np.zeros(edges),
        watches=np.zeros(agents, dtype=np.int64),
        over=np.zeros(agents, dtype=bool),
        copy_time=np.zeros(copies),
        copy_order=np.zeros(copies, dtype=np.int64),
        copy_place=np.zeros(copies, dtype=np.int64),
        copies=np.zeros((copies, 4), dtype=np.int64),
        copy_sent_at=np.zeros(copies),
        free_copies=np.arange(copies),
        timer_due=np.zeros(timers),
        timer_edge=np.zeros(timers, dtype=np.int64),
        timer_tick=np.zeros(timers, dtype=np.int64),
    )


def counted(tables: SessionTables) -> dict[str, int]:
    """What became of the sessions of a run; see `hushnet.simulator.tables.sessions.COUNTED`."""
    return {f"sessions_{name}": int(tables.counts[place]) for name, place in columns.COUNTED.items()}


def with_more_copies(tables: SessionTables) -> SessionTables:
    """Tables with room for twice as many copies under way."""
    size, counts = len(tables.copies), tables.counts
    names = ("copy_time", "copy_order", "copy_place", "copies", "copy_sent_at", "free_copies")
    more = tables._replace(**{name: extended(getattr(tables, name), size) for name in names})
    free = int(counts[columns.FREE_COPIES])
    more.free_copies[free : free + size] = np.arange(size, 2 * size)
    counts[columns.FREE_COPIES] += size
    return more


def make_request(world: World, caller: Agent, busy: Callable[[int], bool]) -> tuple[int, Sent] | None:
    """Let an awake agent pick a neighbour and call it: the directed edge to it and the request.

    None if that edge is busy, or if the caller fell silent instead.
    """
    slots = world.setting.graph.edges_of(caller.index)
    degree = slots.stop - slots.start
    view, out = world.open(caller)
    partner = world.protocol.partner(view)
    if not 0 <= partner < degree:
        raise ValueError(
            f"partner of agent {caller.index} must be the rank of one of its {degree} neighbours, got {partner}"
        )
    edge = slots.start + partner
    if busy(edge):
        return None
    if world.observer:
        world.observer.woke(world, caller)
    world.protocol.offer(view, partner, out)
    world.stepped("offer", view, out)
    caller.silent = out.silent
    world.check_finite(caller, out)
    request = _only(out, REQUEST, caller, int(world.setting.graph.heads[edge]))
    return None if request is None else (edge, request)


def make_reply(world: World, callee: Agent, edge: int, vector: NDArray[np.float64]) -> Sent | None:
    """Let a callee update from the request that came over one of its edges: its reply, None if it refuses."""
    callee.reactions += 1
    view, out = world.open(callee)
    world.protocol.accept(view, edge - world.setting.graph.edges_of(callee.index).start, vector, out)
    world.stepped("accept", view, out)
    callee.silent = callee.silent or out.silent
    world.check_finite(callee, out)
    return _only(out, REPLY, callee, int(world.setting.graph.heads[edge]))


def take_reply(world: World, caller: Agent, edge: int, vector: NDArray[np.float64]) -> None:
    """Let a caller update from the reply that came over one of its edges, which completes a step."""
    caller.reactions += 1
    view, out = world.open(caller)
    world.protocol.finish(view, edge - world.setting.graph.edges_of(caller.index).start, vector)
    world.stepped("finish", view, out)
    world.check_finite(caller, out)
    world.count(caller)


def _only(out: Out, kind: str, sender: Agent, receiver: int) -> Sent | None:
    """The one message that a half of an exchange sends; None if the sender fell silent instead."""
    if out.silent and not out.sent:
        return None
    if len(out.sent) != 1 or out.sent[0].kind != kind or out.sent[0].to != (receiver,):
        what = ", ".join(f"{sent.kind!r} to {sent.to or 'everybody'}" for sent in out.sent) or "none"
        raise ValueError(
            f"agent {sender.index} must send exactly one {kind!r} to its partner, agent {receiver}, not {what}"
        )
    return out.sent[0]
