"""Which agents compute, how long, and what that took: steps take time where a scenario says so."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ..network.compute import StepTimes
from ..network.setting import Setting
from ..tables.allocation import with_step_times
from ..tables.run import RunTables


@final
class Computing:
    """Agents' steps that take time; `hushnet.simulator.rules.compute_rules` begins them.

    Its ``times`` are None where steps take no time; its ``power`` is in joules for each time unit of computing.
    """

    def __init__(self, setting: Setting, numbers: NDArray[np.uint64]) -> None:
        compute, given = setting.compute, (setting.task, numbers, setting.draws, setting.base)
        self.times: StepTimes | None = None if compute is None else compute.build(*given)
        self.takes_time, self.power = False, 0.0
        if self.times is not None:
            self.takes_time, self.power = self.times.any, self.times.power
        self._agents, self._table = len(numbers), None

    def kept_in(self, run: RunTables, *, holds: bool) -> RunTables:
        """The tables of a run, in which its steps are kept from now on; see `with_step_times`."""
        if self.times is None or not self.takes_time:
            return run
        run = with_step_times(run, self.times.times, holds=holds)
        self._table: Any = run.computing
        return run

    def spent(self, now: float) -> NDArray[np.float64]:
        """(n,) time units that each agent has computed until now."""
        if self._table is None:
            return np.zeros(self._agents)
        return self._table.spent + np.minimum(self._table.until, now) - self._table.since
