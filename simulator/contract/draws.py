"""Steps and draws of noise as the replay notes them, and distances between exact values on two data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...protocols.base import Sent
from ...protocols.privacy.mechanisms import Release, mechanism_of
from ..world.watchers import Phase

ROUNDING = 1e-9
"""What a realised change may be above its charge, in relation to it."""
UNITS = 64
"""The same, in units in the last place of the largest exact value, for every coordinate."""
ROUNDED = 1e-6
"""What those units may be of the sensitivity at most: where values are larger, rounding hides what is charged."""
SOLVED = 1e-6
"""What a minimiser's inaccuracy may add to the epsilon of a perturbed objective."""
DERIVED = 1e-3
"""How far a log Jacobian may be from its numerical derivative."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of noise."""

    release: Release
    exact: NDArray[np.float64]
    """(...,) float64: The value that noise was added to; for a perturbed objective, the noise that implies its
    minimiser."""
    noisy: NDArray[np.float64]
    """(...,) float64: What everybody may know: the sum, or the minimiser."""
    log_jacobian: float | None = None
    """Of a perturbed objective: log abs det of the derivative of the implied noise, up to a constant."""
    derived: float = 0.0
    """The same from a numerical derivative, without that constant."""
    noise: NDArray[np.float64] | None = None
    """(...,) float64, optional: Of a perturbed objective: the noise as it was drawn."""

    @property
    def explained(self) -> NDArray[np.float64]:
        """The noise that explains what was released: noisy value less exact one, or what implies a minimiser."""
        return self.exact if self.log_jacobian is not None else self.noisy - self.exact

    def change(self, other: Draw) -> float:
        """Return the distance between the exact values on two data sets, in the units of the release's sensitivity."""
        moved = distance(self.release, other.exact - self.exact)
        if self.log_jacobian is None or other.log_jacobian is None:
            return moved
        return moved + abs(other.log_jacobian - self.log_jacobian) * self.release.scale

    def allowed(self, other: Draw) -> float:
        """The largest `change` that the release was charged for, up to rounding."""
        charged = self.release.verified_sensitivity * (1 + ROUNDING)
        if self.log_jacobian is not None:
            return charged + SOLVED * self.release.scale
        return charged + self.rounding(other)

    def rounding(self, other: Draw) -> float:
        """Bound what rounding may add to a `change`, in the units of the release's sensitivity.

        It is measured in units in the last place, never by the length of the values themselves: that is for a mechanism
        to say, and may be infinite.
        """
        largest = max(np.abs(self.exact).max(initial=0.0), np.abs(other.exact).max(initial=0.0))
        count = self.exact.size if self.release.norm == "l1" else np.sqrt(self.exact.size)
        return float(UNITS * np.spacing(largest) * count)

    def too_large(self, other: Draw) -> bool:
        """True if the exact values are so large that rounding alone hides what the release is charged for."""
        charged = self.release.verified_sensitivity or self.release.scale
        return self.log_jacobian is None and not self.rounding(other) <= ROUNDED * charged

    def misderived(self, other: Draw) -> float:
        """Compare how far two data sets move the log Jacobian with its numerical derivative; 0 without one."""
        if self.log_jacobian is None or other.log_jacobian is None:
            return 0.0
        return abs((other.log_jacobian - self.log_jacobian) - (other.derived - self.derived))


@dataclass(frozen=True, slots=True)
class Step:
    """Record of one step of an agent: its messages, its other releases, and its draws of noise."""

    phase: Phase
    agent: int
    tick: int
    updates: int
    now: float
    sent: tuple[Sent, ...]
    disclosed: tuple[Release, ...]
    """Charged at once, see ``me.disclose``."""
    silent: bool
    """Whether the agent fell silent."""
    drawn: int
    """How often noise was drawn for the agent's releases until then."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """Releases that leave the agent in this step."""
        return (*(sent.release for sent in self.sent), *self.disclosed)


def distribution_of(release: Release) -> tuple[Any, ...]:
    """Return the fields that determine a release's noise and cost; releases that agree in them are interchangeable."""
    return release.agent, release.mechanism, release.scale, release.verified_sensitivity, release.sampling, release.unit


def protects_nothing(release: Release) -> bool:
    """True if a release has an infinite epsilon: content without noise, or noise for an unbounded sensitivity."""
    return not release.free and release.multiplier == 0


def distance(release: Release, vector: NDArray[np.float64]) -> float:
    """Length of a difference, as the mechanism of a release measures it."""
    with np.errstate(all="ignore"):
        return mechanism_of(release.mechanism).length(vector, release.dimension)


def difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> str:
    """Describe in words the coordinate at which two vectors differ most, and by how much."""
    if np.isnan(other).any():
        return f"coordinate {int(np.flatnonzero(np.isnan(other))[0])} is not a number (NaN)"
    if len(one) != len(other):
        return f"{len(other)} numbers in place of {len(one)}"
    with np.errstate(all="ignore"):
        gap = np.abs(other - one)
    where = int(np.argmax(gap))
    count = int(np.count_nonzero(one != other))
    return (
        f"coordinate {where} is {other[where]:.6g} in place of {one[where]:.6g}, "
        f"{gap[where]:.3g} apart ({count} of {len(one)} differ)"
    )
