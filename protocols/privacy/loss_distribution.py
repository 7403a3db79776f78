"""Numerical composition of releases with dp-accounting's privacy loss distributions.

All rounding is pessimistic: connect-the-dots discretisation (Doroshenko et al. 2022), tails moved to infinite loss, and
multipliers rounded down to a geometric grid where more than 128 different ones occur. The grids are nested, so one more
release never lowers epsilon. Multipliers are relative to the run's own sensitivity, so adjacency is always passed as
ADD_OR_REMOVE_ONE with sensitivity 1: what REPLACE_ONE does to it differs between the library's accountants.
"""

# dp_accounting comes without types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .composed_losses import TRUNCATED, Losses, Memory, branches
from .mechanisms import GAUSSIAN, Noise, PrivacyLoss, noise_of
from .mechanisms.mechanism_registry import edition
from .mechanisms.privacy_loss import Sampled

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


class Part(NamedTuple):
    """Releases that reveal the same."""

    mechanism: str
    multiplier: float
    sampling: float = 1.0
    dimension: int = 0

    @property
    def noise(self) -> Noise:
        """Their mechanism."""
        return noise_of(self.mechanism)

    def loss(self, *, replaced: bool = False) -> PrivacyLoss:
        """Privacy loss of one of the releases; ``replaced`` accounts for sampling under replace-one adjacency."""
        whole = self.noise.loss(self.multiplier, self.dimension)
        return whole if self.sampling == 1 else Sampled(whole, self.sampling, replaced)


Item = tuple[Part, int]
Parts = tuple[Item, ...]
"""Counted releases, sorted."""

SMALLEST_DELTA = 1e-10
"""Convolution by FFT errs by about 1e-15 per point, so no smaller delta can be read off."""
EXACT_SCALES = 128
FINE_SCALES = 256
COARSE_STEP = math.log(1.01)
FINE_STEP = COARSE_STEP / 4
MOST_POINTS = 2**20
"""Points of the composed distribution: 8 MB each, about a second in all."""
MOST_COMPOSED_POINTS = 2**22
"""Points of what one release composed with itself may come to: 0.2 GB while it is made; a coarser grid where more."""
COARSER = 20
"""How often a grid is made coarser before no bound is found on any."""
MOST_SAMPLED_POINTS = 1e5
"""Points of one sampled release, whose distribution is built slowly (8 microseconds a point)."""


def composed_epsilon(parts: Parts, delta: float, *, replaced: bool = False) -> float:
    """Upper bound on the epsilon of all ``parts`` together, at ``delta >= SMALLEST_DELTA``; inf if none is found.

    Each part is composed with itself by one FFT, and parts of one kind in the order of their multipliers' bits.
    ``replaced`` accounts for sampled releases under replace-one instead of add-or-remove-one. Where the losses spread
    wider than `discretisation` foresees (sampled releases with next to no noise), the grid is made coarser, which only
    lifts the bound.
    """
    parts = on_grid(_merged(parts))
    interval = discretisation(parts)
    kinds: dict[tuple[str, float, int], list[Item]] = {}
    for item in parts:
        kinds.setdefault((item[0].mechanism, item[0].sampling, item[0].dimension), []).append(item)
    for _ in range(COARSER):
        tree = _Tree(interval, replaced)
        try:
            composed = [tree.losses(tuple(items)) for _, items in sorted(kinds.items())]
            return reduce(Losses.compose, composed).epsilon(delta, interval)
        except OverflowError:  # the library takes exp of losses beyond 709: sampled releases with next to no noise
            return math.inf
        except _TooFine as fine:
            interval *= 2.0 ** math.ceil(math.log2(fine.points / MOST_COMPOSED_POINTS))
    return math.inf


class _TooFine(Exception):
    """Losses have too many points on a grid."""

    def __init__(self, points: int) -> None:
        super().__init__(points)
        self.points = points


@dataclass(frozen=True)
class _Tree:
    """Composes the releases of one kind on a grid."""

    interval: float
    replaced: bool

    def losses(self, items: tuple[Item, ...]) -> Losses:
        """Losses of items with one mechanism, sampling and dimension, sorted by their multipliers."""
        return _memory.recall((items, self.interval, self.replaced, edition()), lambda: self._made(items))

    def _made(self, items: tuple[Item, ...]) -> Losses:
        if len(items) == 1:
            return Losses.of(_distribution(items[0], self.interval, self.replaced))
        less, more = branches(items, tuple(part.multiplier for part, _ in items))
        return self.losses(less).compose(self.losses(more))


_memory = Memory()


def on_grid(parts: Parts) -> Parts:
    """Round multipliers down, by at most 1 %, where there are more than 128 different ones."""
    if len(parts) <= EXACT_SCALES:
        return parts
    rounded = _rounded(parts, FINE_STEP)
    return rounded if len(rounded) <= FINE_SCALES else _rounded(parts, COARSE_STEP)


def discretisation(parts: Parts) -> float:
    """Width of the loss grid: a small part of the typical loss, coarser where the distribution would not fit."""
    first, counts = parts[0][0], np.array([count for _, count in parts], dtype=float)
    spread, largest = (
        np.array(column) for column in zip(*(part.loss().extent()[:2] for part, _ in parts), strict=True)
    )
    slow = [width for (part, _), width in zip(parts, largest, strict=True) if part.sampling < 1]
    typical = math.sqrt(float(counts @ spread**2 / counts.sum()))
    interval = max(
        min(0.05, typical / (50 if slow else 200)),
        float(_width(counts, spread, largest).sum()) / MOST_POINTS,
        max(slow, default=0.0) / MOST_SAMPLED_POINTS,
    )
    if len(parts) > 1:
        return 2.0 ** round(math.log2(interval))  # the same when one more release comes, but for few
    if first.noise.pure and interval < largest[0]:
        interval = float(largest[0]) / math.ceil(largest[0] / interval)  # the atom of the loss falls on the grid
    return interval


def _width(
    counts: NDArray[np.float64], spread: NDArray[np.float64], largest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Range of losses that the library keeps of each part: Chernoff bounds of order (1 to 20) / (2 largest)."""
    variance = counts * spread**2
    order = np.clip(2 * largest * np.sqrt(70 / variance), 1, 20)
    return np.minimum(2 * counts * largest, variance * order / (2 * largest) + 140 * largest / order)


def _distribution(item: Item, interval: float, replaced: bool) -> PrivacyLossDistribution:
    part, count = item
    single = _single(part, interval, replaced, edition())
    if count == 1:
        return single
    points = max(_points(pmf, count) for pmf in {single._pmf_remove, single._pmf_add})
    if points > MOST_COMPOSED_POINTS:
        raise _TooFine(points)
    return single.self_compose(count)


def _points(pmf: PLDPmf, count: int) -> int:
    """Points that the library keeps of a distribution that is composed with itself."""
    from dp_accounting.pld import common

    if pmf.size * count <= MOST_COMPOSED_POINTS:
        return pmf.size * count
    masses: Any = pmf.to_dense_pmf()._probs  # an array, which the library takes as it takes lists
    lowest, highest = common.compute_self_convolve_bounds(masses, count, TRUNCATED)
    return highest - lowest + 1


@lru_cache(maxsize=1024)
def _single(part: Part, interval: float, replaced: bool, edition: int) -> PrivacyLossDistribution:  # noqa: ARG001
    return part.loss(replaced=replaced).distribution(interval)


def _merged(parts: Parts) -> Parts:
    """Replace all unsampled Gaussian releases by the one Gaussian that they are equivalent to."""
    same = [(part, part.noise.gaussian_multiplier(part.multiplier)) for part, _ in parts]
    plain = {part: sigma for part, sigma in same if sigma is not None and part.sampling == 1}
    if not plain:
        return parts
    mu = math.sqrt(math.fsum(count / plain[part] ** 2 for part, count in parts if part in plain))
    return (*(item for item in parts if item[0] not in plain), (Part(GAUSSIAN.name, 1 / mu), 1))


def _rounded(parts: Iterable[Item], step: float) -> Parts:
    counts: dict[Part, int] = {}
    for part, count in parts:
        cell = math.floor(math.log(part.multiplier) / step)
        if math.exp(cell * step) > part.multiplier:
            cell -= 1
        key = part._replace(multiplier=math.exp(cell * step))
        counts[key] = counts.get(key, 0) + count
    return tuple(sorted(counts.items()))
