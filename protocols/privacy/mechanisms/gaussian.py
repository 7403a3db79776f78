"""Gaussian noise, for sensitivities in the l2 norm (Dwork, Roth 2014, Appendix A).

By its symmetry only the length of a shift matters: telling apart two vectors is telling N(0, 1) from N(mu, 1) (Dong,
Roth, Su 2022), and releases merge, as their mu^2 add up.
"""

# SciPy and dp_accounting come without types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ..composition import gaussian_epsilon
from .mechanism import Noise
from .mechanism_registry import ship
from .privacy_loss import LossExtent, PrivacyLoss

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@dataclass(frozen=True)
class GaussianLoss(PrivacyLoss):
    """The loss between N(0, 1) and N(mu, 1)."""

    multiplier: float
    """1 / mu, > 0."""

    @property
    def pure(self) -> float:
        """Infinite."""
        return math.inf

    def delta(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu): Balle and Wang (2018), equation (6)."""
        from scipy.special import log_ndtr

        mu = 1 / self.multiplier
        upper = log_ndtr(mu / 2 - epsilons / mu)
        gap = epsilons + log_ndtr(-mu / 2 - epsilons / mu) - upper
        return np.exp(upper) * -np.expm1(np.minimum(gap, 0.0))

    def epsilon(self, delta: float) -> float:
        """The root of that."""
        return gaussian_epsilon(1 / self.multiplier, delta)

    def extent(self) -> LossExtent:
        """Losses are normal with mean mu^2 / 2 and deviation mu."""
        mu = 1 / self.multiplier
        return LossExtent(mu, mu * mu / 2 + 10 * mu, mu * mu)

    def distribution(self, interval: float, sampling: float = 1.0) -> PrivacyLossDistribution:
        """The loss on a grid, rounded up."""
        from dp_accounting.pld import privacy_loss_distribution as library

        return library.from_gaussian_mechanism(
            self.multiplier, value_discretization_interval=interval, sampling_prob=sampling
        )


@final
class Gaussian(Noise):
    """Independent normal noise on every coordinate; ``scale`` is its standard deviation."""

    name = "gaussian"
    norm = "l2"
    independent = True
    pure = False

    def draw(self, size: int | tuple[int, ...], scale: float, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw noise of standard deviation ``scale``."""
        return rng.normal(0.0, scale, size)

    def log_density(self, noise: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """The log density of (..., p) noise."""
        squares = np.square(noise / scale).sum(axis=-1)
        return -squares / 2 - noise.shape[-1] * (math.log(scale) + math.log(2 * math.pi) / 2)

    def loss(self, multiplier: float, dimension: int = 0) -> GaussianLoss:
        """The privacy loss, which is the same in every dimension."""
        return GaussianLoss(multiplier)

    def gaussian_multiplier(self, multiplier: float) -> float:
        """The multiplier itself."""
        return multiplier

    def printed_multiplier(self, epsilon: float, delta: float) -> float:
        """sqrt(2 log(2 / delta)) / epsilon: Bellet et al. (2018), Remark 4."""
        return math.sqrt(2 * math.log(2 / delta)) / epsilon


GAUSSIAN = ship(Gaussian())
