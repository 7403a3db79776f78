"""One peer's state, and the total order of equal times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final, overload

import numpy as np
import simpy

ARRIVAL, AVAILABILITY, TIMER, WAKE = 2, 3, 4, 5
"""Order of events at equal times: arrivals, availability, timers, wake-ups by agent (``WAKE + agent``), recorder."""
RECORD = 2**40
"""Priority of the recorder: after everything else at its instant."""
LAST = RECORD + 1
"""Priority of the end of a run."""


class At(simpy.Event):
    """An event at an absolute time, ordered among equal times by its priority.

    Parameters
    ----------
    env : simpy.Environment
    time : float
        Not before ``env.now``; both are multiples of 2^-30, so the difference is exact.
    priority : int
    *callbacks : callable
        What is called with the event when it happens.
    """

    def __init__(
        self, env: simpy.Environment, time: float, priority: int, *callbacks: Callable[[simpy.Event], None]
    ) -> None:
        # As `simpy.Timeout` does, without a call of the parent's constructor: most events of a run are made here.
        self.env, self.callbacks, self._ok, self._value = env, [*callbacks], True, None
        env.schedule(self, priority, time - env.now)  # type: ignore[arg-type]  # any integer orders the heap


class Agent:
    """One peer: whether it is there, up and still active, and how far it has come.

    Parameters
    ----------
    index : int
        Index of the agent.

    Attributes
    ----------
    up : bool
        Whether it is up, apart from joining and leaving.
    silent : bool
        Whether it takes no further step.
    gone : bool
        Whether it has left, or is down, for good.
    tick : int
        Number of its last wake-up, counting those that found it down; -1 before the first.
    reactions : int
        Reactions to arrivals since that wake-up.
    updates : int
        Steps that it has completed.
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
    """The agents of a run, each made when somebody first asks for it.

    Parameters
    ----------
    count : int
        Number of agents.
    come : callable
        ``come(index)`` gives the number of an agent's last wake-up and the steps that it has completed.

    Attributes
    ----------
    present : (n,) bool
        Whether each agent has joined and not left.
    made : dict of int to Agent
        By index; whoever is not among them steps without Python, and keeps nothing here.
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
