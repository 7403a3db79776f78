"""Paired intervals, Holm's correction and break-even points, against worked examples and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hushnet.simulator.compare import statistics
from hushnet.simulator.compare.statistics import NOTHING, crossings, holm, paired_difference


def rng():
    return np.random.default_rng(7)


def test_the_interval_of_ten_pairs_is_students():
    # Student's own example ("The probable error of a mean", Biometrika 1908): hours of sleep gained by two drugs.
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = paired_difference(first, second)
    assert (found.n, found.method) == (10, "t")
    assert found.mean == pytest.approx(-1.58)
    # R: t.test(extra ~ group, data = sleep, paired = TRUE)
    assert found.p == pytest.approx(0.002833, abs=5e-7)
    assert (found.low, found.high) == pytest.approx((-2.4598858, -0.7001142), abs=5e-8)
    assert found.pairing == pytest.approx((np.var(first, ddof=1) + np.var(second, ddof=1)) / 1.513, rel=1e-3)


def test_an_interval_never_contradicts_its_p_value():
    # 0 on the edge of an interval has probability 0, so that the two must agree in each of 600 draws.
    draws = np.random.default_rng(4)
    for _ in range(600):
        n = int(draws.integers(2, 60))
        found = paired_difference(draws.exponential(size=n) - draws.uniform(0.3, 1.0), np.zeros(n))
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)
        assert found.method == "t"


def test_pairing_takes_out_the_luck_that_both_met():
    # var(luck) = 1, var(own) = 0.01: unpaired 1 + 1.01, paired 0.01; with 1000 pairs the ratio's relative standard
    # error is about 6 %, so 30 % off has a false-alarm probability below 1e-5.
    draws = np.random.default_rng(5)
    luck = draws.normal(size=1000)
    found = paired_difference(luck + 0.1 * draws.normal(size=1000), luck)
    assert found.pairing == pytest.approx(201, rel=0.3)


def test_a_run_that_never_got_there_counts_in_the_sign_test_and_not_in_the_mean():
    ours, theirs = [3, 4, math.inf, 5, 2, 3], [5, 7, math.inf, math.inf, math.inf, 4]
    found = paired_difference(ours, theirs)
    assert (found.n, found.finite, found.theirs_finite) == (6, 5, 3)
    assert found.mean == pytest.approx((-2 - 3 - 1) / 3)
    assert (found.smaller, found.larger) == (5, 0)
    assert found.p == pytest.approx(2 * 0.5**5)  # five decided pairs, all for ours; the tie is set aside
    assert found.method == "sign test"
    assert math.isnan(found.low)
    assert math.isnan(found.pairing)


def test_differences_that_do_not_vary_get_no_t_test():
    found = paired_difference([1, 2, 3], [2, 3, 4])
    assert (found.mean, found.low, found.high, found.p) == (-1, -1, -1, pytest.approx(math.nan, nan_ok=True))
    assert found.method == "nothing to test"
    same = paired_difference([1, 2, 3], [1, 2, 3])
    assert (same.mean, same.method) == (0, "nothing to test")
    assert math.isnan(same.pairing) is False
    assert same.pairing == math.inf


def test_holms_correction_of_a_worked_example():
    # Wright, "Adjusted p-values for simultaneous inference", Biometrics 1992; also R's p.adjust(p, "holm").
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.6, 0.5]), [1.0, 1.0])
    np.testing.assert_allclose(holm([0.01, math.nan, 0.04]), [0.02, math.nan, 0.04])
    assert len(holm([])) == 0


def test_a_break_even_point_is_interpolated_between_its_neighbours():
    (found,) = crossings([0, 1, 3], [[-2.0], [-1.0], [3.0]], log=False, rng=rng())
    assert (found.at, found.after, found.before, found.rising) == (1.5, 1, 3, True)
    assert math.isnan(found.low)
    (found,) = crossings([0.01, 1, 100], [[1.0], [1.0], [-1.0]], log=True, rng=rng())
    assert found.at == pytest.approx(10)
    assert not found.rising
    assert crossings([0, 1], [[1.0], [2.0]], log=False, rng=rng()) == []


@pytest.mark.parametrize(("n", "known"), [(3, False), (5, False), (9, False), (10, True), (20, True)])
def test_a_break_even_point_has_an_interval_only_where_resampled_seeds_cover_it(n, known):
    # As above with n seeds: .72 and .83 of the intervals of 3 and 5 seeds hold the true point, .90 and .94 of 10 and
    # 20. 300 repetitions, seed 12: fewer than 252 at .90 has a probability under 1e-3.
    draws = np.random.default_rng(12)
    x = np.arange(5.0)
    found = [crossings(x, x[:, None] - 2 + 0.5 * draws.normal(size=n), log=False, rng=draws) for _ in range(300)]
    assert all(np.isfinite(each[0].low) == known for each in found)
    if known:
        assert sum(each.low <= 2 <= each.high for (each,) in found) >= 252


class Watched:
    """A generator that notes how many places are drawn at a time."""

    def __init__(self):
        self.inner, self.most = rng(), 0

    def integers(self, *arguments, size, **more):
        self.most = max(self.most, int(np.prod(size)))
        return self.inner.integers(*arguments, size=size, **more)


def test_resamples_are_held_a_few_at_a_time_and_come_to_the_same_numbers(monkeypatch):
    """Break-even points of 26 places and 193 seeds took 180 MiB when all resamples were drawn together."""
    table = np.random.default_rng(2).normal(size=(9, 30)) + np.linspace(-1, 1, 9)[:, None]
    table[4, 7] = np.nan
    monkeypatch.setattr(statistics, "DRAWN", 10**9)
    at_once = crossings(range(9), table, log=False, rng=rng())
    monkeypatch.setattr(statistics, "DRAWN", 9 * 30 * 7)
    watched = Watched()
    assert repr(crossings(range(9), table, log=False, rng=watched)) == repr(at_once)
    assert 0 < watched.most <= 7 * 30
    assert at_once


def test_differences_that_vary_by_rounding_alone_are_one_number():
    found = paired_difference([0.6, 0.7, 0.8], [0.5, 0.6, 0.7])
    assert found.method == NOTHING
    assert found.low == found.high == found.mean == pytest.approx(0.1)
    assert found.pairing == np.inf
    still = paired_difference([0.2, 0.1 + 0.1, 0.3 - 0.1], [0.1, 0.1, 0.1])
    assert np.isnan(still.pairing)
    assert still.low == still.high
