"""Byzantine agents of one run, whose messages an attack replaces when they leave a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ...agents.authors import returned_numbers
from ..attacks import Attack

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


@final
class Attackers:
    """Byzantine agents of a run, and their attack.

    ``stream(agent, now, channel)`` gives the random stream of a message: who sends it, when, and of which kind and to
    whom. It depends on nothing else, so that both engines draw the same.
    """

    def __init__(
        self, attack: Attack, byzantine: NDArray[np.bool_], stream: Callable[[int, float, int], np.random.Generator]
    ) -> None:
        self.attack, self.byzantine, self._stream = attack, byzantine, stream

    def replaced(
        self, me: Any, kind: str, messages: Array, *, owners: Ranks | None = None, to: Ranks | None = None
    ) -> Array:
        """(k, width) messages of some agents at a step, those of byzantine ones replaced.

        The record is of one agent, or of a batch, in which the owners have these places; by default each sends one, in
        order. They are for all, or each for a neighbour.
        """
        agents = me.agents_
        senders = agents if owners is None else agents[owners]
        places = np.flatnonzero(self.byzantine[senders])
        if not len(places):
            return messages
        out, heard = messages.copy(), self._heard(me, kind, messages.shape[1])
        times = np.broadcast_to(np.reshape(me.now, -1), (len(agents),))
        channel = me.tables_.names.kinds.index(kind) * (len(self.byzantine) + 1)
        for place in places.tolist():
            owner = place if owners is None else int(owners[place])
            receiver = 0 if to is None else int(to[place]) + 1
            rng = self._stream(int(senders[place]), float(times[owner]), channel + receiver)
            made = self.attack.message
            given = made(messages[place], heard(owner), rng)
            out[place] = returned_numbers(given, out[place].shape, made)
        return out

    def _heard(self, me: Any, kind: str, width: int) -> Callable[[int], Array]:
        """What finds, by their places, the honest messages that agents have received."""
        none = np.zeros((0, width))
        if not (self.attack.listens and kind in me.tables_.names.heard_kinds):
            return lambda _: none
        received, graph = me.received_(kind), me.tables_.graph
        edges = np.concatenate([np.arange(graph.offsets[agent], graph.offsets[agent + 1]) for agent in me.agents_])
        known = me.was_heard_(kind) & ~self.byzantine[graph.heads[edges]]
        ends = np.cumsum([0, *me.degrees_])
        if received.shape[1] != width:
            return lambda _: none
        return lambda owner: received[ends[owner] : ends[owner + 1]][known[ends[owner] : ends[owner + 1]]]
