"""What a protocol declares, and how a run may be scheduled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .inbox import Message
from .view import Layout, Out, View


@dataclass(frozen=True)
class AsyncSchedule:
    """Every agent steps when its own clock wakes it."""


@dataclass(frozen=True)
class RoundsSchedule:
    """Neighbour-barrier rounds; ``resend_after`` is a time, ``"never"`` or None."""

    resend_after: float | str | None = None
    patience: float | None = None


@dataclass(frozen=True)
class ExchangeSchedule:
    """An agent's clock opens a session with one neighbour."""

    resend_after: float | None = None
    timeout: float | None = None


Schedules = AsyncSchedule | RoundsSchedule | ExchangeSchedule


@dataclass(frozen=True)
class Traits:
    """How the engine has to run a protocol.

    Parameters
    ----------
    trigger : {"wake", "round", "message"}
    inbox : {"latest", "per_round", "every"}
    exchange : {"broadcast", "pairwise"}
    unanswered : {"repeat", "give_up"}, optional
        By default, protocols with edge blocks repeat, others give up.
    """

    trigger: str = "wake"
    inbox: str = "latest"
    exchange: str = "broadcast"
    unanswered: str | None = None


@dataclass(frozen=True)
class Privacy:
    """What the ledger has to know: most charged releases per agent, and the epsilon that an agent may spend."""

    updates: int | None = None
    epsilon: float | None = None


class Protocol:
    """How a peer steps.

    Attributes
    ----------
    traits : Traits
    schedule : Schedules or None
    privacy : Privacy or None
    """

    traits: Traits = Traits()
    schedule: Schedules | None = None
    privacy: Privacy | None = None

    def layout(self) -> Layout:
        """Blocks and message kinds."""
        raise NotImplementedError

    def start(self, view: View, out: Out) -> None:
        """Set an agent's blocks at time 0 (or when it joins) and send what neighbours may know from the start."""

    def wake(self, view: View, out: Out) -> None:
        """One step of an agent."""

    def receive(self, view: View, message: Message, out: Out) -> None:
        """Reaction to one arrival (trigger ``message``)."""

    def partner(self, view: View) -> int:
        """Which neighbour (its rank) a pairwise session calls; uniform by default."""
        degree = len(view.neighbours)
        return min(int(view.partner_luck() * degree), degree - 1)

    def offer(self, view: View, partner: int, out: Out) -> None:
        """Open a pairwise session."""

    def accept(self, view: View, partner: int, vector: NDArray[np.float64], out: Out) -> None:
        """The callee's update from the caller's request."""

    def finish(self, view: View, partner: int, vector: NDArray[np.float64]) -> Any:
        """The caller's update from the callee's reply."""
