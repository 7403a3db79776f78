"""Roles in protocols over split features: a star whose centre, agent 0, has the labels, and parties with columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import State
from ..problem import Problem
from ..surroundings import check_columns, check_star

CENTRE = 0
"""The agent that holds the labels."""

PARTY = "party"
"""The role of the agents that hold columns."""


def columns_of(problem: Problem) -> tuple[NDArray[np.int64], ...]:
    """The columns of every agent, where the task splits features and the graph is a star around agent 0.

    Raises
    ------
    InputError
        If rows are split instead, the graph is no star, or the loss has no smooth and bounded slope.
    """
    task, graph = problem.task, problem.graph
    check_columns(columns=task.columns is not None, loss=task.loss, task=task.name)
    assert task.columns is not None
    others = np.arange(1, graph.agents)
    check_star(np.array_equal(graph.neighbours(CENTRE), others) and bool((graph.degrees[1:] == 1).all()))
    return task.columns


def roles(agents: int) -> list[str]:
    """The centre, and everybody else a party."""
    return ["centre"] + [PARTY] * (agents - 1)


def widths(agents: int, *, centre: int, party: int) -> list[int]:
    """A width for the centre and one for every party."""
    return [centre] + [party] * (agents - 1)


def assembled(state: State, columns: tuple[NDArray[np.int64], ...], dimension: int) -> NDArray[np.float64]:
    """(n, p): the parties' parts put together in the centre's row, which nobody in the run holds; zeros elsewhere."""
    models = np.zeros((len(columns), dimension))
    for agent, held in enumerate(columns):
        models[CENTRE, held] = state.agent["model"][agent]
    return models
