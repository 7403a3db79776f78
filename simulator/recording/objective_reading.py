"""The objective of one run, read at one instant after another and held against its minimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...agents.errors import Inconsistency, InputError
from ...agents.objectives.objectives import Models, Objective, losses_at
from ...agents.tasks.task import Task
from ..metrics import Reading
from ..world.world import World

BELOW = 1e-9
"""How far rounding may carry a value below the minimum, relative to 1 + its size."""


@final
class ObjectiveReading:
    """One objective in one run, read at one instant after another."""

    def __init__(self, objective: Objective, world: World) -> None:
        self.objective, self.world = objective, world
        self.task = world.setting.task
        self._holds_squares = False

    def values(self, readings: Sequence[Reading]) -> list[float]:
        """The objective at the models of instants; rows are read of those agents whose model has changed."""
        instants = np.array([reading.models for reading in readings])

        def losses(task: Task, models: Models) -> NDArray[np.float64]:
            if task.train is not self.task.train or task.loss != self.task.loss or models is not instants:
                return losses_at(task, models)
            sums = [reading.row_sums("training_loss", task.train, task.loss.value) for reading in readings]
            return np.array(sums) / np.maximum(task.train.counts, 1)

        return self.objective.values_from(instants, losses)

    def check(self, value: float, minimum: float, reading: Reading, now: float) -> None:
        """See that a value at a time is not below what is said to be its minimum, by more than rounding.

        A minimum over models that agree bounds the value at their mean; agents' own models may lie below it until they
        agree. Raises `InputError` if squares of the rows, summed over all of them, are beyond what a float holds, where
        no minimum is found, and `Inconsistency` if it is otherwise: the minimiser or the value is wrong.
        """
        if not self._holds_squares:
            self._check_squares()
            self._holds_squares = True
        lowest = minimum - BELOW * (1.0 + abs(minimum))
        if value < lowest and reading.models is not None and self.objective.minimum_over == "agreeing":
            value = self.objective.value(np.tile(reading.models.mean(axis=0), (self.task.agents, 1)))
        if value < lowest:
            raise Inconsistency(
                f"the objective is {value:.17g} at time {now:.6g}, below its minimum {minimum:.17g}: one of "
                "the two is computed wrongly; please report it with the scenario"
            )

    def _check_squares(self) -> None:
        """Raise an `InputError` if squares of the rows, summed over all of them, are beyond what a float holds."""
        train = self.task.train
        with np.errstate(over="ignore"):
            sizes = np.abs(train.features).max(axis=1, initial=0.0)
            if np.isfinite(train.features.size * sizes.max(initial=0.0) ** 2):
                return
        agent = self.task.ids[int(train.owners[np.argmax(sizes)])]
        raise InputError(
            f"agent {agent!r} has a row with a number of size {sizes.max():.3g}, so that sums of squares overflow "
            "and the objective's minimum cannot be found; scale the rows",
            field=("task",),
        )
