"""Roles in protocols over split features: a star whose centre, agent 0, has the labels, and parties with columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.blocks import State
from ...agents.objectives.objectives import Objective
from ...agents.objectives.pooled_objective import PooledObjective
from ..base import Protocol
from ..context import Context, check_columns, check_split, check_star

CENTRE = 0
"""The agent that holds the labels."""

PARTY = "party"
"""The role of the agents that hold columns."""


def roles(agents: int) -> list[str]:
    """The centre, and everybody else a party."""
    return ["centre"] + [PARTY] * (agents - 1)


def widths(agents: int, *, centre: int, party: int) -> list[int]:
    """A width for the centre and one for every party."""
    return [centre] + [party] * (agents - 1)


class SplitProtocol(Protocol):
    """Protocol over split features, whose parties have a part of a linear model each, for their (k,) ``columns``."""

    learns = "linear"
    learns_from = "columns"
    parameters: Any

    @classmethod
    @override
    def check_scenario(cls, parameters: Any, context: Context) -> None:
        check_split(context)

    def prepare(self) -> None:
        """Columns, where the task splits features and the graph is a star around agent 0.

        Raises `InputError` if rows are split instead, the graph is no star, or the loss has no smooth and bounded
        slope.
        """
        task, graph = self.problem.task, self.problem.graph
        check_columns(columns=task.columns is not None, loss=task.loss, task=task.name)
        assert task.columns is not None
        others = np.arange(1, graph.agents)
        check_star(np.array_equal(graph.neighbours(CENTRE), others) and bool((graph.degrees[1:] == 1).all()))
        self.columns = task.columns

    def models(self, state: State) -> NDArray[np.float64]:
        """(n, p): the parties' parts put together in the centre's row, which nobody in the run holds; else zeros."""
        models = np.zeros((len(self.columns), self.problem.task.dimension))
        for agent, held in enumerate(self.columns):
            models[CENTRE, held] = state.agent["model"][agent]
        return models

    def objective(self) -> Objective:
        """The sum of the losses and (lambda/2) |x|^2, at the model that the parties hold together."""
        return PooledObjective.sum_of_rows(self.problem.task, self.parameters.ridge, agent=CENTRE)
