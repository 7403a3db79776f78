"""What single agents, coalitions and eavesdroppers can learn of an agent's data, on what the network delivered."""

from __future__ import annotations

from .deliveries import Deliveries, deliveries_of
from .learned import Learned, learned, needs_log, parties_of
from .observing import Observing
from .release_record import ReleaseRecord, release_record

__all__ = [
    "Deliveries",
    "Learned",
    "Observing",
    "ReleaseRecord",
    "deliveries_of",
    "learned",
    "needs_log",
    "parties_of",
    "release_record",
]
