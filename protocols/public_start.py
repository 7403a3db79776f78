"""Starts that follow from public constants alone, declared for all agents at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..agents.blocks import State
from .steps.peer import Peer


@final
@dataclass(frozen=True)
class PublicStart:
    """The first values of all agents' blocks, and which of them neighbours may know from the start.

    It is made before any agent starts, so no agent's data enter but through what the protocol treats as public, and
    sending it costs nothing.
    """

    blocks: Mapping[str, ArrayLike] = field(default_factory=dict)
    """mapping of str to number, (n,) or (n, width) array: First values of blocks of `Layout.agent`: the same number for
    everybody, a number for each agent, or a vector for each. Other blocks start at zero."""
    sent: Mapping[str, str] = field(default_factory=dict)
    """By kinds of messages: the block whose first value all neighbours may know; by default they know nothing."""
    why: str = "the start does not depend on data"
    """Why it costs nothing."""

    @cached_property
    def _values(self) -> Mapping[str, NDArray[np.float64]]:
        return {name: np.asarray(values, dtype=np.float64) for name, values in self.blocks.items()}

    @property
    def finite(self) -> bool:
        """True if all first values are finite."""
        return all(bool(np.isfinite(values).all()) for values in self._values.values())

    def make(self, me: Peer) -> None:
        """Make the start of one agent, as `hushnet.protocols.base.Protocol.start`."""
        for name, values in self._values.items():
            setattr(me, name, values[me.agent] if values.ndim else values)
        for kind, block in self.sent.items():
            me.send(kind, getattr(me, block), me.public(self.why))

    def put(self, state: State, agents: NDArray[np.int64]) -> None:
        """Set the blocks of some agents, as `make` does one by one."""
        for name, values in self._values.items():
            block = state.agent[name]
            if block.uniform:
                block.rows[agents] = values.reshape(len(values), -1)[agents] if values.ndim else values
                continue
            for agent in agents.tolist():
                block[agent][:] = values[agent] if values.ndim else values
