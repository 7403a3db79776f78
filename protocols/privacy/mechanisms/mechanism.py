"""Base classes of privacy mechanisms: their noise, its density and the privacy loss of a release.

The ledger, the accountant, the calibration of noise, a scenario's parameters and the protocols ask these objects; no
other place knows what a mechanism's name means.
"""

# SciPy comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .privacy_loss import PrivacyLoss

Norm = Literal["l1", "l2"]


class Mechanism(ABC):
    """A way in which a message treats its sender's private data; subclasses are final."""

    name: ClassVar[str]
    """What scenarios, ledgers and result files call it."""
    norm: ClassVar[Norm | None] = None
    """Norm of the sensitivities that its noise is scaled for; None without noise."""
    free: ClassVar[bool] = False
    """Whether a message has no private content, so that it costs nothing."""
    noisy: ClassVar[bool] = False
    """Whether noise is drawn for it."""
    per_dimension: ClassVar[bool] = False
    """Whether what a release reveals depends on the number of coordinates that the noise was added to."""

    def draw(self, size: int | tuple[int, ...], scale: float, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw noise of a shape, whose last axis is that of one vector: none, unless a subclass has some.

        The scale, > 0, is as in `Noise.log_density`.
        """
        return np.zeros(size)

    def gaussian_multiplier(self, multiplier: float) -> float | None:
        """The multiplier of the Gaussian release that a release equals; None if it equals none.

        Such releases merge: the squares of their inverse multipliers add up.
        """
        return None

    def length(self, change: NDArray[np.float64], dimension: int = 0) -> float:
        """Length of a change of a value, of any shape, in the mechanism's norm; inf where no loss covers it.

        ``dimension`` is as in `Noise.loss`.
        """
        return float(np.abs(change).sum() if self.norm == "l1" else np.linalg.norm(change))

    @property
    def gaussian(self) -> bool:
        """True if its releases are equivalent to Gaussian ones."""
        return self.gaussian_multiplier(1.0) is not None


class Noise(Mechanism):
    """Additive noise of a density: what a release draws and what that reveals.

    The noise on a vector of sensitivity 1 has scale ``multiplier``: scaling both changes nothing. A subclass is
    registered by `hushnet.protocols.privacy.mechanisms.register`.
    """

    noisy: ClassVar[bool] = True
    norm: ClassVar[Norm]  # pyright: ignore[reportIncompatibleVariableOverride]  # narrower
    pure: ClassVar[bool] = True
    """Whether one release has a finite epsilon at delta 0."""
    independent: ClassVar[bool] = False
    """Whether the coordinates of a vector of noise are independent."""

    @abstractmethod
    def draw(self, size: int | tuple[int, ...], scale: float, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw noise of a shape at a scale > 0, as `Mechanism.draw`; vectors along the last axis are independent."""

    @abstractmethod
    def log_density(self, noise: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """Logarithm of the normalised density of (..., p) noise at a scale > 0, of shape (...)."""

    @abstractmethod
    def loss(self, multiplier: float, dimension: int = 0) -> PrivacyLoss:
        """Upper bound on the privacy loss of one release, where the change by one record has a `length` of at most 1.

        It is the loss of a pair of distributions that dominates the noise around any two such values, whatever the
        direction and length of the change, and never grows with the multiplier, the noise scale over the sensitivity,
        in (0, inf). The dimension is the number of coordinates that the noise was *added* to; 0 if it is not known, or
        if the noise entered in another way (an objective that is then minimised), so that the shift may depend on what
        is released.
        """

    def printed_multiplier(self, epsilon: float, delta: float) -> float:
        """The multiplier at which papers say that one release is (epsilon, delta)-private.

        By default the exact one; pure mechanisms do not look at delta.
        """
        from scipy.optimize import root_scalar

        share = 0.0 if self.pure else delta

        def excess(logarithm: float) -> float:
            return self.loss(math.exp(logarithm)).epsilon(share) - epsilon

        high = math.log(10 / epsilon)
        while excess(high) > 0:
            high += 1.0
        low = high - 1.0
        while excess(low) <= 0:
            low -= 1.0
        return math.exp(root_scalar(excess, bracket=(low, high), method="brentq", xtol=1e-13).root + 1e-12)
