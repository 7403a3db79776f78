"""Choices of the record of each agent that is changed in a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from ...agents.tasks.task import Task

Rows = Mapping[int, int]
"""Rank of a row by agent; none of agents without data."""


def counts_of(task: Task, agents: Iterable[int]) -> dict[int, int]:
    """Return the number of records by agent, without agents that hold none."""
    whole = len(task.train.labels)
    counts = {agent: whole if task.columns is not None else int(task.train.counts[agent]) for agent in agents}
    return {agent: count for agent, count in counts.items() if count}


def in_turn(task: Task, agents: Iterable[int], number: int) -> Rows:
    """Each agent's turn: the first row, the last, the second, ..."""
    return {agent: _place((number + agent) % count, count) for agent, count in counts_of(task, agents).items()}


def _place(turn: int, count: int) -> int:
    return turn // 2 if turn % 2 == 0 else count - 1 - turn // 2


def last(task: Task, agents: Iterable[int]) -> Rows:
    """The last row of each."""
    return {agent: count - 1 for agent, count in counts_of(task, agents).items()}


class Beside:
    """One row after the other of each agent, so that rows side by side are seen in the same samples.

    Parameters
    ----------
    number : int
        Chooses, with the agent, where each begins: at the first, third, fifth, ... row.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._taken: dict[int, int] = defaultdict(int)

    def next(self, task: Task, agents: Iterable[int]) -> Rows:
        """The next row of each of these agents."""
        rows: dict[int, int] = {}
        for agent, count in counts_of(task, agents).items():
            first = 2 * int(np.random.default_rng([self.number, agent]).integers((count + 1) // 2))
            rows[agent] = (first + self._taken[agent]) % count
            self._taken[agent] += 1
        return rows
