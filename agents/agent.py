"""One peer's state: whether it is up, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final, overload

import numpy as np


class Agent:
    """One peer: whether it is there, up and still active, and how far it has come.

    It is ``up`` apart from joining and leaving, ``silent`` if it takes no further step, and ``gone`` if it has left, or
    is down, for good. Its ``tick`` is the number of its last wake-up, counting those that found it down, -1 before the
    first; ``reactions`` counts those to arrivals since then, ``updates`` its completed steps.
    """

    __slots__ = (
        "gone",
        "index",
        "reactions",
        "silent",
        "tick",
        "up",
        "updates",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.up = False
        self.silent = False
        self.gone = False
        self.tick = -1
        self.reactions = 0
        self.updates = 0


@final
class Agents(Sequence[Agent]):
    """The agents of a run, so many, each made when somebody first asks for it.

    ``come(index)`` gives the number of an agent's last wake-up and the steps that it has completed. (n,) ``present``
    are those that have joined and not left; whoever is not among those ``made`` steps without Python, and keeps nothing
    here.
    """

    def __init__(self, count: int, come: Callable[[int], tuple[int, int]]) -> None:
        self._count, self._come = count, come
        self.present = np.zeros(count, dtype=bool)
        self.made: dict[int, Agent] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Agent: ...

    @overload
    def __getitem__(self, index: slice) -> list[Agent]: ...

    def __getitem__(self, index: int | slice) -> Agent | list[Agent]:
        """The agent of an index, the same object every time; of a slice, a list."""
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(self._count))]
        agent = self.made.get(index)
        if agent is None:
            if not 0 <= index < self._count:
                raise IndexError(f"agent {index} of {self._count}")
            agent = self.made[index] = Agent(index)
            agent.tick, agent.updates = self._come(index)
        return agent
