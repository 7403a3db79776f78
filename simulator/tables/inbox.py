"""The inboxes of the batched engine."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...agents.blocks import Block
from ...agents.graph import Graph
from ...agents.inbox import Inbox
from ...protocols.base import Layout


class TableInbox(Inbox):
    """Inboxes whose arrays are slices of one array for all kinds, in the order of the slots.

    Attributes
    ----------
    refresh : callable or None
        Brings the vectors up to date when somebody asks for them.
    """

    def __init__(self, graph: Graph, layout: Layout) -> None:
        self.refresh: Callable[[], None] | None = None
        super().__init__(graph, {kind: spec.width for kind, spec in layout.messages.items()})
        edges, kinds = len(graph.heads), list(self._values)
        blocks = list(self._values.values())
        self.flat_sent_at = np.full(edges * len(kinds), -math.inf)
        self.flat_order = np.full(edges * len(kinds), -1, dtype=np.int64)
        self.flat_tick = np.full(edges * len(kinds), -2, dtype=np.int64)
        starts = np.cumsum([0, *(len(block.values) for block in blocks)])
        self.flat_values = np.zeros(int(starts[-1]))
        parts = [block.offsets[:-1] + start for block, start in zip(blocks, starts[:-1], strict=True)]
        self.places = np.concatenate([*parts, starts[-1:]]).astype(np.int64)
        for rank, kind in enumerate(kinds):
            slots = slice(rank * edges, (rank + 1) * edges)
            self.sent_at[kind] = self.flat_sent_at[slots]
            self.order[kind] = self.flat_order[slots]
            self.tick[kind] = self.flat_tick[slots]
            blocks[rank].values = self.flat_values[starts[rank] : starts[rank + 1]]

    @property
    def values(self) -> dict[str, Block]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Per kind, the newest vector of every slot; zeros until something was heard."""
        if self.refresh is not None:
            self.refresh()
        return self._values

    @values.setter
    def values(self, blocks: dict[str, Block]) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._values = blocks
