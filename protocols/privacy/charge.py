"""Privacy cost of a release: the part of it that accounting depends on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .mechanisms import Mechanism, mechanism_of

ADJACENCIES = ("add-or-remove-one", "replace-one")
"""When two data sets are neighbours."""


class _Fields(NamedTuple):
    mechanism: str
    """Name of a registered mechanism."""
    multiplier: float
    """Noise scale over the sensitivity that can be proved, in [0, inf]."""
    sampling: float
    """Probability that a given record takes part, in (0, 1]."""
    claimed_multiplier: float
    """Noise scale over the claimed sensitivity, in [0, inf]."""
    claimed_epsilon: float
    """The paper's epsilon of this one release, in [0, inf]."""
    claimed_delta: float
    """The paper's delta of this one release, in [0, 1)."""
    adjacency: str = "add-or-remove-one"
    """What a sampled release is accounted for: ``add-or-remove-one`` or ``replace-one``; no matter without sampling."""
    dimension: int = 0
    """Number of coordinates that the noise was added to, where the mechanism's loss depends on it; else 0."""


class Charge(_Fields):
    """Privacy cost of a release, whoever made it and when; releases with equal charges are counted together.

    Raises ValueError if there is no such mechanism or adjacency.
    """

    __slots__ = ()

    def __new__(cls, *fields: Any, **named: Any) -> Charge:
        """Make a charge of a mechanism that there is."""
        charge = super().__new__(cls, *fields, **named)
        mechanism_of(charge.mechanism)
        if charge.adjacency not in ADJACENCIES:
            raise ValueError(f"there is no adjacency {charge.adjacency!r}; admissible: {', '.join(ADJACENCIES)}.")
        return charge

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Charge:  # pyright: ignore[reportIncompatibleMethodOverride]
        return cls(*iterable)

    @property
    def kind(self) -> Mechanism:
        """Its mechanism."""
        return mechanism_of(self.mechanism)
