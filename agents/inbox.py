"""Vectors that agents have received: per directed edge and message kind, the newest by order of sending.

The entry of the directed edge i -> j is what i has received from j; so agent i's inbox is a contiguous slice.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

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


class Inbox(ABC):
    """The inboxes of all agents, for kinds of messages of one width each, or one per sender.

    For every edge of a kind ``sent_at``, ``order`` among all sends (-1: never heard) and ``tick`` of the sender's clock
    (-1: a start message; -2: never heard) tell of the last message; ``pending`` has what arrived since an agent's last
    step (inbox ``every`` only).
    """

    def __init__(self, graph: Graph, widths: Mapping[str, Width], precision: DTypeLike = np.float64) -> None:
        edges, self.precision = len(graph.heads), precision
        self._edges, self._widths = edges, dict[str, Width]()
        self.sent_at: dict[str, NDArray[np.float64]] = {}
        self.order: dict[str, NDArray[np.int64]] = {}
        self.tick: dict[str, NDArray[np.int64]] = {}
        for kind, width in widths.items():
            per_sender = np.asarray(width, dtype=np.int64)
            self._widths[kind] = int(width) if per_sender.ndim == 0 else per_sender[graph.heads]  # type: ignore[arg-type]
            self.sent_at[kind] = np.full(edges, -math.inf)
            self.order[kind] = np.full(edges, -1, dtype=np.int64)
            self.tick[kind] = np.full(edges, -2, dtype=np.int64)
        self.pending: defaultdict[int, list[Message]] = defaultdict(list)

    @property
    @abstractmethod
    def values(self) -> dict[str, Block]:
        """Copies, per kind, of the newest vector of every directed edge; zeros until one was received."""

    @abstractmethod
    def heard(self, kind: str, edges: slice) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
        """(k, width) vectors among which are the newest of some directed edges, and which of them these are.

        They are as wide as the widest message; shorter ones end in zeros. The (edges,) ranks are -1 where nothing was
        received.
        """
