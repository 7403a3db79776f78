"""The views of a run's agents, each made when somebody first asks for it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import final
from weakref import WeakValueDictionary

from ...protocols.base import View


@final
class Views:
    """What each agent sees, by its index.

    Parameters
    ----------
    agents : int
        Number of agents.
    make : callable
        ``make(agent)`` gives an agent's view of this instant.
    """

    def __init__(self, agents: int, make: Callable[[int], View]) -> None:
        self._agents, self._make = agents, make
        self._views: MutableMapping[int, View] = {}

    def __len__(self) -> int:
        return self._agents

    def __getitem__(self, agent: int) -> View:
        """The view of an agent; the same one as long as it is kept."""
        view = self._views.get(agent)
        if view is None:
            if not 0 <= agent < self._agents:
                raise IndexError(f"agent {agent} of {self._agents}")
            view = self._views[agent] = self._make(agent)
        return view

    def keep_weakly(self) -> None:
        """Keep a view only as long as somebody else has it: no step is made by it, and it holds nothing of its own."""
        self._views = WeakValueDictionary(self._views)
