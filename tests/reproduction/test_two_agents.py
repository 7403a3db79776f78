"""Exact expectations in the world of two agents, against drawn noise and against the theorems."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.reproduction import bellet2018_problems
from hushnet.simulator.reproduction.bellet2018_problems import (
    PULL,
    allocated_excess,
    contraction,
    expected_excess,
    noise_bound,
)


def test_the_expected_excess_is_that_of_update_6_with_drawn_noise():
    """20,000 runs of 15 updates of random agents; seed 0, five standard errors: false alarm 6e-7."""
    rng, runs, p, scales = np.random.default_rng(0), 20_000, 3, np.linspace(0.5, 2.0, 15)
    models = np.zeros((runs, 2, p))
    every = np.arange(runs)
    for scale in scales:
        agent = rng.integers(2, size=runs)
        noise = rng.laplace(scale=scale, size=(runs, p))
        models[every, agent] = (models[every, 1 - agent] - PULL * noise) / (1 + PULL)
    apart = ((models[:, 0] - models[:, 1]) ** 2).sum(axis=1)
    excess = (apart + PULL * (models**2).sum(axis=(1, 2))) / 2
    error = excess.std() / np.sqrt(runs)
    assert expected_excess(scales, p) == pytest.approx(excess.mean(), abs=5 * error)


def test_one_update_reaches_the_corrected_bound_and_exceeds_the_printed_one_p_times():
    for p in (1, 7, 100):
        assert expected_excess([0.3], p) == pytest.approx(noise_bound([0.3], p, mended=True), rel=1e-12)
        assert expected_excess([0.3], p) == pytest.approx(p * noise_bound([0.3], p), rel=1e-12)


@pytest.mark.parametrize("pull", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("shape", ["even", "first", "last", "growing", "shrinking"])
def test_the_corrected_bound_is_never_exceeded(monkeypatch, pull, shape):
    monkeypatch.setattr(bellet2018_problems, "PULL", pull)
    steps = np.arange(12.0)
    scales = {
        "even": np.ones(12),
        "first": (steps == 0) * 1.0,
        "last": (steps == 11) * 1.0,
        "growing": 1.5**steps,
        "shrinking": 0.7**steps,
    }[shape]
    assert expected_excess(scales, 4) <= noise_bound(scales, 4, mended=True) * (1 + 1e-12)


def test_without_noise_the_optimum_stays():
    assert expected_excess(np.zeros(5), 3) == 0
    assert 0 < contraction() < 1


def test_late_updates_deserve_more_budget_than_early_ones():
    even, printed, late = (allocated_excess(kind, 8) for kind in ("uniform", "proposition2", "late"))
    assert late < even < printed
