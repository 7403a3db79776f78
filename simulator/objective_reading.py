"""The objective at record instants, finished from what compiled steps compute anyway.

To read everybody's data once takes as long as many steps do. But a gradient step needs the scores of its own rows at
the model that it finds, and that is the model which all recordings since the agent's last step have seen. So a
recording only asks; the agent's next step leaves its loss (`hushnet.protocols.kernel.Compiled.noted`), and by the next
recording only the data of those who have not stepped meanwhile are left to be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ..agents.objectives import Models, Objective, mean_losses

if TYPE_CHECKING:
    from .world import World

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

    def begin(self, models: Models) -> None:
        """Read the objective at the (n, p) models of this instant, as far as that is possible now.

        The array has to be the world's own: what steps have left open is read when the value is asked for.
        """
        noted = self.world.noted
        parts = self.objective.split(models) if noted is not None else None
        if noted is None or parts is None:
            self._value = self.objective.value(models)
            return
        self._value, self._models = None, models
        self._rest, self._weights = parts
        started = self.world.started
        updates = np.where(started, self.world.updates, NEVER)
        changed = updates != self._seen
        noted[changed] = np.nan
        self._seen = updates
        # A start may change a model, and notes nothing.
        self._read(np.flatnonzero(changed & ~started), noted)

    @property
    def finished(self) -> bool:
        """Whether the last reading needs nothing more."""
        return self._value is not None

    def value(self) -> float:
        """The objective at the instant of the last `begin`."""
        if self._value is None:
            noted = self.world.noted
            assert noted is not None
            self._read(np.flatnonzero(np.isnan(noted)), noted)
            self._value = self._rest + float(self._weights @ noted)
        return self._value

    def _read(self, agents: NDArray[np.int64], noted: NDArray[np.float64]) -> None:
        if len(agents):
            noted[agents] = mean_losses(self.task, self._models, agents)
