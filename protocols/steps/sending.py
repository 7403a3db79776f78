"""What a protocol declares of its steps, so that they can be planned before any number is computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Every:
    """An agent sends at its steps phase, phase + period, phase + 2 period, ..., counted from 0.

    Parameters
    ----------
    period : int or (n,) int64
        Of all agents, or of each; 0 for one that never sends.
    phase : int or (n,) int64
        From 0, below the period.
    """

    period: int | NDArray[np.int64] = 1
    phase: int | NDArray[np.int64] = 0

    def __post_init__(self) -> None:
        period, phase = np.asarray(self.period), np.asarray(self.phase)
        if not all(np.issubdtype(one.dtype, np.integer) and (one >= 0).all() for one in (period, phase)):
            raise ValueError(f"Every({self.period}, {self.phase}): admissible: integers from 0 on")
        if (phase >= np.maximum(period, 1)).any():
            raise ValueError(f"Every({self.period}, {self.phase}): a phase is below its period")
