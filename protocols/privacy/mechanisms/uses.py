"""Uses of users' mechanisms: the scales, multipliers, samplings and dimensions of their releases."""

from __future__ import annotations

import math

from .contract import Use, around, unproved
from .mechanism_registry import mechanism_of, shipped
from .release import Release

EXACT = 64
"""Different uses of a mechanism that are remembered as they are; of further ones, one of each cell of a grid."""


class Uses:
    """Uses that a ledger was charged for, of mechanisms outside the package; each is checked as it is used."""

    def __init__(self) -> None:
        self._known: dict[str, dict[tuple[float, ...], Use]] = {}

    def note(self, release: Release, width: int = 0) -> None:
        """Remember a noisy release; ``width`` is the length of what is sent, or 0, where it declares no dimension."""
        if shipped(mechanism_of(release.mechanism)):
            return
        use = Use(release.multiplier, release.sampling, release.dimension or width or 1, release.scale)
        known = self._known.setdefault(release.mechanism, {})
        if use in known or len(known) < EXACT:
            known[use] = use
            return
        near = around(use.multiplier)[0] if 0 < use.multiplier < math.inf else use.multiplier
        known.setdefault((near, use.sampling, use.dimension, around(use.scale)[0]), use)

    def doubt(self, name: str) -> str:
        """Return the reason why nothing is verified about a mechanism as it is used; empty if there is none."""
        return unproved(mechanism_of(name), self._known.get(name, {}).values())

    def doubted(self) -> set[str]:
        """Names of those about which nothing is verified."""
        return {name for name in self._known if self.doubt(name)}
