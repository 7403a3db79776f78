"""The compiled form of a protocol's step, for engines that run many steps in one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..agents.compilation.address_table import AddressTable
from ..agents.compilation.compiled import compiled
from .privacy.ledger import Ledger
from .privacy.mechanisms import Release

SILENT, UNSAID, PLAIN, UNBOUNDED = 1, 2, 4, 8
"""What a compiled step says of itself, added up: it was the agent's last; it sends nothing; what it sends reveals data
without noise; a number that it has written is not finite."""

KIND, ADDRESSED, VECTORS, WIDTH, SIZE, SAID, PORT_COLUMNS = range(7)
"""Columns of a port, through which steps send: rank of the kind, whether every neighbour gets a vector of its own,
model vectors that a message counts as, its numbers and bytes, and whether the step has said anything there."""


NO_LAW = np.empty(0)
"""Stands for the uniform law of partners."""


@compiled(_nrt=False)
def rank_of(uniform: float, degree: int, law: NDArray[np.float64]) -> int:
    """The partner that a draw picks.

    Parameters
    ----------
    uniform : float
        In (0, 1), see `hushnet.protocols.view.View.partner_uniform`.
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
        return min(int(uniform * degree), degree - 1)
    rest = uniform * law.sum()
    for rank in range(degree - 1):
        rest -= law[rank]
        if rest < 0.0:
            return rank
    return degree - 1


REQUESTING, RESPONDING, COMPLETING = range(1, 4)
"""Phases of a session, as the compiled form of an exchange is told them."""


class Charges(ABC):
    """What compiled steps reveal: found out when an agent has started, and charged when somebody looks."""

    def started(self, agent: int) -> None:
        """Find out what an agent that has just made its start may say, and what it costs; by default nothing."""
        return

    def all_started(self, agents: NDArray[np.int64]) -> None:
        """`started` of several agents."""
        for agent in agents.tolist():
            self.started(agent)

    @abstractmethod
    def charge(self, ledger: Ledger, agent: int, times: int, now: float) -> None:
        """Charge messages of an agent that its steps have called `PLAIN`."""

    def settle(self, ledger: Ledger, now: float) -> None:
        """Charge the noise that steps have drawn since the last time; by default none is."""
        return


@final
@dataclass(frozen=True)
class PlainCharges(Charges):
    """Nothing is perturbed.

    Parameters
    ----------
    reason : str
        Why there is no noise, for the ledger.
    """

    reason: str

    @override
    def charge(self, ledger: Ledger, agent: int, times: int, now: float) -> None:
        ledger.add(Release.plain(agent, now, self.reason), times)


@dataclass(frozen=True)
class Compiled(ABC):
    """What compiled steps of all kinds have in common.

    Parameters
    ----------
    step : callable
        Compiled for the signature of its kind (see `hushnet.agents.compilation.callbacks.compiled_callback`). An
        exception that it raises ends the run.
    table : AddressTable
        Where its state (the run's blocks) and its constants are.
    charges : Charges
        What its messages cost.
    cached_losses : (n,) float64
        What steps note for the recorder; empty if they do not. An agent's step replaces NaN by the mean loss over its
        rows of the task, without regulariser, at the model that it found.
    """

    step: Any
    table: AddressTable
    charges: Charges
    cached_losses: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


@final
@dataclass(frozen=True)
class Kernel(Compiled):
    """A compiled `Protocol.wake`, for `STEP`.

    Parameters
    ----------
    ports : (k, PORT_COLUMNS) int64
        What a step sends, `SIZE` to be filled in; by default one vector of the first kind to all neighbours, always.
    """

    ports: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, PORT_COLUMNS), dtype=np.int64))


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
