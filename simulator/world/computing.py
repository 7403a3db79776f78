"""Which agents compute, how long, and what that took: steps take time where a scenario says so."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from ..network.compute import StepTimes
from ..network.setting import Setting


@final
class Computing:
    """Agents' steps that take time.

    Parameters
    ----------
    setting : Setting
    numbers : (n,) uint64
        The agents' stable numbers.

    Attributes
    ----------
    times : StepTimes or None
        None where steps take no time.
    takes_time : bool
        Whether some step takes time.
    power : float
        Joules for each time unit of computing.
    """

    def __init__(self, setting: Setting, numbers: NDArray[np.uint64]) -> None:
        compute, given = setting.compute, (setting.task, numbers, setting.draws, setting.base)
        self.times: StepTimes | None = None if compute is None else compute.build(*given)
        self.takes_time, self.power = False, 0.0
        if self.times is not None:
            self.takes_time, self.power = self.times.any, self.times.power
        self._begun = [0] * len(numbers)
        self._order = [0] * len(numbers)
        self._spent, self._since, self._until = np.zeros((3, len(numbers)))

    def begin(self, agent: int, now: float, order: int) -> float:
        """Begin a step, where some take time, after so many messages of the run; its time, in time units."""
        assert self.times is not None
        time = self.times.of(agent, self._begun[agent])
        self._begun[agent] += 1
        self._order[agent] = order
        self._spent[agent] += self._until[agent] - self._since[agent]
        self._since[agent], self._until[agent] = now, now + time
        return time

    def begun(self, agent: int) -> tuple[float, int]:
        """When an agent's last step began, and how many messages were sent before; only where steps take time."""
        return float(self._since[agent]), self._order[agent]

    def spent(self, now: float) -> NDArray[np.float64]:
        """(n,) time units that each agent has computed until now."""
        return self._spent + np.minimum(self._until, now) - self._since
