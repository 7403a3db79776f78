"""SimPy events at absolute times."""

from __future__ import annotations

import simpy


class At(simpy.Event):
    """An event at an absolute time, ordered among equal times by its priority.

    Parameters
    ----------
    env : simpy.Environment
    time : float
        Not before ``env.now``; both are multiples of 2^-30, so the difference is exact.
    priority : int
        Its place among events of the same time (`hushnet.simulator.tables.priorities`).
    """

    def __init__(self, env: simpy.Environment, time: float, priority: int) -> None:
        # As `simpy.Timeout` does, without a call of the parent's constructor: most events of a run are made here.
        self.env, self.callbacks, self._ok, self._value = env, [], True, None
        env.schedule(self, priority, time - env.now)  # type: ignore[arg-type]  # any integer orders the heap
