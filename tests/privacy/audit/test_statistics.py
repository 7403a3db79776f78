"""Lower bounds on epsilon from counted trials: against closed forms, and how often they are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hushnet.protocols.privacy.composition import gaussian_epsilon, gaussian_mu
from hushnet.simulator.audit.audit_statistics import (
    Counts,
    Test,
    choose_test,
    counts_of,
    epsilon_bound,
    gdp_bound,
    high_limit,
    low_limit,
)
from scipy.stats import binom, binomtest, norm


def gaussian_ratios(mu, count, rng):
    """Log-likelihood ratios of N(mu, 1) against N(0, 1), under the first and under the second."""
    return tuple(mu * rng.normal(mean, 1, count) - mu * mu / 2 for mean in (mu, 0.0))


def test_limits_are_those_of_clopper_and_pearson():
    for hits, trials in ((0, 20), (3, 20), (20, 20), (117, 1000)):
        exact = binomtest(hits, trials).proportion_ci(0.98, method="exact")
        assert low_limit(hits, trials, 0.01) == pytest.approx(exact.low, abs=1e-12)
        assert high_limit(hits, trials, 0.01) == pytest.approx(exact.high, abs=1e-12)


def test_without_a_false_alarm_the_bound_has_a_closed_form():
    counts = Counts(hits=100, trials=100, false_hits=0, false_trials=100)
    share = 0.005 ** (1 / 100)  # the probability that 100 of 100 speak for with half the level
    assert epsilon_bound(counts, 1e-3, 0.01) == pytest.approx(math.log((share - 1e-3) / (1 - share)))


def test_the_bound_on_mu_is_the_point_of_equal_errors_on_its_curve():
    counts = Counts(hits=800, trials=1000, false_hits=200, false_trials=1000)
    assert gdp_bound(counts, 0.01) == pytest.approx(-2 * norm.ppf(high_limit(400, 2000, 0.01)))
    assert gdp_bound(counts, 0.5) == pytest.approx(2 * norm.ppf(0.8), rel=0.01)


@pytest.mark.parametrize("bound", ["gdp", "clopper-pearson"])
def test_bounds_are_wrong_no_more_often_than_they_say(bound):
    """400 audits of N(0, 1) against N(1, 1) at level .2, seeded; a false alarm has a probability of 1e-6."""
    rng, truth, level = np.random.default_rng(5), gaussian_epsilon(1.0, 0.01), 0.2
    wrong = 0
    for _ in range(400):
        test = choose_test(*gaussian_ratios(1.0, 300, rng), delta=0.01, bound=bound)
        wrong += test.epsilon(0.01, level) > truth
    assert wrong <= binom.isf(1e-6, 400, level)


@pytest.mark.parametrize(("epsilon", "trials", "share"), [(8.0, 1_000, 0.75), (1.0, 100_000, 0.9)])
def test_gaussian_bounds_come_close(epsilon, trials, share):
    """Seeded; over seeds the bound at 8 is .90 +- .05 of the truth, the one at 1 .945 +- .02."""
    mu = gaussian_mu(epsilon, 1e-5)
    test = choose_test(*gaussian_ratios(mu, trials, np.random.default_rng(3)), delta=1e-5, bound="gdp")
    assert share * epsilon <= test.epsilon(1e-5, 0.01) <= epsilon


def test_threshold_and_side_come_from_other_trials_than_are_counted():
    rng = np.random.default_rng(8)
    first, second = gaussian_ratios(2.0, 500, rng)
    usual = choose_test(first, second, delta=1e-3, bound="clopper-pearson")
    first[100:], second[100:] = -first[100:], -second[100:]
    turned = choose_test(first, second, delta=1e-3, bound="clopper-pearson")
    assert (turned.threshold, turned.swapped) == (usual.threshold, usual.swapped)
    assert turned.counts != usual.counts
    assert usual.counts.trials == 400


def test_the_last_bits_of_floating_point_numbers_tell_nothing():
    """Laplace noise around 0 and around .5: both ratios are exactly +-.5 but for their rounding, which differs."""
    rng, shift = np.random.default_rng(1), 0.5
    ratios = [
        np.abs(values - shift) - np.abs(values) for values in (rng.laplace(0, 1, 4000), rng.laplace(shift, 1, 4000))
    ]
    test = choose_test(*ratios, delta=1e-5, bound="clopper-pearson")
    assert 0.2 < test.epsilon(1e-5, 0.01) < shift


def test_a_p_value_is_the_level_at_which_the_bound_passes_a_number():
    test = choose_test(*gaussian_ratios(1.5, 1000, np.random.default_rng(4)), delta=1e-3, bound="clopper-pearson")
    p = test.p_value(1.0, 1e-3)
    assert 0 < p < 1
    assert test.epsilon(1e-3, 1.02 * p) > 1.0 >= test.epsilon(1e-3, p / 1.02)
    assert test.p_value(math.inf, 1e-3) == 1.0


def test_counts_are_taken_on_either_side_of_a_threshold():
    first, second = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.5, -1.0])
    assert counts_of(first, second, 1.2, swapped=False) == Counts(2, 3, 1, 3)
    assert counts_of(first, second, 1.2, swapped=True) == Counts(2, 3, 1, 3)
    assert Test(1.2, False, Counts(2, 3, 1, 3), "gdp").epsilon(1e-5, 0.01) == 0
