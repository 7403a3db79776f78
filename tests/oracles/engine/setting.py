"""What is given of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .graph import Graph


@dataclass(frozen=True)
class Stop:
    """When a run ends: at the first limit that is reached."""

    time: float | None = None
    activations: int | None = None
    vectors: int | None = None
    updates: int | None = None


@dataclass(frozen=True)
class Limits:
    """What a run may do at most: reactions at one instant, of all and of an agent on average, and of the whole run."""

    at_once: int = 10**6
    at_once_each: int = 1000
    reactions: int | None = None


@dataclass(frozen=True)
class Setting:
    """Everything but the protocol.

    Parameters
    ----------
    ids : (n,) sequence of int or str
    graph : Graph
    clock, network, availability : mapping
        As in a description.
    stop : Stop
    draws : Draws
    limits : Limits
    """

    ids: Sequence[int | str]
    graph: Graph
    clock: dict[str, Any]
    network: dict[str, Any]
    availability: dict[str, Any]
    stop: Stop
    draws: Any
    limits: Limits = Limits()

    @property
    def always_up(self) -> bool:
        """Whether nobody is ever down between joining and leaving."""
        return self.availability["kind"] == "always"

    @property
    def lossless(self) -> bool:
        """Whether no message is ever lost on its way."""
        loss = self.network["loss"]
        if loss["kind"] == "bernoulli":
            return loss["probability"] == 0
        return loss["loss_good"] == loss["loss_bad"] == 0
