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

    def is_due(self, agent: int, updates: int) -> bool:
        """Whether an agent sends at its step after so many others."""
        period, phase = (int(one if np.ndim(one) == 0 else one[agent]) for one in (self.period, self.phase))  # type: ignore[index]
        return period > 0 and updates % period == phase
