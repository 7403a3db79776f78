"""Checks that a mechanism's loss covers what its densities reveal: at a multiplier, a sampling and a dimension."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import math

import numpy as np

from .draw_checks import DEVIATIONS, ROUGHNESS, VECTORS, Array, density, directions, line, ratio_of, require, rng_of
from .gaussian import GaussianLoss
from .mechanism import Noise
from .privacy_loss import PrivacyLoss

SHIFTS = (1.0, -1.0, 0.7, 0.2)
NEAR = 4.0
"""Multiplier up to which shifts of length 1 are looked at: of longer ones, what so many such shifts reveal together."""
LEVELS = 12
INTERVALS = (300, 2500)
"""Points of a loss on its grids."""
DELTAS = (0.1, 1e-3, 1e-5, 1e-6, 1e-9)
NUMBERS = 2_000_000


def check_loss(mechanism: Noise, multiplier: float, sampling: float, dimension: int) -> None:
    """Compare a loss with densities at one multiplier, and what is composed of it with the loss at one sampling.

    The loss is that of noise of this dimension, 0 if it is not known, and that of noise which was not added, whose
    dimension is 0. Raises `MechanismViolation`.
    """
    losses = [mechanism.loss(multiplier, known) for known in sorted({0, dimension})]
    for loss in losses:
        _check_curve(mechanism, loss, multiplier)
        for share in {1.0, sampling}:
            _check_grid(loss, share, multiplier)
    if dimension <= 1:
        _check_on_the_line(mechanism, losses, multiplier)
    else:
        _check_in_space(mechanism, losses, multiplier, dimension)
    for less, more in ((multiplier / 1.1, multiplier), (multiplier, 1.1 * multiplier)):
        one, other = mechanism.loss(less, dimension), mechanism.loss(more, dimension)
        levels = _levels(one)
        ordered = bool((other.delta(levels) <= one.delta(levels) + 1e-9).all())
        require(ordered, f"more noise reveals more, by its loss: at multiplier {more:.6g} than at {less:.6g}")


def _levels(loss: PrivacyLoss) -> Array:
    return np.concatenate([[0.0], np.linspace(0.03, 0.98, LEVELS) * min(loss.extent().largest, 300.0)])


class _Steps:
    """So many shifts of length 1 as are looked at together, and what one of them has to reveal then.

    Where each is (epsilon, delta)-private, k together are so at k epsilon and delta (e^(k epsilon) - 1) / (e^epsilon -
    1): what is found of all gives a least delta of one, which no integral has to find in the differences of two
    densities that are almost the same.
    """

    def __init__(self, multiplier: float) -> None:
        self.count = max(1, math.floor(multiplier / NEAR))

    def check(self, found: Array, error: Array, loss: PrivacyLoss, levels: Array, multiplier: float) -> None:
        """Compare (k,) deltas found at ``count`` times the levels, each less its error, with those of a loss."""
        bound = loss.delta(levels)
        with np.errstate(invalid="ignore", over="ignore"):
            share = np.where(levels > 0, np.expm1(levels) / np.expm1(self.count * levels), 1 / self.count)
        for delta, slack, most, eps in zip(found * share, error * share, bound, levels, strict=True):
            require(
                delta - slack <= most * (1 + 1e-9),
                f"at multiplier {multiplier:.6g} and epsilon {eps:.4g} its densities have delta {delta:.4g}, above the "
                f"{most:.4g} of its loss",
            )


def _check_on_the_line(mechanism: Noise, losses: list[PrivacyLoss], multiplier: float) -> None:
    """Check delta on the line, where it is the integral of the positive part of f(x) - e^epsilon f(x - s)."""
    steps = _Steps(multiplier)
    points, weights = line(multiplier)
    here = density(mechanism, points, multiplier)
    inside = here > 1e-200
    for shift in SHIFTS:
        there = density(mechanism, points - shift * steps.count, multiplier)
        for loss in losses:
            levels = _levels(loss)
            with np.errstate(over="ignore", under="ignore"):
                factors = np.exp(np.minimum(steps.count * levels, 700.0))
                found = np.array([(np.maximum(here - factor * there, 0.0) * weights).sum() for factor in factors])
            steps.check(found, 0.01 * found + ROUGHNESS / 5, loss, levels, multiplier)
    for loss in losses:
        _check_pure(loss, ratio_of(mechanism, points[inside, None], np.ones(1), multiplier), multiplier)


def _check_in_space(mechanism: Noise, losses: list[PrivacyLoss], multiplier: float, dimension: int) -> None:
    """Check delta in more dimensions, where it is a mean over draws of the positive part of 1 - e^(epsilon - L)."""
    steps, count = _Steps(multiplier), min(VECTORS, max(NUMBERS // dimension, 500))
    noise = mechanism.draw((count, dimension), multiplier, rng=rng_of(6, dimension))
    for shift in directions(mechanism, dimension):
        for sign in (1, -1):
            ratio = ratio_of(mechanism, noise, sign * steps.count * shift, multiplier)
            for loss in losses:
                levels = _levels(loss)
                gains = -np.expm1(np.minimum(steps.count * levels[:, None] - ratio, 0.0))
                error = DEVIATIONS * gains.std(axis=1) / math.sqrt(count) + 20 / count
                _check_pure(loss, ratio / steps.count, multiplier)
                steps.check(gains.mean(axis=1), error, loss, levels, multiplier)


def _check_pure(loss: PrivacyLoss, ratio: Array, multiplier: float) -> None:
    largest = float(ratio.max())
    require(
        largest <= loss.pure * (1 + 1e-9) + 1e-12,
        f"its densities have a ratio of e^{largest:.6g} at multiplier {multiplier:.6g}, beyond its epsilon of "
        f"{loss.pure:.6g}",
    )


def _check_curve(mechanism: Noise, loss: PrivacyLoss, multiplier: float) -> None:
    """Check what composition uses of a loss, its epsilons and Gaussian equivalent, against the loss's own deltas."""
    levels = _levels(loss)
    bound = loss.delta(levels)
    require(
        bool(((bound >= 0) & (bound <= 1)).all() and (np.diff(bound) <= 1e-12).all()),
        f"its delta at multiplier {multiplier:.6g} does not fall with epsilon within [0, 1]",
    )
    require(math.isfinite(loss.pure) == mechanism.pure, "its class and its loss disagree about a pure epsilon")
    for delta in DELTAS:
        reached = float(loss.delta(np.array([loss.epsilon(delta)]))[0])
        require(
            reached <= delta * (1 + 1e-6) + 1e-12,
            f"its epsilon at delta {delta:g} and multiplier {multiplier:.6g} has delta {reached:.4g}",
        )
    merged = mechanism.gaussian_multiplier(multiplier)
    if merged is not None:
        least = GaussianLoss(merged).delta(levels)
        require(bool((bound <= least + 1e-9).all()), "its releases reveal more than the Gaussian ones they equal")


def _check_grid(loss: PrivacyLoss, sampling: float, multiplier: float) -> None:
    """Check that the distribution on a grid, which is composed numerically, is never below the loss."""
    levels = _levels(loss)
    least = loss.delta(levels) if sampling == 1 else loss._curve(levels, sampling)
    for points in INTERVALS:
        on_grid = loss.distribution(loss.extent().largest / points, sampling)
        given = np.array(on_grid.get_delta_for_epsilon(levels.tolist()))
        require(
            bool((given >= least * (1 - 1e-6) - 1e-12).all()),
            f"its distribution on a grid, at multiplier {multiplier:.6g} and sampling {sampling:.6g}, is below its "
            "delta",
        )
