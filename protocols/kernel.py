"""The compiled form of a protocol's step, for engines that run many steps in one call."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..agents.compiled import compiled

REALS, WHOLES, SINGLES = 9, 4, 1
"""Arrays of real and of whole numbers and of float32 data that a compiled step gets, beside what it has heard."""

_REAL, _WHOLE, _SINGLE = types.float64[::1], types.int64[::1], types.float32[::1]

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
    types.UniTuple(_SINGLE, SINGLES),
)
"""``step(agent, updates, first, last, known, pool, own, message, reals, wholes, singles)``, true if it falls silent.

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


OFFER, ACCEPT, FINISH = range(1, 4)
"""Phases of a session, as the compiled form of an exchange is told them."""

EXCHANGE = types.void(
    types.int64,
    types.int64,
    types.int64,
    types.int64,
    types.int64,
    types.int64,
    _WHOLE,
    types.float64[:, ::1],
    types.boolean,
    _REAL,
    _REAL,
    types.UniTuple(_REAL, REALS),
    types.UniTuple(_WHOLE, WHOLES),
    types.UniTuple(_SINGLE, SINGLES),
)
"""Half of an exchange, or its opening.

``step(phase, agent, edge, updates, first, last, known, pool, own, heard, message, reals, wholes, singles)``: in each
`phase` an agent acts on one of its own directed edges, the one to its partner. It reads what it has ``heard`` from it
(the request in `ACCEPT`, the reply in `FINISH`, nothing in `OFFER`), writes what it answers into ``message`` (the
request in `OFFER`, the reply in `ACCEPT`, nothing in `FINISH`), and its state through ``reals``. What it has heard of
all neighbours is as in `STEP`; ``known[e]`` is of the layout's first kind of message.
"""


@dataclass(frozen=True)
class Compiled(ABC):
    """What compiled steps of all kinds have in common.

    Parameters
    ----------
    step : callable
        Compiled for the signature of its kind (see `hushnet.agents.compiled.compiled_callback`). An exception that it
        raises ends the run.
    reals, wholes : sequences of (k,) float64 and (k,) int64
        Its state (views of the run's blocks) and constants, at most `REALS` and `WHOLES` of them.
    model : (n, width) float64
        The block that a step changes; it is checked to be finite.
    charged : (n,) bool
        Agents whose messages reveal their data without noise; the others' messages cost nothing.
    reason : str
        Why there is no noise, for the ledger.
    singles : sequence of (k,) float32
        Data that are kept in single precision, at most `SINGLES` of them.
    noted : (n,) float64
        What steps note for the recorder, as one of ``reals``; empty if they do not. An agent's step replaces NaN by the
        mean loss over its rows of the task, without regulariser, at the model that it found.
    """

    step: Any
    reals: tuple[NDArray[np.float64], ...]
    wholes: tuple[NDArray[np.int64], ...]
    model: NDArray[np.float64]
    charged: NDArray[np.bool_]
    reason: str
    singles: tuple[NDArray[np.float32], ...] = ()
    noted: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @property
    def arguments(self) -> tuple[tuple[NDArray[Any], ...], ...]:
        """``reals``, ``wholes`` and ``singles``, filled up with empty arrays to the lengths that every step has."""
        return (
            _filled(self.reals, REALS, np.float64),
            _filled(self.wholes, WHOLES, np.int64),
            _filled(self.singles, SINGLES, np.float32),
        )


@final
@dataclass(frozen=True)
class Kernel(Compiled):
    """A compiled `Protocol.wake`, for `STEP`: every agent with neighbours broadcasts one vector at every step."""


@final
@dataclass(frozen=True)
class PairKernel(Compiled):
    """A compiled exchange, for `EXCHANGE`: every call is made and every request answered.

    Parameters
    ----------
    law : (E,) float64
        Weights > 0 by which an agent picks among its directed edges; empty for the uniform law (`NO_LAW`).
        What a protocol's own `Protocol.partner` picks in another way has no compiled form.
    """

    law: NDArray[np.float64] = field(default_factory=lambda: NO_LAW)


def _filled(arrays: tuple[NDArray[Any], ...], count: int, dtype: type) -> tuple[NDArray[Any], ...]:
    return (*arrays, *(np.empty(0, dtype=dtype) for _ in range(count - len(arrays))))
