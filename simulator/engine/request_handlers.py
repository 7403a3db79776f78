"""The three handlers of a pairwise exchange in Python, the same for all engines.

See `hushnet.simulator.rules.sessions` for the rules of sessions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...agents.agent import Agent
from ...protocols.base import Out, Sent
from ..world.sessions import REPLY, REQUEST
from ..world.world import World


def make_request(world: World, caller: Agent, busy: Callable[[int], bool]) -> tuple[int, Sent] | None:
    """Let an awake agent pick a neighbour and call it: the directed edge to it and the request.

    None if that edge is busy, or if the caller fell silent instead.
    """
    slots = world.setting.graph.edges_of(caller.index)
    degree = slots.stop - slots.start
    view, out = world.open(caller)
    partner = world.effort.interrupter.step(world.protocol.partner, view)
    if not 0 <= partner < degree:
        raise ValueError(
            f"partner of agent {caller.index} must be the rank of one of its {degree} neighbours, got {partner}"
        )
    edge = slots.start + partner
    if busy(edge):
        return None
    if world.observer:
        world.observer.woke(world, caller)
    world.effort.interrupter.step(world.protocol.make_request, view, partner, out)
    world.stepped("request", view, out)
    caller.silent = out.silent
    world.check_finite(caller, out)
    request = _only(out, REQUEST, caller, int(world.setting.graph.heads[edge]))
    return None if request is None else (edge, request)


def make_reply(world: World, callee: Agent, edge: int, vector: NDArray[np.float64]) -> Sent | None:
    """Let a callee update from the request that came over one of its edges: its reply, None if it refuses."""
    callee.reactions += 1
    view, out = world.open(callee)
    rank = edge - world.setting.graph.edges_of(callee.index).start
    world.effort.interrupter.step(world.protocol.make_response, view, rank, vector, out)
    world.stepped("respond", view, out)
    callee.silent = callee.silent or out.silent
    world.check_finite(callee, out)
    return _only(out, REPLY, callee, int(world.setting.graph.heads[edge]))


def take_reply(world: World, caller: Agent, edge: int, vector: NDArray[np.float64]) -> None:
    """Let a caller update from the reply that came over one of its edges, which is a step to be counted."""
    caller.reactions += 1
    view, out = world.open(caller)
    rank = edge - world.setting.graph.edges_of(caller.index).start
    world.effort.interrupter.step(world.protocol.complete_exchange, view, rank, vector)
    world.stepped("complete", view, out)
    world.check_finite(caller, out)


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
