"""Vectors that agents have received: per directed edge and message kind, the newest by order of sending.

The entry of the directed edge i -> j is what i has received from j; so agent i's inbox is a contiguous slice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .blocks import Block, Width
from .graph import Graph


@dataclass(frozen=True, slots=True)
class Message:
    """A vector on its way over one link."""

    sender: int
    receiver: int
    """`sender` and `receiver`: Agents."""
    kind: str
    """Message kind of the protocol's layout."""
    vector: NDArray[np.float64]
    """(width,) float64: Read-only."""
    sent_at: float
    """Time of sending."""
    order: int
    """Rank among all sends of the run: a larger one was sent later."""
    tick: int
    """Tick of the sender's clock at which it was sent."""
    edge: int
    """The receiver's directed edge towards the sender, whose entry of the inbox it goes to."""
    size: int
    """Bytes."""


class Inbox:
    """The inboxes of all agents, for kinds of messages of one width each, or one per sender.

    ``slots`` are (kinds E,) records of what is known of a kind over a directed edge, and so are, by kind, ``known``
    (the version; -1: none), ``sent_at``, ``order`` among all sends (-1: never heard) and ``tick`` of the sender's clock
    (-1: a start message; -2: never heard). ``pool`` has the (R, width) vectors of the run's versions, once for all who
    have heard them, for rules know versions and no numbers; shorter ones end in zeros. By agent, ``pending`` has what
    arrived since its last step (inbox ``every`` only).
    """

    def __init__(
        self, graph: Graph, widths: Mapping[str, Width], slots: NDArray[Any], pool: NDArray[np.floating]
    ) -> None:
        self.slots, self.pool, self._heads, self._widths = slots, pool, graph.heads, widths
        edges = len(graph.heads)
        own = {kind: slots[rank * edges : (rank + 1) * edges] for rank, kind in enumerate(widths)}
        names = "known", "heard_sent_at", "heard_order", "heard_tick"
        found = [{kind: part[name] for kind, part in own.items()} for name in names]
        self.known, self.sent_at, self.order, self.tick = found
        self.pending: defaultdict[int, list[Message]] = defaultdict(list)

    @property
    def values(self) -> dict[str, Block]:
        """Copies, per kind, of the newest vector of every directed edge; zeros until one was received."""
        found = dict[str, Block]()
        for kind, width in self._widths.items():
            own = width if np.ndim(width) == 0 else np.asarray(width)[self._heads]
            block = found[kind] = Block(len(self._heads), own, self.pool.dtype)
            for slot in np.flatnonzero(self.known[kind] >= 0).tolist():
                block[slot][:] = self.pool[self.known[kind][slot], : len(block[slot])]
        return found
