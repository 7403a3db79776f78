"""Epsilon of composed releases, against published closed forms and independently computed brackets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hushnet.protocols.privacy import loss_distribution
from hushnet.protocols.privacy.accounting import (
    Charge,
    advanced_composition_bound,
    basic_composition_bound,
    claimed,
    gaussian_bound,
    verified,
)
from hushnet.protocols.privacy.composition import (
    advanced_composition,
    gaussian,
    gaussian_epsilon,
    gaussian_epsilons,
    gaussian_mu,
    three_way_bounds,
)
from scipy.stats import norm

EXACT = 1e-9


def laplace_charge(multiplier: float, sampling: float = 1.0) -> Charge:
    return Charge("laplace", multiplier, sampling, multiplier, 1 / multiplier, 0.0)


def gaussian_charge(multiplier: float, sampling: float = 1.0, epsilon: float = 0.1, delta: float = 1e-7) -> Charge:
    return Charge("gaussian", multiplier, sampling, multiplier, epsilon, delta)


def gamma_charge(multiplier: float, sampling: float = 1.0) -> Charge:
    return Charge("gamma", multiplier, sampling, multiplier, 1 / multiplier, 0.0)


PLAIN = Charge("none", 0.0, 1.0, 0.0, math.inf, 0.0)
PUBLIC = Charge("public", math.inf, 1.0, math.inf, 0.0, 0.0)


@pytest.mark.parametrize(
    ("epsilon", "count", "bounds"),
    [(0.1, 10, (1.0, 0.9337017034, 1.0499583750)), (0.01, 50, (0.5, 0.1631603895, 0.2261067769))],
)
def test_three_bounds_of_bellet_2018_theorem_1_at_delta_exp_minus_5(
    epsilon: float, count: int, bounds: tuple[float, float, float]
) -> None:
    # Theorem 1 with the braces of the third term around the whole sum.
    assert three_way_bounds([epsilon] * count, math.exp(-5)) == pytest.approx(bounds, rel=1e-9, abs=5e-11)
    assert three_way_bounds([epsilon], math.exp(-5), [count]) == pytest.approx(bounds, rel=1e-9, abs=5e-11)


@pytest.mark.parametrize(
    ("epsilons", "delta", "expected"),
    [
        ([0.1] * 100, 1e-5, 5.298109661767),
        ([0.05] * 1000, 1e-6, 9.561030329767),
        ([0.1, 0.2, 0.05, 0.4, 0.01] * 20, 1e-5, 11.998328019646),
    ],
)
def test_three_way_minimum_of_kairouz_oh_viswanath_2015(epsilons: list[float], delta: float, expected: float) -> None:
    assert advanced_composition(epsilons, delta) == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize(
    ("multipliers", "delta", "expected"),
    [
        ([1.0], 1e-5, 4.377178095681),
        ([20.0] * 1000, 1e-6, 8.306225049955),
        ([1.0, 2.0, 4.0, 8.0] * 5, 1e-5, 13.723691925976),
    ],
)
def test_gaussian_releases_follow_the_curve_of_balle_wang_2018(
    multipliers: list[float], delta: float, expected: float
) -> None:
    assert gaussian(multipliers, delta) == pytest.approx(expected, rel=EXACT)
    histogram = {gaussian_charge(multiplier): multipliers.count(multiplier) for multiplier in multipliers}
    assert verified(histogram, delta) == gaussian_bound(histogram, delta) == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5, 0.2])
def test_many_gaussian_epsilons_are_those_of_each(delta: float) -> None:
    mus = np.array([0.0, 1e-6, 0.01, 0.5, 1.0, 5.0, 30.0, math.inf])
    each = [gaussian_epsilon(mu, delta) for mu in mus.tolist()]
    assert gaussian_epsilons(mus, delta).tolist() == pytest.approx(each, rel=1e-9)


@pytest.mark.parametrize("mu", [0.05, 1.0, 7.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-2])
def test_gaussian_epsilon_solves_its_equation_and_mu_inverts_it(mu: float, delta: float) -> None:
    eps = gaussian_epsilon(mu, delta)
    if eps > 0:  # Balle, Wang 2018, equation (6), written with survival functions
        curve = norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu)
        assert curve == pytest.approx(delta, rel=1e-7)
        assert gaussian_mu(eps, delta) == pytest.approx(mu, rel=EXACT)
    else:
        assert 2 * norm.cdf(mu / 2) - 1 <= delta


def test_a_single_laplace_release_has_a_closed_form() -> None:
    # 1/b + 2 log(1 - delta), from delta(eps) = 1 - exp((eps - 1/b) / 2)
    assert verified({laplace_charge(1.0): 1}, 1e-3) == pytest.approx(0.997998999333, rel=EXACT)
    assert verified({laplace_charge(1.0): 1}, 0.5) == 0.0


def test_a_hundred_laplace_releases_lie_between_optimistic_and_pessimistic_composition() -> None:
    assert 4.2201237 <= verified({laplace_charge(10.0): 100}, 1e-5) <= 4.2203473 * (1 + 1e-6)


def test_heterogeneous_laplace_releases_lie_between_optimistic_and_pessimistic_composition() -> None:
    histogram = {laplace_charge(5 * 1.02**step): 1 for step in range(100)}
    assert 4.0967 <= verified(histogram, 1e-5) <= 4.14371


def randomised_responses(epsilon: float, count: int, level: int) -> float:
    """Delta at (count - 2 level) epsilon of composed randomised responses: Kairouz, Oh, Viswanath 2015, Theorem 3.3."""
    total = (1 + math.exp(epsilon)) ** count
    weights = [math.comb(count, lost) for lost in range(level)]
    excess = [
        math.exp((count - lost) * epsilon) - math.exp((count - 2 * level + lost) * epsilon) for lost in range(level)
    ]
    return math.fsum(w * e for w, e in zip(weights, excess, strict=True)) / total


@pytest.mark.parametrize(("epsilon", "count", "level"), [(0.1, 60, 15), (0.5, 30, 4), (2.0, 12, 1), (0.02, 500, 200)])
def test_equal_gamma_releases_follow_the_optimal_composition_of_kairouz_oh_viswanath_2015(
    epsilon: float, count: int, level: int
) -> None:
    delta = randomised_responses(epsilon, count, level)
    value = verified({gamma_charge(1 / epsilon): count}, delta)
    assert (count - 2 * level) * epsilon * (1 - 1e-9) <= value <= (count - 2 * level) * epsilon * (1 + 1e-4)


def test_poisson_subsampled_gaussian_releases_are_amplified() -> None:
    # q = .01, multiplier 1, 1000 releases: established with two accountants
    assert verified({gaussian_charge(1.0, 0.01): 1000}, 1e-5) == pytest.approx(1.8282, abs=1e-3)


@pytest.mark.parametrize(
    "histogram",
    [
        {laplace_charge(0.1): 10},
        {laplace_charge(0.01): 20},
        {laplace_charge(1e-6): 5, laplace_charge(100.0): 50},
        {laplace_charge(1.0): 1, laplace_charge(50.0): 200},
        {laplace_charge(100.0): 10000},
        {laplace_charge(0.001, 0.001): 1000},
        {laplace_charge(2.0, 0.05): 40, gaussian_charge(3.0): 5, gaussian_charge(1.0, 0.02): 30},
        {gaussian_charge(5.0): 8, laplace_charge(8.0): 12},
        {gamma_charge(3.0 * 1.02**step): 1 for step in range(100)},
        {gamma_charge(0.001): 3, gamma_charge(2.0, 0.05): 40, gaussian_charge(3.0): 5},
    ],
)
@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12])
def test_verified_is_below_kairouz_is_below_basic(histogram: dict[Charge, int], delta: float) -> None:
    assert (
        verified(histogram, delta)
        <= advanced_composition_bound(histogram, delta)
        <= basic_composition_bound(histogram, delta)
        < math.inf
    )


def test_large_losses_are_composed_to_within_a_percent_of_basic_composition() -> None:
    # Each release loses 1/b - 1 + exp(-1/b) on average, which bounds epsilon at a small delta from below.
    assert 0.99 * 2000 <= verified({laplace_charge(0.01): 20}, 1e-5) <= 2000
    assert 10 * (10 - 1) <= verified({laplace_charge(0.1): 10}, 1e-5) <= 100


def test_the_grid_of_scales_only_ever_adds_to_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tuple((loss_distribution.Part("laplace", 20 * 1.001**step), 1) for step in range(140))
    on_grid = loss_distribution.composed_epsilon(parts, 1e-5)
    rounded = loss_distribution.on_grid(parts)
    assert len(rounded) < len(parts)
    assert sum(count for _, count in rounded) == len(parts)
    monkeypatch.setattr(loss_distribution, "FINE_SCALES", 0)
    coarse = loss_distribution.composed_epsilon(parts, 1e-5)
    monkeypatch.setattr(loss_distribution, "EXACT_SCALES", 1000)
    exact = loss_distribution.composed_epsilon(parts, 1e-5)
    assert exact < on_grid < coarse < 1.015 * exact


def test_an_unprotected_release_makes_everything_infinite() -> None:
    for charge in (PLAIN, laplace_charge(1.0)._replace(multiplier=0.0), gaussian_charge(1.0)._replace(multiplier=0.0)):
        histogram = {charge: 1, laplace_charge(10.0): 2}
        assert (
            verified(histogram, 1e-5)
            == advanced_composition_bound(histogram, 1e-5)
            == basic_composition_bound(histogram, 1e-5)
            == math.inf
        )


def test_nothing_private_costs_nothing() -> None:
    free = laplace_charge(1.0)._replace(multiplier=math.inf)
    for histogram in ({}, {PUBLIC: 7}, {free: 3}, {laplace_charge(1.0): 0}):
        assert verified(histogram, 1e-5) == 0
        assert (
            advanced_composition_bound(histogram, 1e-5)
            == basic_composition_bound(histogram, 1e-5)
            == gaussian_bound(histogram, 1e-5)
            == 0
        )


def test_claims_compose_the_claimed_parameters_whatever_can_be_proved() -> None:
    histogram = {laplace_charge(10.0)._replace(multiplier=0.0): 100}
    assert claimed(histogram, 1e-5, "basic_composition") == pytest.approx(10.0, rel=EXACT)
    assert claimed(histogram, 1e-5, "advanced_composition") == pytest.approx(5.298109661767, rel=EXACT)
    assert claimed(histogram, 1e-5, "verified") == pytest.approx(4.22035, rel=1e-5)
    assert claimed({gaussian_charge(1.0)._replace(multiplier=0.0): 1}, 1e-5, "gaussian") == pytest.approx(
        4.377178095681, rel=EXACT
    )
    assert verified(histogram, 1e-5) == math.inf


def test_claimed_deltas_come_out_of_the_composition_as_in_remark_4() -> None:
    charge = gaussian_charge(5.0, epsilon=0.1, delta=1e-7)
    slack = 1 - (1 - 1e-5) / (1 - 1e-7) ** 50
    assert claimed({charge: 50}, 1e-5, "advanced_composition") == pytest.approx(
        advanced_composition([0.1] * 50, slack), rel=1e-7
    )
    assert claimed({charge: 100}, 1 - (1 - 1e-7) ** 100, "advanced_composition") == pytest.approx(10.0, rel=EXACT)
    assert claimed({charge: 200}, 1e-5, "advanced_composition") == math.inf


def test_sampling_amplifies_pure_releases_by_the_closed_form() -> None:
    # log(1 + q (e^eps - 1)): Balle, Barthe, Gaboardi 2018, Theorem 8
    assert basic_composition_bound({laplace_charge(0.5, 0.1): 3}, 0.0) == pytest.approx(
        3 * math.log1p(0.1 * math.expm1(2)), rel=EXACT
    )


def test_gaussian_releases_share_half_of_delta_under_the_three_way_minimum() -> None:
    # 1 - (1 - slack) prod(1 - delta_k) = delta with slack = 1 - sqrt(1 - delta): Bellet et al. 2018, Remark 4
    slack, share = 1 - math.sqrt(1 - 1e-3), 1 - (1 - 1e-3) ** (1 / 400)
    each = gaussian_epsilon(1 / 50, share)
    assert advanced_composition_bound({gaussian_charge(50.0): 200}, 1e-3) == pytest.approx(
        advanced_composition([each] * 200, slack), rel=1e-9
    )
    assert advanced_composition([each] * 200, slack) < basic_composition_bound({gaussian_charge(50.0): 200}, 1e-3)


@pytest.mark.parametrize(("count", "excess"), [(1, 0.0), (10, 0.025), (100, 0.108), (1000, 0.233)])
def test_sampled_replacement_exceeds_the_best_known_value_by_what_is_documented(count: int, excess: float) -> None:
    replaced, known = (
        verified({gaussian_charge(1.0, 0.1)._replace(adjacency=adjacency): count}, 1e-5)
        for adjacency in ("replace-one", "add-or-remove-one")
    )
    assert replaced / known - 1 == pytest.approx(excess, abs=2e-3)


@pytest.mark.parametrize("adjacency", ["add-or-remove-one", "replace-one"])
def test_a_million_sampled_releases_with_next_to_no_noise_take_a_bounded_grid(
    adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dp_accounting.pld import common
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    composed = DensePLDPmf.self_compose
    sizes: list[int] = []

    def counted(pmf: DensePLDPmf, *given: Any) -> Any:
        low, high = common.compute_self_convolve_bounds(pmf._probs, given[0], 1e-15)
        sizes.append(high - low)
        assert sizes[-1] <= 2**22, "9.5 GiB for 28 million points"
        return composed(pmf, *given)

    monkeypatch.setattr(DensePLDPmf, "self_compose", counted)
    charge = Charge("gaussian", 0.01, 0.01, 0.01, 1.0, 0.0, adjacency)
    epsilon = verified({charge: 10**6}, 1e-5)
    assert 10**6 * 0.01 * 0.5 / 0.01**2 <= epsilon <= advanced_composition_bound({charge: 10**6}, 1e-5)
    assert sizes
