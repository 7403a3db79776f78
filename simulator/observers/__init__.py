"""What single agents, coalitions and eavesdroppers can learn of an agent's data, on what the network delivered."""

from __future__ import annotations

from .deliveries import Deliveries, deliveries_of
from .learned import learned, needs_log, parties_of
from .linear_check import mistake_of
from .linear_view import LinearView, linear_view
from .observing import Observing
from .release_record import release_record

__all__ = [
    "Deliveries",
    "LinearView",
    "Observing",
    "deliveries_of",
    "learned",
    "linear_view",
    "mistake_of",
    "needs_log",
    "parties_of",
    "release_record",
]
