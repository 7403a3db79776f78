"""What a run has beside its protocol that planned steps depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import State
from ..privacy.ledger import Ledger
from .peer import Peer


@dataclass(frozen=True)
class StepSurroundings:
    """The part of a run that its planned steps depend on.

    Parameters
    ----------
    state : State
    unheard_is_own : bool
        Whether a neighbour that was never heard shows the agent's own block.
    numbers : (n,) uint64
        The agents' stable ids.
    seed : int
        Root seed of the run's draws.
    peer : callable
        ``peer(agent)`` gives the record of an agent.
    ledger : Ledger
    some_join : bool
        Whether agents may join late: they are told what their neighbours have said last.
    """

    state: State
    unheard_is_own: bool
    numbers: NDArray[np.uint64]
    seed: int
    peer: Callable[[int], Peer]
    ledger: Ledger
    some_join: bool = False
