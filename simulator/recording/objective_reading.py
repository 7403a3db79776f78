"""The objective at record instants, finished from what compiled steps compute anyway.

To read everybody's data once takes as long as many steps do. But a gradient step needs the scores of its own rows at
the model that it finds, and that is the model which all recordings since the agent's last step have seen. So a
recording only asks; the next step leaves its loss (`hushnet.protocols.kernel.Compiled.cached_losses`), and by the next
recording only the data of those who have not stepped meanwhile are left to be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ...agents.errors import Inconsistency, InputError
from ...agents.objectives.objectives import Models, Objective, mean_losses

if TYPE_CHECKING:
    from ..world.world import World

BELOW = 1e-9
"""How far rounding may carry a value below the minimum, relative to 1 + its size."""
NEVER = -1
"""Updates of an agent that has not started."""


@final
class ObjectiveReading:
    """One objective in one run, read at one instant after another.

    Parameters
    ----------
    objective : Objective
    world : World
    """

    def __init__(self, objective: Objective, world: World) -> None:
        self.objective, self.world = objective, world
        self.task = world.setting.task
        self._seen = np.full(self.task.agents, NEVER - 1)
        self._value: float | None = None
        self._rest, self._weights, self._models = 0.0, np.empty(0), np.empty((0, 0))
        self._mean: Models | None = None
        self._holds_squares = False

    def begin(self, models: Models) -> None:
        """Read the objective at the (n, p) models of this instant, as far as that is possible now.

        The array has to be the world's own: what steps have left open is read when the value is asked for.
        """
        self._mean = models.mean(axis=0) if self.objective.minimum_over == "agreeing" else None
        cached_losses = self.world.cached_losses
        parts = self.objective.split(models) if cached_losses is not None else None
        if cached_losses is None or parts is None:
            self._value = self.objective.value(models)
            return
        self._value, self._models = None, models
        self._rest, self._weights = parts
        started = self.world.started
        updates = np.where(started, self.world.updates, NEVER)
        changed = updates != self._seen
        cached_losses[changed] = np.nan
        self._seen = updates
        # A start may change a model, and notes nothing.
        self._read(np.flatnonzero(changed & ~started), cached_losses)

    @property
    def finished(self) -> bool:
        """Whether the last reading needs nothing more."""
        return self._value is not None

    def value(self) -> float:
        """The objective at the instant of the last `begin`."""
        if self._value is None:
            cached_losses = self.world.cached_losses
            assert cached_losses is not None
            self._read(np.flatnonzero(np.isnan(cached_losses)), cached_losses)
            self._value = self._rest + float(self._weights @ cached_losses)
        return self._value

    def check(self, minimum: float) -> None:
        """See that the value is not below what is said to be its minimum, by more than rounding.

        A minimum over models that agree bounds the value at their mean; agents' own models may lie below it until they
        agree.

        Parameters
        ----------
        minimum : float

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
        lowest, value = minimum - BELOW * (1.0 + abs(minimum)), self.value()
        if value < lowest and self._mean is not None:
            value = self.objective.value(np.tile(self._mean, (self.task.agents, 1)))
        if value < lowest:
            raise Inconsistency(
                f"the objective is {value:.17g} at time {self.world.now:.6g}, below its minimum {minimum:.17g}: one of "
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

    def _read(self, agents: NDArray[np.int64], cached_losses: NDArray[np.float64]) -> None:
        if len(agents):
            cached_losses[agents] = mean_losses(self.task, self._models, agents)
