"""Noise of releases as an audit needs it: what was drawn, how likely it was, and fresh draws of the same law."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...protocols.privacy.mechanisms import Release, noise_of
from ..contract.draws import Draw

Array = NDArray[np.float64]


def drawn(draw: Draw) -> Array:
    """The noise of a draw: the noisy value less the exact one, or the noise that implies a minimiser."""
    return draw.exact if draw.log_jacobian is not None else draw.noisy - draw.exact


def log_likelihood(draw: Draw) -> float:
    """Logarithm of the density of what was released, given what was released before, up to what no data change."""
    return float(log_density(draw.release, drawn(draw)).sum()) + (draw.log_jacobian or 0.0)


def log_density(release: Release, noise: Array) -> Array:
    """Logarithm of the density of (..., p) noise, of shape (...)."""
    return noise_of(release.mechanism).log_density(noise, release.scale)


def fresh(release: Release, shape: tuple[int, ...], *, rng: np.random.Generator) -> Array:
    """New noise of the same law."""
    return noise_of(release.mechanism).draw(shape, release.scale, rng=rng)
