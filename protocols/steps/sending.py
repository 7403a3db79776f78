"""What a protocol declares of its steps, so that they can be planned before any number is computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

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


def check_declared(sends: Mapping[str, Every], most: Any, kinds: Collection[str], agents: int) -> None:
    """Refuse a declaration of steps that no agent could keep.

    Raises
    ------
    TypeError
        With what is admissible.
    """
    for kind, every in sends.items():
        if kind not in kinds:
            raise TypeError(f"sends names the kind {kind!r}; admissible: {', '.join(kinds) or 'none'}")
        period, phase = np.asarray(every.period), np.asarray(every.phase)
        whole = all(one.dtype.kind in "iu" and one.shape in ((), (agents,)) for one in (period, phase))
        if not whole or not ((phase >= 0) & (phase < np.maximum(period, 1))).all():
            raise TypeError(
                f"sends has {every!r} for {kind!r}; admissible: whole numbers, one or one for each agent, and phases "
                "from 0 that are below their period"
            )
    if most is not None and (np.shape(most) not in ((), (agents,)) or not (np.asarray(most) >= 1).all()):
        raise TypeError(f"most_steps is {most!r}; admissible: None, or numbers from 1, one or one for each agent")
