"""The inboxes of the batched engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import Block
from ...agents.graph import Graph
from ...agents.inbox import Inbox
from ...protocols.base import Layout
from .room import zeros
from .run import NOTHING_HEARD, SLOT


class TableInbox(Inbox):
    """Inboxes whose arrays are slices of one array for all kinds, in the order of the slots.

    Vectors are in the tables, once for all who have heard them. Copies of them, one for every slot, are only made where
    somebody reads them: steps in Python, observers, tests.

    Attributes
    ----------
    refresh : callable or None
        Brings the vectors up to date when somebody asks for them.
    """

    def __init__(self, graph: Graph, layout: Layout) -> None:
        self.refresh: Callable[[], None] | None = None
        super().__init__(graph, {kind: spec.width for kind, spec in layout.messages.items()})
        edges, kinds = len(graph.heads), list(layout.messages)
        self.slots = zeros(edges * len(kinds), SLOT)
        self.slots[:] = NOTHING_HEARD
        for rank, kind in enumerate(kinds):
            own = self.slots[rank * edges : (rank + 1) * edges]
            self.sent_at[kind], self.order[kind] = own["heard_sent_at"], own["heard_order"]
            self.tick[kind] = own["heard_tick"]

    @property
    def values(self) -> dict[str, Block]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Per kind, the newest vector of every slot; zeros until something was heard."""
        if self.refresh is not None:
            self.refresh()
        return self._copies[0]

    @property
    def flat_values(self) -> NDArray[np.float64]:
        """The vectors of all slots, one after the other."""
        return self._copies[1]

    @property
    def places(self) -> NDArray[np.int64]:
        """(slots + 1,) where the vector of each slot begins, and where the last one ends."""
        return self._copies[2]

    @cached_property
    def _copies(self) -> tuple[dict[str, Block], NDArray[np.float64], NDArray[np.int64]]:
        blocks = {kind: Block(self._edges, width) for kind, width in self._widths.items()}
        starts = np.cumsum([0, *(len(block.values) for block in blocks.values())])
        values = np.zeros(int(starts[-1]))
        for block, start, end in zip(blocks.values(), starts[:-1], starts[1:], strict=True):
            block.values = values[start:end]
        parts = [block.offsets[:-1] + start for block, start in zip(blocks.values(), starts[:-1], strict=True)]
        return blocks, values, np.concatenate([*parts, starts[-1:]]).astype(np.int64)
