"""The objective of one run, read at one instant after another and held against its minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ...agents.errors import Inconsistency, InputError
from ...agents.objectives.objectives import Models, Objective, mean_losses
from ..metrics import Reading

if TYPE_CHECKING:
    from ...agents.tasks.task import Task
    from ..world.world import World

BELOW = 1e-9
"""How far rounding may carry a value below the minimum, relative to 1 + its size."""


@final
class ObjectiveReading:
    """One objective in one run, read at one instant after another."""

    def __init__(self, objective: Objective, world: World) -> None:
        self.objective, self.world = objective, world
        self.task = world.setting.task
        self._value = 0.0
        self._mean: Models | None = None
        self._holds_squares = False

    def value(self, reading: Reading) -> float:
        """The objective at the models of an instant; rows are read of those agents whose model has changed."""
        models = reading.models
        assert models is not None

        def losses(task: Task, models: Models) -> NDArray[np.float64]:
            if task.train is not self.task.train or task.loss != self.task.loss or models is not reading.models:
                return mean_losses(task, models)
            sums = reading.row_sums("training_loss", task.train, task.loss.value)
            return sums / np.maximum(task.train.counts, 1)

        self._mean = models.mean(axis=0) if self.objective.minimum_over == "agreeing" else None
        self._value = self.objective.value_from(models, losses)
        return self._value

    def check(self, minimum: float, now: float) -> None:
        """See that the last value is not below what is said to be its minimum, by more than rounding.

        A minimum over models that agree bounds the value at their mean; agents' own models may lie below it until they
        agree.

        Parameters
        ----------
        now : float
            The time of the last value.

        Raises
        ------
        InputError
            If squares of the rows, summed over all of them, are beyond what a float holds: no minimum is found then.
        Inconsistency
            If it is otherwise: the minimiser or the value is wrong.
        """
        if not self._holds_squares:
            self._check_squares()
            self._holds_squares = True
        lowest, value = minimum - BELOW * (1.0 + abs(minimum)), self._value
        if value < lowest and self._mean is not None:
            value = self.objective.value(np.tile(self._mean, (self.task.agents, 1)))
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
