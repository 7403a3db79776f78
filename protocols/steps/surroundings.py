"""What a run has beside its protocol that planned steps depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..privacy.ledger import Ledger
from .peer import Peer


@dataclass(frozen=True)
class StepSurroundings:
    """The part of a run that its planned steps depend on.

    Parameters
    ----------
    peer : callable
        ``peer(agent)`` gives the record of an agent.
    ledger : Ledger
    some_join : bool
        Whether agents may join late: they are told what their neighbours have said last.
    """

    peer: Callable[[int], Peer]
    ledger: Ledger
    some_join: bool = False
