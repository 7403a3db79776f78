"""Records with which agents make their steps, and whether the numbers of one are finite."""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping
from typing import Any, final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ...protocols.base import Peer

SHORT = 4096
"""Numbers whose product with themselves BLAS makes without threads, which cost more than they save."""


@final
class Peers:
    """Records with which so many agents make their steps, by the agent's index; ``make(agent)`` gives one."""

    def __init__(self, agents: int, make: Callable[[int], Peer]) -> None:
        self._agents, self._make = agents, make
        self._peers: MutableMapping[int, Peer] = {}

    def __len__(self) -> int:
        return self._agents

    def __getitem__(self, agent: int) -> Peer:
        """The record of an agent; the same one as long as it is kept."""
        peer = self._peers.get(agent)
        if peer is None:
            if not 0 <= agent < self._agents:
                raise IndexError(f"agent {agent} of {self._agents}")
            peer = self._peers[agent] = self._make(agent)
        return peer

    def keep_weakly(self) -> None:
        """Keep a record only as long as somebody else has it: no step is made by it, and it holds nothing."""
        self._peers = WeakValueDictionary(self._peers)


def finite(values: NDArray[np.floating[Any]] | list[NDArray[np.float64]]) -> bool:
    """True if all numbers are finite; a finite sum of them, or of their squares, proves it unless it overflows."""
    if isinstance(values, list):  # edges of one agent that differ in width
        return all(map(finite, values))
    flat = values if values.ndim == 1 else values.reshape(-1)
    total = flat.dot(flat) if len(flat) <= SHORT else flat.sum()
    return math.isfinite(total) or bool(np.isfinite(values).all())


def first_bad(vector: NDArray[np.float64]) -> str:
    """Words for the first number of a vector that is not finite."""
    bad = float(vector[~np.isfinite(vector)][0])
    return "not a number" if math.isnan(bad) else "infinite"
