"""Privacy losses of releases together: distributions on one grid, composed in a tree that remembers its branches.

The library builds the distribution of one release, and composes it with itself. Here distributions of different
releases are convolved. The order depends on what is composed and on nothing else: a binary tree over the bits of the
multipliers, so that one release more changes one path of it. Every branch is a function of the releases below it, hence
the same releases give the same number, bit for bit, whatever was asked before.
"""

# SciPy and dp_accounting come without types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownVariableType=false

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

TRUNCATED = 1e-15
"""Mass that a convolution may move: half of it up to infinity, half up to the smallest loss that is kept."""
REMEMBERED = 2**24
"""Points of all branches that are remembered: 128 MB."""


@dataclass(frozen=True, eq=False)
class Masses:
    """Probabilities of losses on a grid, all of them rounded up."""

    lowest: int
    """Smallest loss, in intervals."""
    probabilities: NDArray[np.float64]
    """(k,) of the losses from there on."""
    infinite: float
    """Probability of an infinite loss."""

    @classmethod
    def of(cls, pmf: PLDPmf) -> Masses:
        """Copy a probability mass function of the library dp-accounting."""
        dense = pmf.to_dense_pmf()
        return cls(int(dense._lower_loss), np.asarray(dense._probs, dtype=np.float64), float(dense._infinity_mass))

    def compose(self, other: Masses) -> Masses:
        """The losses of both together."""
        from scipy.signal import oaconvolve

        probabilities = oaconvolve(self.probabilities, other.probabilities)
        infinite = self.infinite + other.infinite - self.infinite * other.infinite
        first = int(np.argmax(np.cumsum(probabilities) > TRUNCATED / 2))
        last = len(probabilities) - int(np.argmax(np.cumsum(probabilities[::-1]) > TRUNCATED / 2))
        kept = probabilities[first:last].copy()
        kept[0] += max(float(probabilities[:first].sum()), 0.0)
        beyond = max(float(probabilities[last:].sum()), 0.0)
        return Masses(self.lowest + other.lowest + first, kept, infinite + beyond)

    def epsilon(self, delta: float, interval: float) -> float:
        """The smallest epsilon ``>= 0`` at which sum p (1 - e^(epsilon - loss))_+ is at most delta; inf if none is."""
        if self.infinite > delta:
            return np.inf
        above = max(0, 1 - self.lowest)  # an epsilon >= 0 only looks at losses above 0
        losses = (self.lowest + np.arange(above, len(self.probabilities)))[::-1] * interval
        masses = self.probabilities[above:][::-1]
        mass = self.infinite + np.cumsum(masses)
        if not (mass > delta).any():
            return 0.0
        # Between two losses the sum is mass - e^(epsilon - origin) tilted, taken over the losses above. No epsilon is
        # above the origin, nor far below it, where the exponent is cut off.
        origin = losses[np.argmax(mass > delta)]
        with np.errstate(all="ignore"):
            tilted = np.cumsum(masses * np.exp(np.minimum(origin - losses, 700.0)))
            roots = origin + np.log((mass - delta) / tilted)
        (found,) = np.nonzero((mass > delta) & (roots >= np.append(losses[1:], 0.0)))
        return float(min(roots[found[0]], losses[found[0]])) if len(found) else 0.0


@dataclass(frozen=True, eq=False)
class Losses:
    """The losses of removing a record and of adding one; None where they are the same."""

    removed: Masses
    added: Masses | None

    @classmethod
    def of(cls, distribution: PrivacyLossDistribution) -> Losses:
        """Copy a privacy loss distribution of the library dp-accounting."""
        same = distribution._symmetric
        return cls(Masses.of(distribution._pmf_remove), None if same else Masses.of(distribution._pmf_add))

    def compose(self, other: Losses) -> Losses:
        """Both together."""
        if self.added is None and other.added is None:
            return Losses(self.removed.compose(other.removed), None)
        added = (self.added or self.removed).compose(other.added or other.removed)
        return Losses(self.removed.compose(other.removed), added)

    def epsilon(self, delta: float, interval: float) -> float:
        """Epsilon in the worse of both orders."""
        return max(each.epsilon(delta, interval) for each in (self.removed, self.added) if each is not None)

    @property
    def size(self) -> int:
        """Number of points."""
        return sum(len(each.probabilities) for each in (self.removed, self.added) if each is not None)


class Memory:
    """Losses by what they are of; what was not asked for the longest time is forgotten first."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Losses] = OrderedDict()
        self._points = 0

    def recall(self, key: Hashable, make: Callable[[], Losses]) -> Losses:
        """The losses of a key, made if they are not known."""
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        made = make()
        self._known[key] = made
        self._points += made.size
        while self._points > REMEMBERED and len(self._known) > 1:
            self._points -= self._known.popitem(last=False)[1].size
        return made


def branches(items: tuple[Any, ...], multipliers: tuple[float, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Split items, sorted by their different multipliers > 0, where the highest bit that tells these apart changes."""
    first, last = _bits(multipliers[0]), _bits(multipliers[-1])
    top = (first ^ last).bit_length() - 1
    middle = next(rank for rank, multiplier in enumerate(multipliers) if _bits(multiplier) >> top & 1)
    return items[:middle], items[middle:]


def _bits(number: float) -> int:
    """The bits of a positive number, whose order is that of the numbers."""
    return int.from_bytes(struct.pack(">d", number), "big")
