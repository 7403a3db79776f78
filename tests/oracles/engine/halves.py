"""The halves of a pairwise exchange in Python, and what a protocol must declare to make them: the same for all engines.

See `hushnet.simulator.world.sessions` for the rules of sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .agent import Agent
from .contract import ExchangeSchedule
from ..laws import QUANTUM, quantise
from .view import Out, Sent

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
    return max(QUANTUM, quantise(waits))


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
    caller.silent = out.silent
    world.check_finite(caller, out)
    request = _only(out, REQUEST, caller, int(world.setting.graph.heads[edge]))
    return None if request is None else (edge, request)


def make_reply(world: World, callee: Agent, edge: int, vector: NDArray[np.float64]) -> Sent | None:
    """Let a callee update from the request that came over one of its edges: its reply, None if it refuses."""
    callee.reactions += 1
    view, out = world.open(callee)
    world.protocol.accept(view, edge - world.setting.graph.edges_of(callee.index).start, vector, out)
    callee.silent = callee.silent or out.silent
    world.check_finite(callee, out)
    return _only(out, REPLY, callee, int(world.setting.graph.heads[edge]))


def take_reply(world: World, caller: Agent, edge: int, vector: NDArray[np.float64]) -> None:
    """Let a caller update from the reply that came over one of its edges, which completes a step."""
    caller.reactions += 1
    view, out = world.open(caller)
    world.protocol.finish(view, edge - world.setting.graph.edges_of(caller.index).start, vector)
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
