"""What every mechanism, shipped or a user's, has to fulfil before anything is verified about it.

Its draws are compared with its density, its density with its loss, and the loss with what is composed of it. All draws
are seeded, so that a mechanism passes always or never; the false alarm of each comparison is `FALSE_ALARM`, of which
there are below 1,000.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .base import Mechanism, Noise
from .gaussian import GaussianLoss
from .loss import PrivacyLoss
from .registry import shipped

SEED = 1706
FALSE_ALARM = 1e-9
DRAWS = 1_000_000
"""Numbers per comparison on the line: scales that are 2 % off are found out."""
VECTORS = 40_000
DEVIATIONS = 6.2
"""Standard errors that a mean exceeds with a probability of `FALSE_ALARM`, both ways."""
REACH, POINTS = 30.0, 100_001
"""The line is integrated over sinh(u), abs(u) <= REACH, which holds tails as heavy as x^-1.5."""
ROUGHNESS = 1e-3
"""Error of that integral for a density with jumps."""
MULTIPLIERS = (0.5, 2.0, 20.0)
SHIFTS = (1.0, -1.0, 0.7, 0.2)


class MechanismViolation(ValueError):
    """A mechanism is not what it says."""


def check_mechanism(mechanism: Noise) -> None:
    """Check that a mechanism's draws, density and loss belong together.

    Parameters
    ----------
    mechanism : Noise
        It is not changed, and need not be registered.

    Raises
    ------
    MechanismViolation
        With one sentence that says what does not fit.
    """
    _check_repeatable(mechanism)
    _check_scaling(mechanism)
    _check_independent(mechanism)
    for scale in (0.5, 3.0):
        _check_draws_on_the_line(mechanism, scale)
    for dimension in (2, 8):
        _check_draws(mechanism, dimension)
    for multiplier in MULTIPLIERS:
        for dimension in (0, 1):
            _check_loss_on_the_line(mechanism, multiplier, dimension)
        for dimension in (2, 8):
            _check_loss(mechanism, multiplier, dimension)
        _check_composed(mechanism, multiplier)
    _check_order(mechanism)


_doubts: dict[Mechanism, str] = {}


def unproved(mechanism: Mechanism) -> str:
    """Why nothing can be verified about a mechanism's releases; empty if it is shipped or has passed here.

    A mechanism is checked once in a process.
    """
    if shipped(mechanism) or not isinstance(mechanism, Noise):
        return ""
    if mechanism not in _doubts:
        _doubts[mechanism] = _doubt(mechanism)
    return _doubts[mechanism]


def proved(mechanism: Mechanism) -> bool:
    """Whether a mechanism is shipped or has passed here."""
    return not unproved(mechanism)


def _doubt(mechanism: Noise) -> str:
    try:
        check_mechanism(mechanism)
    except MechanismViolation as violation:
        return f"{mechanism.name} noise is not what it says: {violation}"
    except Exception as error:
        text = " ".join(str(error).split())
        return f"{mechanism.name} noise could not be checked: it raises {type(error).__name__}: {text}"
    return ""


def _rng(*key: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *key])


def _require(condition: bool | np.bool_, sentence: str) -> None:
    if not condition:
        raise MechanismViolation(sentence)


def _check_repeatable(mechanism: Noise) -> None:
    """The same stream gives the same noise, and going on gives other noise, in the shape that was asked for."""
    for size in ((5,), (4, 3)):
        first, rng = mechanism.draw(size, 1.5, rng=_rng(1)), _rng(1)
        same, other = mechanism.draw(size, 1.5, rng=rng), mechanism.draw(size, 1.5, rng=rng)
        _require(first.shape == size, f"noise of shape {size} was asked for, and {first.shape} was drawn")
        _require(np.isfinite(first).all(), "noise is not finite")
        _require(np.array_equal(first, same), "the same stream does not give the same noise")
        _require(not np.any(first == other), "a stream gives the same noise again")
        _require(len(np.unique(first)) == first.size, "coordinates share one draw")


def _check_scaling(mechanism: Noise) -> None:
    """Scaling noise and sensitivity alike changes nothing: f(x; b) = f(x / b; 1) / b^p."""
    for dimension in (1, 3):
        noise = mechanism.draw((50, dimension), 1.0, rng=_rng(2))
        for scale in (1e-3, 0.5, 40.0):
            expected = mechanism.log_density(noise, 1.0) - dimension * math.log(scale)
            given = mechanism.log_density(noise * scale, scale)
            _require(given.shape == (50,), f"the density of (50, {dimension}) noise has the shape {given.shape}")
            close = np.allclose(given, expected, rtol=1e-9, atol=1e-6)
            _require(close, f"its density at scale {scale:g} is not its density at scale 1, stretched")


def _check_independent(mechanism: Noise) -> None:
    """The density of independent coordinates is the product of their densities."""
    if not mechanism.independent:
        return
    noise = mechanism.draw((50, 3), 1.5, rng=_rng(7))
    product = sum(mechanism.log_density(noise[:, [rank]], 1.5) for rank in range(3))
    _require(np.allclose(mechanism.log_density(noise, 1.5), product), "its coordinates are not independent")


def _line(scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points of the line and their weights."""
    u = np.linspace(-REACH, REACH, POINTS)
    return scale * np.sinh(u), scale * np.cosh(u) * (u[1] - u[0])


def _density(mechanism: Noise, points: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return np.exp(mechanism.log_density(points[:, None], scale))


def _check_draws_on_the_line(mechanism: Noise, scale: float) -> None:
    """The largest distance between two distribution functions stays within Dvoretzky, Kiefer, Wolfowitz, Massart."""
    points, weights = _line(scale)
    masses = _density(mechanism, points, scale) * weights
    total = float(masses.sum())
    _require(abs(total - 1) < ROUGHNESS, f"its density at scale {scale:g} adds up to {total:.6g} on the line")
    below = np.cumsum(masses) - masses / 2
    noise = np.sort(mechanism.draw((DRAWS, 1), scale, rng=_rng(3))[:, 0])
    ranks = (np.arange(DRAWS) + 0.5) / DRAWS
    apart = float(np.abs(np.interp(noise, points, below) - ranks).max())
    admissible = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * DRAWS)) + ROUGHNESS / 5
    _require(
        apart <= admissible,
        f"the draws at scale {scale:g} and the density have distribution functions {apart:.4f} apart, where chance "
        f"allows {admissible:.4f}",
    )


def _ratio(
    mechanism: Noise, noise: NDArray[np.float64], shift: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """Log likelihood ratio of noise around 0 and around a shift."""
    with np.errstate(invalid="ignore"):
        ratio = mechanism.log_density(noise, scale) - mechanism.log_density(noise - shift, scale)
    return np.where(np.isnan(ratio), -np.inf, ratio)  # outside both


def _directions(mechanism: Noise, dimension: int) -> Iterator[NDArray[np.float64]]:
    """Shifts of length 1: along an axis, along a diagonal, in any direction; and a shorter one."""
    axis, diagonal = np.zeros(dimension), np.ones(dimension)
    axis[0] = 1.0
    anywhere = _rng(4).normal(size=dimension)
    for shift in (axis, diagonal, anywhere, 0.4 * axis):
        length = 0.4 if shift[0] == 0.4 else 1.0
        yield length * shift / mechanism.length(shift)


def _check_draws(mechanism: Noise, dimension: int) -> None:
    """Draws around a shift, weighed by the likelihood ratio, are like draws around 0: P(L <= a) = E_Q[e^L; L <= a]."""
    rng = _rng(5, dimension)
    for shift in _directions(mechanism, dimension):
        around = mechanism.draw((VECTORS, dimension), 1.5, rng=rng)
        moved = mechanism.draw((VECTORS, dimension), 1.5, rng=rng) + shift
        here, there = _ratio(mechanism, around, shift, 1.5), _ratio(mechanism, moved, shift, 1.5)
        for level in np.quantile(here[np.isfinite(here)], (0.2, 0.5, 0.8, 0.95)):
            weighed = np.where(there <= level, np.exp(np.minimum(there, level)), 0.0)
            counted = (here <= level).astype(float)
            apart = weighed.mean() - counted.mean()
            error = math.sqrt((weighed.var() + counted.var()) / VECTORS)
            _require(
                abs(apart) <= DEVIATIONS * error + 1e-9,
                f"draws in {dimension} dimensions do not have the ratio of its densities: an event of probability "
                f"{counted.mean():.4f} should have {weighed.mean():.4f}",
            )


def _levels(loss: PrivacyLoss) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.linspace(0.05, 0.98, 7) * min(loss.extent().largest, 300.0)])


def _check_loss_on_the_line(mechanism: Noise, multiplier: float, dimension: int) -> None:
    """Check delta on the line, where it is the integral of the positive part of f(x) - e^epsilon f(x - s)."""
    loss = mechanism.loss(multiplier, dimension)
    levels = _levels(loss)
    bound = loss.delta(levels)
    points, weights = _line(multiplier)
    here = _density(mechanism, points, multiplier)
    for shift in SHIFTS:
        with np.errstate(over="ignore", under="ignore"):
            there = _density(mechanism, points - shift, multiplier)
            found = np.array([(np.maximum(here - np.exp(eps) * there, 0.0) * weights).sum() for eps in levels])
        _compare(found, 0.01 * found + ROUGHNESS / 5, bound, levels, multiplier)
    _check_pure(loss, _ratio(mechanism, points[here > 1e-200, None], np.ones(1), multiplier), multiplier)


def _check_loss(mechanism: Noise, multiplier: float, dimension: int) -> None:
    """Check delta in more dimensions, where it is a mean over draws of the positive part of 1 - e^(epsilon - L)."""
    loss = mechanism.loss(multiplier, dimension)
    levels = _levels(loss)
    bound = loss.delta(levels)
    noise = mechanism.draw((VECTORS, dimension), multiplier, rng=_rng(6, dimension))
    for shift in _directions(mechanism, dimension):
        for ratio in (_ratio(mechanism, noise, shift, multiplier), _ratio(mechanism, noise, -shift, multiplier)):
            gains = -np.expm1(np.minimum(levels[:, None] - ratio, 0.0))
            error = DEVIATIONS * gains.std(axis=1) / math.sqrt(VECTORS) + 20 / VECTORS
            _compare(gains.mean(axis=1), error, bound, levels, multiplier)
            _check_pure(loss, ratio, multiplier)


def _check_pure(loss: PrivacyLoss, ratio: NDArray[np.float64], multiplier: float) -> None:
    largest = float(ratio.max())
    _require(
        largest <= loss.pure * (1 + 1e-9) + 1e-12,
        f"its densities have a ratio of e^{largest:.6g} at multiplier {multiplier:g}, beyond its epsilon of "
        f"{loss.pure:.6g}",
    )


def _compare(
    found: NDArray[np.float64],
    error: NDArray[np.float64],
    bound: NDArray[np.float64],
    levels: NDArray[np.float64],
    multiplier: float,
) -> None:
    for delta, slack, most, eps in zip(found, error, bound, levels, strict=True):
        _require(
            delta - slack <= most,
            f"at multiplier {multiplier:g} and epsilon {eps:.4g} its densities have delta {delta:.4g}, above the "
            f"{most:.4g} of its loss",
        )


def _check_composed(mechanism: Noise, multiplier: float) -> None:
    """What is composed is never below the loss: its epsilons, its grid, its Gaussian equivalent."""
    for dimension in (0, 3):
        loss = mechanism.loss(multiplier, dimension)
        levels = _levels(loss)
        bound = loss.delta(levels)
        _require(
            bool(((bound >= 0) & (bound <= 1)).all() and (np.diff(bound) <= 1e-12).all()),
            f"its delta at multiplier {multiplier:g} does not fall with epsilon within [0, 1]",
        )
        _require(math.isfinite(loss.pure) == mechanism.pure, "its class and its loss disagree about a pure epsilon")
        for delta in (0.1, 1e-3, 1e-6):
            reached = float(loss.delta(np.array([loss.epsilon(delta)]))[0])
            _require(
                reached <= delta * (1 + 1e-6) + 1e-12,
                f"its epsilon at delta {delta:g} and multiplier {multiplier:g} has delta {reached:.4g}",
            )
        _check_grid(loss, levels, bound, multiplier)
        merged = mechanism.gaussian_multiplier(multiplier)
        if merged is not None:
            least = GaussianLoss(merged).delta(levels)
            _require(bool((bound <= least + 1e-9).all()), "its releases reveal more than the Gaussian ones they equal")


def _check_grid(loss: PrivacyLoss, levels: NDArray[np.float64], bound: NDArray[np.float64], multiplier: float) -> None:
    interval = loss.extent().largest / 300
    for sampling in (1.0, 0.3):
        on_grid = loss.distribution(interval, sampling)
        given = np.array(on_grid.get_delta_for_epsilon(levels.tolist()))
        least = bound if sampling == 1 else loss._curve(levels, sampling)
        _require(
            bool((given >= least * (1 - 1e-6) - 1e-12).all()),
            f"its distribution on a grid, at multiplier {multiplier:g} and sampling {sampling:g}, is below its delta",
        )


def _check_order(mechanism: Noise) -> None:
    """More noise never reveals more: multipliers are rounded down where there are many."""
    for dimension in (0, 1, 3, 8):
        levels = _levels(mechanism.loss(0.5, dimension))
        curves = [
            mechanism.loss(multiplier, dimension).delta(levels) for multiplier in (0.5, 0.6, 1.0, 1.01, 3.0, 20.0)
        ]
        for less, more in pairwise(curves):
            _require(bool((more <= less + 1e-9).all()), "more noise reveals more, by its loss")
