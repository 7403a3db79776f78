"""The records of a run's agents, each made when somebody first asks for it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import final
from weakref import WeakValueDictionary

from ...protocols.base import Peer


@final
class Peers:
    """Records with which the agents make their steps, by the agent's index.

    Parameters
    ----------
    agents : int
        Number of agents.
    make : callable
        ``make(agent)`` gives an agent's record.
    """

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
