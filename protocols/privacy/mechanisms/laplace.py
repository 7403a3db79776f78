"""Laplace noise on every coordinate, for sensitivities in the l1 norm (Dwork, McSherry, Nissim, Smith 2006).

A release is accounted for as if all of its l1 sensitivity fell on one coordinate: the pair Lap(0), Lap(1) at noise
scale b dominates the noise around vectors that differ by any s with |s_1| + ... + |s_p| <= 1. Proof, at b = 1:

1. With u, v >= 0 and u + v <= 1, the likelihood ratio of two coordinates shifted by u and v depends on S = C_1 + C_2
   alone, where C_1 and C_2 are the noises clipped to [0, u] and [0, v]: it is exp(-Z'), Z' = 2 S - u - v. That of one
   coordinate shifted by u + v is the same function of T, one noise clipped to [0, u + v].
2. T is 0 with probability 1/2, has density exp(-t)/2 inside and is u + v otherwise. S is 0 with probability 1/4 only,
   u + v with half of T's probability, and at t inside, by adding up the cases in which C_1, C_2, both or neither are at
   an end, has at least T's density and atoms besides. So S has T's mass, moved from the two ends inwards.
3. delta(epsilon) is the mean of the convex function (1 - e^epsilon Z)_+ of Z = Q/P, whose mean is 1 for S and for T.
   Less its chord between the two ends it is <= 0 inside and 0 there, so moving mass inwards lowers delta.
4. So two shifts may be merged into one; convexity in Z holds with any other independent ratio as a factor, hence p
   shifts merge one by one. Of one shift, a shorter one reveals no more: the proof in `hushnet...mechanisms.gamma`.
"""

# dp_accounting comes without types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from .mechanism import Noise
from .mechanism_registry import ship
from .privacy_loss import LossExtent, PrivacyLoss

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@dataclass(frozen=True)
class LaplaceLoss(PrivacyLoss):
    """The loss between Lap(0, b) and Lap(1, b)."""

    multiplier: float
    """b, > 0."""

    @property
    def pure(self) -> float:
        """1 / b."""
        return 1 / self.multiplier

    def delta(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 - exp((epsilon - 1/b) / 2), or 0 where it is negative."""
        return -np.expm1(np.minimum(epsilons - self.pure, 0.0) / 2)

    def epsilon(self, delta: float) -> float:
        """1/b + 2 log(1 - delta), or 0 where it is negative."""
        return max(0.0, self.pure + 2 * math.log1p(-delta))

    def renyi(self, order: float) -> float:
        """Divergence of Lap(0, b) from Lap(1, b): Mironov (2017), proposition 6."""
        high = math.log(order / (2 * order - 1)) + (order - 1) * self.pure
        low = math.log((order - 1) / (2 * order - 1)) - order * self.pure
        return (max(high, low) + math.log1p(math.exp(-abs(high - low)))) / (order - 1)

    def extent(self) -> LossExtent:
        """Losses lie within 1 / b."""
        return LossExtent(min(self.pure, 2.0), self.pure, self.pure)

    def distribution(self, interval: float, sampling: float = 1.0) -> PrivacyLossDistribution:
        """The loss on a grid, rounded up."""
        from dp_accounting.pld import privacy_loss_distribution as library

        return library.from_laplace_mechanism(
            self.multiplier, value_discretization_interval=interval, sampling_prob=sampling
        )


@final
class Laplace(Noise):
    """Independent noise of density exp(-abs(x) / b) / (2 b) on every coordinate; ``scale`` is b."""

    name = "laplace"
    norm = "l1"
    independent = True

    def draw(self, size: int | tuple[int, ...], scale: float, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw noise of standard deviation scale sqrt(2)."""
        return rng.laplace(0.0, scale, size)

    def log_density(self, noise: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """The log density of (..., p) noise."""
        return -np.abs(noise).sum(axis=-1) / scale - noise.shape[-1] * math.log(2 * scale)

    def loss(self, multiplier: float, dimension: int = 0) -> LaplaceLoss:
        """The privacy loss of one coordinate with all of the shift, which is the worst in any dimension."""
        return LaplaceLoss(multiplier)

    def printed_multiplier(self, epsilon: float, delta: float) -> float:
        """1 / epsilon."""
        return 1 / epsilon


LAPLACE = ship(Laplace())
