"""Privacy loss of one release, between two neighbouring data sets, and its amplification by sampling.

A `PrivacyLoss` is that of a pair of distributions (P, Q), by its hockey-stick divergence delta(epsilon) = sup over
events E of P(E) - e^epsilon Q(E). Where it is put on a grid, it is rounded up: between grid points the curve is
replaced by its chord in e^epsilon, which lies above it, as the curve is convex there (connecting the dots: Doroshenko,
Ghazi, Kamath, Kumar, Manurangsi 2022).
"""

# dp_accounting comes without types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

LARGEST_LOSS = 700.0
"""Beyond it exp overflows; larger losses count as infinite where a curve is sampled."""


class LossExtent(NamedTuple):
    """Range of privacy losses, which decides on the grid that they are put on and on nothing else."""

    spread: float
    """Standard deviation, roughly."""
    largest: float
    """Largest loss that matters."""
    exponent: float
    """Logarithm of 1 + the chi-square divergence, roughly."""


class PrivacyLoss(ABC):
    """The privacy loss of one release, between neighbouring data sets in either order."""

    @property
    @abstractmethod
    def pure(self) -> float:
        """Epsilon at delta 0, in [0, inf]."""

    @abstractmethod
    def delta(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Smallest delta at each of (k,) epsilons ``>= 0``, in the worse order of the two data sets."""

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at ``delta`` in [0, 1), found to 1e-12 from above."""
        if self._delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, self.extent().largest
        while self._delta(high) > delta:
            low, high = high, 2 * high
            if high > min(2 * self.pure, 1e6):
                return self.pure
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._delta(middle) > delta else (low, middle)
        return min(high, self.pure)

    def _delta(self, epsilon: float) -> float:
        return float(self.delta(np.array([epsilon]))[0])

    def renyi(self, order: float) -> float:
        """Renyi divergence at an order > 1, in the worse order of the two data sets; by default not known: infinite."""
        return math.inf

    def extent(self) -> LossExtent:
        """Range of the losses; by default up to where delta falls below 1e-15."""
        spread = max(2.5 * self._delta(0.0), 1e-6)
        largest = min(spread, self.pure)
        while largest < min(self.pure, LARGEST_LOSS) and self._delta(largest) > 1e-15:
            largest = min(1.25 * largest, self.pure)
        return LossExtent(spread, largest, largest)

    def step(self, interval: float) -> int:
        """Number of intervals of a grid between points at which the curve is asked for."""
        return 1

    def distribution(self, interval: float, sampling: float = 1.0) -> PrivacyLossDistribution:
        """The loss on a grid, rounded up, where a record takes part with probability ``sampling``.

        A sampled pair is (1 - q) Q + q P against Q, removing a record, and the other way round, adding one. Its curve
        is q delta(log(1 + (e^epsilon - 1) / q)).
        """
        from dp_accounting.pld import privacy_loss_distribution as library

        largest, step = min(amplified(self.extent().largest, sampling), LARGEST_LOSS), self.step(interval)
        points = step * np.arange(max(math.ceil(largest / (interval * step)), 1) + 1)
        points = np.concatenate([-points[:0:-1], points])
        losses = np.asarray(points * interval, dtype=np.float64)
        removed = self._curve(losses, sampling)
        if sampling == 1:
            return library.PrivacyLossDistribution(dotted(points, removed, interval))
        added = -np.expm1(losses) + np.exp(losses) * removed[::-1]
        return library.PrivacyLossDistribution(dotted(points, removed, interval), dotted(points, added, interval))

    def _curve(self, epsilons: NDArray[np.float64], sampling: float) -> NDArray[np.float64]:
        """Delta of ((1 - q) Q + q P, Q) at (k,) epsilons of any sign."""
        certain = -np.expm1(epsilons)
        possible = np.full(certain.shape, True) if sampling == 1 else sampling > certain
        inner = np.log1p(-certain[possible] / sampling) if sampling < 1 else epsilons
        sizes, where = np.unique(np.abs(inner), return_inverse=True)  # on a grid, every size occurs twice
        delta = self.delta(sizes)[where]
        delta = np.where(inner < 0, -np.expm1(inner) + np.exp(np.minimum(inner, 0.0)) * delta, delta)
        certain[possible] = sampling * delta
        return certain


@dataclass(frozen=True)
class RandomisedResponse(PrivacyLoss):
    """The loss of randomised response, from which every release of that epsilon can be simulated.

    It is epsilon with probability 1 / (1 + e^-epsilon), else -epsilon (Kairouz, Oh, Viswanath 2015).
    """

    size: float
    """Epsilon, > 0."""

    @property
    def pure(self) -> float:
        """Its epsilon."""
        return self.size

    def delta(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """(e^size - e^epsilon) / (e^size + 1), or 0 where it is negative."""
        return np.maximum(-np.expm1(np.minimum(epsilons - self.size, 0.0)), 0.0) / (1 + math.exp(-self.size))

    def epsilon(self, delta: float) -> float:
        """The root of that, or 0 where it is negative."""
        left = 1 - delta * (1 + math.exp(-self.size))
        return max(0.0, self.size + math.log(left)) if left > 0 else 0.0

    def extent(self) -> LossExtent:
        """Its two values."""
        return LossExtent(min(self.size, 2.0), self.size, self.size)

    def distribution(self, interval: float, sampling: float = 1.0) -> PrivacyLossDistribution:
        """Both values, split between their neighbours on the grid so that no probability changes under P or Q.

        Sampling makes it randomised response of a smaller epsilon (Balle, Barthe, Gaboardi 2018, Theorem 8).
        """
        from dp_accounting.pld import privacy_loss_distribution as library

        size = amplified(self.size, sampling)
        masses: dict[int, float] = {}
        for loss in (size, -size):
            below = math.floor(loss / interval)
            up = math.expm1(below * interval - loss) / math.expm1(-interval)
            mass = 1 / (1 + math.exp(-size)) * math.exp(min(loss, 0.0))
            masses[below] = masses.get(below, 0.0) + max(0.0, 1 - up) * mass
            masses[below + 1] = masses.get(below + 1, 0.0) + up * mass
        return library.PrivacyLossDistribution.create_from_rounded_probability(masses, 0.0, interval)


@dataclass(frozen=True)
class Sampled(PrivacyLoss):
    """The loss of a release in which a given record takes part with a probability.

    Poisson sampling under add-or-remove-one. Under replace-one, whether records are drawn without replacement or by
    Poisson sampling, it is bounded by the curve of that pair in its worse order at every epsilon, negative ones
    included (Zhu, Dong, Wang 2022, Theorem 11): one order alone has not been proved to bound adaptive compositions.
    """

    whole: PrivacyLoss
    """The loss of the release in which every record takes part."""
    sampling: float
    """The probability with which a record takes part, in (0, 1)."""
    replaced: bool = False
    """Whether a record is replaced, rather than added or removed."""

    @property
    def pure(self) -> float:
        """log(1 + q (e^epsilon - 1)): Balle, Barthe, Gaboardi 2018, Theorem 8."""
        return amplified(self.whole.pure, self.sampling)

    def delta(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Delta of removing a record, which is the worse order at epsilons ``>= 0``."""
        return self.whole._curve(epsilons, self.sampling)

    def epsilon(self, delta: float) -> float:
        """log(1 + q (e^epsilon - 1)) at q delta; 0 where delta is at least q."""
        return amplified(self.whole.epsilon(delta / self.sampling), self.sampling) if delta < self.sampling else 0.0

    def extent(self) -> LossExtent:
        """Extent of a mixture of which a share q is like the whole."""
        spread, largest, exponent = self.whole.extent()
        if exponent < 50:
            spread = min(spread, self.sampling * math.sqrt(math.expm1(exponent)))
        return LossExtent(spread, amplified(largest, self.sampling), exponent)

    def distribution(self, interval: float, sampling: float = 1.0) -> PrivacyLossDistribution:
        """The loss on a grid, rounded up; sampled once more if ``sampling`` is below 1."""
        single = self.whole.distribution(interval, self.sampling * sampling)
        return _worse_order(single, interval) if self.replaced else single


def amplified(epsilon: float, sampling: float) -> float:
    """log(1 + q (e^epsilon - 1)), in [0, inf]."""
    if sampling == 1 or math.isinf(epsilon):
        return epsilon
    if epsilon < 1:
        return math.log1p(sampling * math.expm1(epsilon))  # never below 0
    return float(np.logaddexp(math.log1p(-sampling), math.log(sampling) + epsilon))


def dotted(points: NDArray[np.int64], deltas: NDArray[np.float64], interval: float) -> PLDPmf:
    """The distribution on a grid whose curve connects the dots (k interval, delta_k)."""
    from dp_accounting.pld import pld_pmf

    kept = np.minimum.accumulate(np.clip(deltas, 0.0, 1.0))
    return pld_pmf.create_pmf_pessimistic_connect_dots(interval, points, kept)


def _worse_order(single: PrivacyLossDistribution, interval: float) -> PrivacyLossDistribution:
    """The loss whose curve is, at every epsilon, that of the sampled pair in its worse order (P sampled into Q).

    For epsilon >= 0 that order is removing a record; for epsilon < 0 the curve follows from the same order, as the
    swapped pair has delta(epsilon) = 1 - e^epsilon + e^epsilon delta'(-epsilon).
    """
    from dp_accounting.pld import privacy_loss_distribution as library

    removed = single._pmf_remove.to_dense_pmf()
    count = max(min(removed._lower_loss + len(removed._probs), math.floor(LARGEST_LOSS / interval)), 1)
    positive = np.arange(count + 1) * interval
    above = np.asarray(removed.get_delta_for_epsilon(positive.tolist()), dtype=np.float64)
    below = -np.expm1(-positive[:0:-1]) + np.exp(-positive[:0:-1]) * above[:0:-1]
    return library.PrivacyLossDistribution(
        dotted(np.arange(-count, count + 1), np.concatenate([below, above]), interval)
    )
