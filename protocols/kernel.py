"""The compiled form of a protocol's step, for engines that run many steps in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..agents.compiled import compiled

REALS, WHOLES = 8, 4
"""Arrays of real and of whole numbers that a compiled step gets, beside what it has heard."""

_REAL, _WHOLE = types.float64[::1], types.int64[::1]

STEP = types.boolean(
    types.int64,
    types.int64,
    types.int64,
    types.int64,
    _WHOLE,
    types.float64[:, ::1],
    types.boolean,
    _REAL,
    types.UniTuple(_REAL, REALS),
    types.UniTuple(_WHOLE, WHOLES),
)
"""``step(agent, updates, first, last, known, pool, own, message, reals, wholes)``, true if the agent falls silent.

The agent's in-edges are ``first`` to ``last - 1`` in the order of its neighbours, ``known[e]`` is the row of ``pool``
with the newest vector heard there, or -1. What was never heard counts as the agent's own block if ``own``, and as zeros
otherwise. The step writes what it broadcasts into ``message``, and its state through ``reals``.
"""


NO_LAW = np.empty(0)
"""Stands for the uniform law of partners."""


@compiled
def rank_of(luck: float, degree: int, law: NDArray[np.float64]) -> int:
    """The partner that a draw picks.

    Parameters
    ----------
    luck : float
        In (0, 1), see `hushnet.protocols.view.View.partner_luck`.
    degree : int
        Number of neighbours, > 0.
    law : (degree,) float64
        Weights > 0 of the neighbours; empty for the uniform law (`NO_LAW`).

    Examples
    --------
    >>> rank_of(0.5, 3, NO_LAW), rank_of(0.5, 3, np.array([0.1, 0.1, 0.8]))
    (1, 2)
    """
    if len(law) == 0:
        return min(int(luck * degree), degree - 1)
    rest = luck * law.sum()
    for rank in range(degree - 1):
        rest -= law[rank]
        if rest < 0.0:
            return rank
    return degree - 1


@dataclass(frozen=True)
class Kernel:
    """A compiled step: every agent with neighbours broadcasts one vector at every step.

    Parameters
    ----------
    step : callable
        Compiled for the signature `STEP` (see `hushnet.agents.compiled.compiled_callback`).
    reals, wholes : sequences of (k,) float64 and (k,) int64
        Its state (views of the run's blocks) and constants, at most `REALS` and `WHOLES` of them.
    model : (n, width) float64
        The block that a step changes; it is checked to be finite.
    charged : (n,) bool
        Agents whose messages reveal their data without noise; the others' messages cost nothing.
    reason : str
        Why there is no noise, for the ledger.
    """

    step: Any
    reals: tuple[NDArray[np.float64], ...]
    wholes: tuple[NDArray[np.int64], ...]
    model: NDArray[np.float64]
    charged: NDArray[np.bool_]
    reason: str

    @property
    def arguments(self) -> tuple[tuple[NDArray[np.float64], ...], tuple[NDArray[np.int64], ...]]:
        """``reals`` and ``wholes``, filled up with empty arrays to the lengths that every step has."""
        reals = (*self.reals, *(np.empty(0) for _ in range(REALS - len(self.reals))))
        return reals, (*self.wholes, *(np.empty(0, dtype=np.int64) for _ in range(WHOLES - len(self.wholes))))
