"""Mechanisms of a user that lie: less noise than they say, or less loss, where nobody looks.

Each is a shipped mechanism with one thing changed; the protocol that uses it is the honest one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hushnet.protocols.privacy.mechanisms import GAMMA, GAUSSIAN, LAPLACE, Noise

from .base import Descent
from .harness import Case

SHIPPED: dict[str, Noise] = {"laplace": LAPLACE, "gaussian": GAUSSIAN, "gamma": GAMMA}


class Liar(Noise):
    """A mechanism like a shipped one, but for what it draws and what it says that a release reveals.

    Parameters
    ----------
    like : Noise
    lie : str
    drawn : callable, optional
        ``drawn(noise, scale, rng)`` gives what is drawn in place of noise.
    believed : callable, optional
        ``believed(multiplier, dimension)`` gives the multiplier whose loss is stated.
    """

    def __init__(self, like: Noise, lie: str, drawn: Callable[..., Any] | None, believed: Callable[..., Any] | None):
        self.like, self.drawn, self.believed = like, drawn, believed
        self.name = f"{lie}-{like.name}"
        self.norm, self.pure, self.independent = like.norm, like.pure, like.independent
        self.per_dimension = like.per_dimension

    def draw(self, size, scale, *, rng):
        noise = self.like.draw(size, scale, rng=rng)
        return noise if self.drawn is None else self.drawn(noise, scale, rng)

    def log_density(self, noise, scale):
        return self.like.log_density(noise, scale)

    def length(self, change, dimension=0):
        return self.like.length(change, dimension)

    def loss(self, multiplier, dimension=0):
        stated = multiplier if self.believed is None else self.believed(multiplier, dimension)
        return self.like.loss(stated, dimension)

    def gaussian_multiplier(self, multiplier):
        stated = multiplier if self.believed is None else self.believed(multiplier, 0)
        return self.like.gaussian_multiplier(stated)


def nothing_beyond_8(noise, scale, rng):
    return np.where(np.arange(noise.shape[-1]) < 8, noise, 0.0)


def cut_at(scales: float) -> Callable[..., Any]:
    def drawn(noise, scale, rng):
        return np.clip(noise, -scales * scale, scales * scale)

    return drawn


def half_below(limit: float) -> Callable[..., Any]:
    def drawn(noise, scale, rng):
        return noise / 2 if scale < limit else noise

    return drawn


def half_between(low: float, high: float) -> Callable[..., Any]:
    def drawn(noise, scale, rng):
        return noise / 2 if low < scale < high else noise

    return drawn


def half_of_little(noise, scale, rng):
    """Half the noise where few numbers are asked for at once."""
    return noise / 2 if noise.size < 100 else noise


def half_in_3_dimensions(noise, scale, rng):
    return noise / 2 if noise.shape[-1] == 3 else noise


def half_of_vectors(noise, scale, rng):
    """Half the noise where it is asked for as a vector, not as rows of them."""
    return noise / 2 if noise.ndim == 1 else noise


def sometimes_nothing(noise, scale, rng):
    """One vector in two thousand has no noise."""
    return np.where(rng.random((*noise.shape[:-1], 1)) < 5e-4, 0.0, noise)


def on_a_grid(noise, scale, rng):
    """Whole multiples of a fiftieth of the scale."""
    return np.round(noise / scale * 50) / 50 * scale


def alike_in_3(noise, scale, rng):
    """Of three coordinates the last is the first's opposite."""
    if noise.shape[-1] == 3:
        noise[..., 2] = -noise[..., 0]
    return noise


def too_little(noise, scale, rng):
    return 0.9 * noise


def less_far_out(noise, scale, rng):
    """Values beyond five scales are drawn in to half of what they are beyond."""
    return np.where(np.abs(noise) > 5 * scale, np.sign(noise) * (5 * scale + (np.abs(noise) - 5 * scale) / 2), noise)


def half_more_below(limit: float) -> Callable[..., Any]:
    def believed(multiplier, dimension):
        return 1.5 * multiplier if multiplier < limit else multiplier

    return believed


def half_more_between(low: float, high: float) -> Callable[..., Any]:
    """Never a step down: a larger multiplier is never believed to be less than this."""

    def believed(multiplier, dimension):
        return high if low < multiplier < high else multiplier

    return believed


def half_more_in_3(multiplier, dimension):
    return 1.5 * multiplier if dimension == 3 else multiplier


def liars() -> list[Case]:
    """A case for each lie, whose mechanisms are those that it is told of."""
    found = []

    def add(lie, what, drawn=None, believed=None, like=("laplace", "gaussian", "gamma"), **more):
        own = {one.name: one for one in (Liar(SHIPPED[name], lie, drawn, believed) for name in like)}
        found.append(Case(lie, "mechanism", Descent, what, tuple(own), registered=own, **more))

    add("beyond-8", "no noise beyond coordinate 8", nothing_beyond_8, scenario={"task.dimension": 12})
    add("cut-at-3.5", "values cut at 3.5 scales", cut_at(3.5), like=("gaussian",))
    add("cut-at-5", "values cut at 5 scales", cut_at(5.0), like=("gaussian",))
    add("cut-at-6", "values cut at 6 scales", cut_at(6.0), like=("laplace", "gamma"))
    add("cut-at-12", "values cut at 12 scales", cut_at(12.0), like=("laplace", "gamma"))
    add("half-below", "half the noise below a scale of .4", half_below(0.4))
    add("half-between", "half the noise between scales of .2 and .45", half_between(0.2, 0.45))
    add("half-of-little", "half the noise of a few numbers", half_of_little)
    add("half-in-3", "half the noise in 3 dimensions", half_in_3_dimensions)
    add("half-of-vectors", "half the noise of a single vector", half_of_vectors)
    add("atom", "no noise one time in two thousand", sometimes_nothing)
    add("grid", "noise on a grid", on_a_grid)
    add("alike-in-3", "two coordinates of three alike", alike_in_3)
    add("too-little", "nine tenths of the noise", too_little)
    add("less-far-out", "values far out drawn in", less_far_out, like=("laplace", "gamma"))
    add(
        "loss-below",
        "the loss of 1.5 times the multiplier below .5",
        believed=half_more_below(0.5),
        privacy={"multiplier": 0.45},
    )
    add("loss-between", "the loss of a multiplier of 4.4 from 2.9 on", believed=half_more_between(2.9, 4.4))
    add("loss-in-3", "the loss of 1.5 times the multiplier in 3 dimensions", believed=half_more_in_3, like=("gamma",))
    return found


MECHANISM = liars()
