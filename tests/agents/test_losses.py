"""Losses of a linear score, and what an agent computes with its own shard."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.losses import (
    LOSSES,
    clipped_gradient,
    local_gradient,
    local_loss,
    public_smoothness,
    spectral_smoothness,
)
from hushnet.agents.tables import Shard

NAMES = sorted(LOSSES)
SMOOTH = sorted(name for name in LOSSES if LOSSES[name].smooth)


def a_shard(seed: int, rows: int = 15, dimension: int = 4, scale: float = 1.0) -> Shard:
    rng = np.random.default_rng(seed)
    return Shard(scale * rng.standard_normal((rows, dimension)), rng.choice([-1.0, 1.0], size=rows))


@pytest.mark.parametrize("name", NAMES)
def test_the_slope_is_the_derivative_of_the_value(name):
    loss = LOSSES[name]
    scores = np.array([-3.1, -1.6, -0.6, 0.3, 0.7, 1.4, 2.9])
    for sign in (-1.0, 1.0):
        labels = np.full_like(scores, sign)
        difference = (loss.value(scores + 1e-6, labels) - loss.value(scores - 1e-6, labels)) / 2e-6
        np.testing.assert_allclose(loss.slope(scores, labels), difference, atol=1e-8)
        difference = (loss.slope(scores + 1e-6, labels) - loss.slope(scores - 1e-6, labels)) / 2e-6
        np.testing.assert_allclose(loss.second_slope(scores, labels), difference, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_is_convex_and_keeps_its_stated_constants(name):
    loss = LOSSES[name]
    scores = np.linspace(-6.0, 6.0, 2001)
    for sign in (-1.0, 1.0):
        labels = np.full_like(scores, sign)
        slopes = loss.slope(scores, labels)
        steps = np.diff(slopes) / np.diff(scores)
        assert steps.min() >= -1e-12
        assert steps.max() <= loss.curvature + 1e-9
        assert steps.max() >= 0.99 * min(loss.curvature, 100.0), "the stated curvature is not the smallest one"
        assert np.abs(slopes).max() <= loss.lipschitz
        assert np.all(loss.value(scores, labels) >= 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_extreme_scores_neither_overflow_nor_lose_the_value(name):
    loss = LOSSES[name]
    scores, labels = np.array([-1e4, 1e4]), np.array([1.0, 1.0])
    hinges = {"smoothed_hinge": [1e4 + 0.5, 0.0], "hinge": [1e4 + 1, 0.0]}
    expected = {"logistic": [1e4, 0.0], "squared": [10001.0**2, 9999.0**2], **hinges}[name]
    np.testing.assert_allclose(loss.value(scores, labels), expected)
    assert np.all(np.isfinite(loss.slope(scores, labels)))


def test_the_smoothed_hinge_follows_its_three_pieces():
    loss = LOSSES["smoothed_hinge"]
    margins = np.array([-2.0, 0.0, 0.25, 1.0, 3.0])
    ones = np.ones(5)
    np.testing.assert_allclose(loss.value(margins, ones), [2.5, 0.5, 0.75**2 / 2, 0.0, 0.0])
    np.testing.assert_allclose(loss.slope(-margins, -ones), [1.0, 1.0, 0.75, 0.0, 0.0])


def test_the_hinge_is_flat_from_its_kink_on():
    loss = LOSSES["hinge"]
    margins = np.array([-2.0, 0.0, 0.75, 1.0, 3.0])
    ones = np.ones(5)
    np.testing.assert_allclose(loss.value(margins, ones), [3.0, 1.0, 0.25, 0.0, 0.0])
    np.testing.assert_allclose(loss.slope(-margins, -ones), [1.0, 1.0, 1.0, 0.0, 0.0])
    assert not loss.smooth


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_without_data_has_neither_loss_nor_gradient_nor_smoothness(name):
    empty, model = Shard(np.empty((0, 3)), np.empty(0)), np.ones(3)
    assert local_loss(model, empty, LOSSES[name], 0.5) == 0.0
    assert not local_gradient(model, empty, LOSSES[name], 0.5).any()
    assert not clipped_gradient(model, empty, LOSSES[name], 0.5, "l1", 1.0).any()
    assert spectral_smoothness(empty.features, LOSSES[name], 0.5) == 0.0


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("rows", [3, 30])
def test_both_smoothness_constants_dominate_the_hessian(name, rows):
    loss, regularisation = LOSSES[name], 0.05
    shard = a_shard(4, rows, dimension=6)
    rng = np.random.default_rng(5)
    spectral = spectral_smoothness(shard.features, loss, regularisation)
    radius = float(np.linalg.norm(shard.features, axis=1).max())
    assert public_smoothness(radius, loss, regularisation) >= spectral
    for _ in range(20):
        scores = shard.features @ (rng.standard_normal(6) * rng.choice([0.01, 1.0]))
        bends = loss.second_slope(scores, shard.labels)
        hessian = shard.features.T @ (bends[:, None] * shard.features) / rows + 2 * regularisation * np.eye(6)
        assert np.linalg.eigvalsh(hessian)[-1] <= spectral * (1 + 1e-12)
