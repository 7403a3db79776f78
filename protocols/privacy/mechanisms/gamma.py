"""Gamma noise: spherical, of density proportional to exp(-abs(x)_2 / b), for sensitivities in the l2 norm.

It is the noise of Chaudhuri, Monteleoni, Sarwate (2011), and the K-norm mechanism of the l2 ball (Hardt, Talwar 2010):
its norm is Gamma(p, b) and its direction uniform. Any release has pure epsilon 1 / multiplier.

Where the noise is *added* to p coordinates, the loss between the vectors 0 and t e_1 (in units of b, with t = 1 /
multiplier) is L = abs(x - t e_1) - abs(x), and x = r (cos, ...) with r ~ Gamma(p, 1) and (1 + cos) / 2 ~ Beta((p-1)/2,
(p-1)/2). For given r, L > a is cos < (t^2 - a^2 - 2 a r) / (2 r t), which leaves one integral over r. By the reflection
that swaps the two vectors, Q(L > a) = P(L < -a), so that delta(epsilon) = P(L > epsilon) - e^epsilon P(L < -epsilon).

A shorter shift reveals no more. On every line along e_1 the density is log-concave, g say, so g(x) / g(x - t) falls
with x, and among the events on the line some half-line x <= a is the best: it gives G(a) - e^epsilon G(a - t), where G
is the integral of g. For each a that grows with t, hence so does the largest over a, and so does its integral over all
lines, which is delta(epsilon). By the symmetry of the noise only the length of the shift counts. This holds at every
epsilon, negative ones too, so that the pair of the longest shift dominates, also in adaptive compositions (Zhu, Dong,
Wang 2022, Theorem 10).

Where the noise enters in another way (an objective that is then minimised), the shift may depend on what is released.
Then only the pure epsilon is used, as that of randomised response.
"""

# SciPy comes without types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from .laplace import LaplaceLoss
from .mechanism import Noise
from .mechanism_registry import ship
from .privacy_loss import LARGEST_LOSS, LossExtent, PrivacyLoss, RandomisedResponse

NODES = 100
"""Nodes of the integral over the norm: its error is below `MARGIN`, which is added to delta."""
MARGIN = 1e-9
"""Relative; together with 1e-15 absolute."""
DOTS = 60
"""Points per standard deviation of the loss at which its curve is computed; chords between them lie above it."""
MOST_DOTS = 2000
"""Most such points at losses above 0."""


@dataclass(frozen=True)
class GammaLoss(PrivacyLoss):
    """The loss between gamma noise around 0 and around a vector of length 1, in p >= 2 dimensions."""

    multiplier: float
    """b, ``>= 1 / LARGEST_LOSS``."""
    dimension: int
    """p, >= 2."""

    @property
    def pure(self) -> float:
        """1 / b."""
        return 1 / self.multiplier

    def delta(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """The integral over the norm, rounded up."""
        shift, delta = self.pure, np.zeros(len(epsilons))
        inside = epsilons < shift
        eps = epsilons[inside]
        above = _behind(eps, shift, self.dimension)
        delta[inside] = above - np.exp(eps) * _ahead(eps, shift, self.dimension)
        return np.where(inside, np.clip(delta + MARGIN * np.abs(delta) + 1e-15, 0.0, 1.0), 0.0)

    def extent(self) -> LossExtent:
        """The deviation is about t / sqrt(p), and little is beyond some of them."""
        return self._extent

    @cached_property
    def _extent(self) -> LossExtent:
        mesh = np.linspace(0.0, self.pure, 129)
        matters = np.flatnonzero(self.delta(mesh) > 3e-15)
        largest = float(mesh[min(matters[-1] + 1 if len(matters) else 1, 128)])
        return LossExtent(min(self.pure / math.sqrt(self.dimension), 2.0), largest, self.pure)

    def step(self, interval: float) -> int:
        """Between points where the curve is computed."""
        extent = self.extent()
        return max(1, math.floor(extent.spread / DOTS / interval), math.ceil(extent.largest / MOST_DOTS / interval))


def _behind(eps: NDArray[np.float64], shift: float, dimension: int) -> NDArray[np.float64]:
    """P(L > eps): certain for norms up to (t - eps) / 2."""
    from scipy.special import betainc, gammainc

    near = (shift - eps) / 2
    norms, weights = _nodes(near, dimension, 0.0)
    share = (shift - eps)[:, None] * (2 * norms + (shift + eps)[:, None]) / (4 * shift * norms)
    half = (dimension - 1) / 2
    return gammainc(dimension, near) + (weights * betainc(half, half, np.clip(share, 0.0, 1.0))).sum(axis=1)


def _ahead(eps: NDArray[np.float64], shift: float, dimension: int) -> NDArray[np.float64]:
    """P(L < -eps): only for norms above (t + eps) / 2."""
    from scipy.special import betainc

    norms, weights = _nodes((shift + eps) / 2, dimension, shift)
    share = (shift - eps)[:, None] * (2 * norms - (shift + eps)[:, None]) / (4 * shift * norms)
    half = (dimension - 1) / 2
    return (weights * betainc(half, half, np.clip(share, 0.0, 1.0))).sum(axis=1)


def _nodes(
    start: NDArray[np.float64], dimension: int, further: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(k, NODES) norms above (k,) starts and their weights under Gamma(p, 1), for what has a root in norm - start.

    They reach ``further`` than almost all norms, for what is then multiplied by up to e^further.
    """
    from scipy.special import gammaln

    least, most = _range(dimension)
    most += further
    low = np.sqrt(np.maximum(least - start, 0.0))
    high = np.sqrt(np.maximum(most - start, 0.0))
    middle, half = (high + low) / 2, (high - low) / 2
    points, weights = _legendre()
    root = middle[:, None] + half[:, None] * points
    norms = start[:, None] + root * root
    density = np.exp((dimension - 1) * np.log(np.maximum(norms, 1e-300)) - norms - gammaln(dimension))
    return np.maximum(norms, 1e-300), density * 2 * root * half[:, None] * weights


@lru_cache(maxsize=256)
def _range(dimension: int) -> tuple[float, float]:
    """Between which norms all but 1e-20 of Gamma(p, 1) lies, on either side."""
    from scipy.special import gammainccinv, gammaincinv

    return float(gammaincinv(dimension, 1e-20)), float(gammainccinv(dimension, 1e-20))


@lru_cache(maxsize=8192)
def _gamma_loss(multiplier: float, dimension: int) -> GammaLoss:
    return GammaLoss(multiplier, dimension)  # remembers its extent


@lru_cache(maxsize=1)
def _legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.polynomial.legendre.leggauss(NODES)


@final
class GammaNoise(Noise):
    """Spherical noise whose norm is Gamma(p, b), mean p b; ``scale`` is b."""

    name = "gamma"
    norm = "l2"
    per_dimension = True

    def draw(self, size: int | tuple[int, ...], scale: float, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw vectors along the last axis."""
        towards = rng.normal(size=size)
        lengths = rng.gamma(towards.shape[-1], scale, (*towards.shape[:-1], 1))
        return towards * (lengths / np.linalg.norm(towards, axis=-1, keepdims=True))

    def log_density(self, noise: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """The log density of (..., p) noise: the unit sphere has the surface 2 pi^(p/2) / Gamma(p/2)."""
        p = noise.shape[-1]
        sphere = math.log(2) + p / 2 * math.log(math.pi) - math.lgamma(p / 2)
        return -np.linalg.norm(noise, axis=-1) / scale - p * math.log(scale) - math.lgamma(p) - sphere

    def length(self, change: NDArray[np.float64], dimension: int = 0) -> float:
        """Adds up over vectors; the exact loss is that of a change within one of them."""
        lengths = np.linalg.norm(np.atleast_2d(change), axis=-1)
        return math.inf if dimension and np.count_nonzero(lengths) > 1 else float(lengths.sum())

    def loss(self, multiplier: float, dimension: int = 0) -> PrivacyLoss:
        """The exact one where the noise was added; otherwise that of randomised response."""
        if dimension == 0 or multiplier * LARGEST_LOSS < 1:
            return RandomisedResponse(1 / multiplier)
        return LaplaceLoss(multiplier) if dimension == 1 else _gamma_loss(multiplier, dimension)

    def printed_multiplier(self, epsilon: float, delta: float) -> float:
        """1 / epsilon."""
        return 1 / epsilon


GAMMA = ship(GammaNoise())
