"""Composition reuses what it has composed, and no epsilon depends on what was asked before."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hushnet.protocols.privacy import accounting, composed_losses, loss_distribution
from hushnet.protocols.privacy.accounting import Charge, evaluate, verified
from hushnet.protocols.privacy.charge import ADJACENCIES
from hushnet.protocols.privacy.composed_losses import Masses, Memory
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    """Empty the caches, as in a new process."""
    accounting._verified.cache_clear()
    loss_distribution._single.cache_clear()
    loss_distribution._memory._known.clear()
    loss_distribution._memory._points = 0


def laplace_charge(multiplier: float) -> Charge:
    return Charge("laplace", multiplier, 1.0, multiplier, 1 / multiplier, 0.0)


def spread(count: int) -> dict[Charge, int]:
    return {laplace_charge(20 * 1.003**step): 1 for step in range(count)}


def test_one_more_of_many_scales_composes_one_path_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = Masses.compose

    def counted(one: Masses, other: Masses) -> Masses:
        made = original(one, other)
        sizes.append(len(made.probabilities))
        return made

    monkeypatch.setattr(Masses, "compose", counted)
    histogram = spread(300)
    verified(histogram, 1e-5)
    assert len(sizes) > 60
    for multiplier in (20 * 1.003**300, 20 * 1.003**150.3, 19.0, 20.0):
        before = len(sizes)
        histogram[laplace_charge(multiplier)] = histogram.get(laplace_charge(multiplier), 0) + 1
        verified(histogram, 1e-5)
        assert len(sizes) - before <= 14
        assert sum(sizes[before:]) <= 2**20
    verified(histogram, 1e-5)
    verified(histogram, 1e-7)
    assert len(sizes) - before <= 14


def test_epsilon_does_not_depend_on_what_was_asked_before() -> None:
    fresh = verified(spread(40), 1e-5)
    forget()
    grown = [verified(spread(count), 1e-5) for count in (1, 7, 39, 40)][-1]
    shuffled = dict(sorted(spread(40).items(), reverse=True))
    assert grown == fresh == verified(shuffled, 1e-5)
    forget()
    verified({**spread(60), Charge("gaussian", 3.0, 1.0, 3.0, 1.0, 1e-6): 2}, 1e-5)
    assert verified(spread(40), 1e-5) == fresh


def test_what_was_not_asked_for_the_longest_time_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed_losses, "REMEMBERED", 25)
    memory, made = Memory(), []

    def make(key: str):
        losses = composed_losses.Losses(Masses(0, np.full(10, 0.1), 0.0), None)
        return lambda: made.append(key) or losses

    for key in ("a", "b", "a", "c", "a", "b"):
        memory.recall(key, make(key))
    assert made == ["a", "b", "c", "b"]


def test_masses_read_the_epsilon_that_the_library_reads() -> None:
    for multiplier, count, sampling in ((2.0, 5, 1.0), (0.5, 3, 1.0), (40.0, 100, 1.0), (1.0, 20, 0.1)):
        single = loss_distribution.Part("gaussian", multiplier, sampling).loss().distribution(0.01)
        composed = single.self_compose(count)
        for delta in (0.3, 1e-2, 1e-5, 1e-9):
            epsilon = composed_losses.Losses.of(composed).epsilon(delta, 0.01)
            assert epsilon == pytest.approx(max(composed.get_epsilon_for_delta(delta), 0.0), rel=1e-8, abs=1e-10)


def test_an_infinite_loss_that_is_likelier_than_delta_has_no_epsilon() -> None:
    masses = Masses(-2, np.array([0.2, 0.1, 0.1, 0.2, 0.3]), 0.1)
    assert masses.epsilon(0.05, 1.0) == math.inf
    # At delta .35, .1 + .3 (1 - e^(eps - 2)) + .2 (1 - e^(eps - 1)) has the root; there is nothing to pay at .7.
    assert masses.epsilon(0.35, 1.0) == pytest.approx(math.log(0.25 / (0.3 * math.exp(-2) + 0.2 * math.exp(-1))))
    assert masses.epsilon(0.7, 1.0) == 0.0


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize(("mechanism", "multiplier"), [("laplace", 1e18), ("gaussian", 1e3)])
def test_rarely_sampled_releases_with_much_noise_cost_nothing_and_not_less(
    mechanism: str, multiplier: float, count: int
) -> None:
    # log((1 - q) + q e^eps) by its two terms came to -1.7e-21 a release.
    histogram = {Charge(mechanism, multiplier, 1e-5, multiplier, 1 / multiplier, 0.0): count}
    for which in ("basic_composition", "advanced_composition", "verified"):
        assert 0 <= evaluate(which, histogram, 1e-5, "advanced_composition") < 1e-12


charges = st.builds(
    lambda mechanism, multiplier, sampling, adjacency, dimension: Charge(
        mechanism, multiplier, sampling, multiplier, 1 / multiplier, 0.0, adjacency, dimension
    ),
    st.sampled_from(["laplace", "gaussian", "gamma"]),
    st.floats(-1, 6).map(lambda power: 10**power),
    st.sampled_from([1.0, 1.0, 1.0, 0.3]),
    st.sampled_from(ADJACENCIES),
    st.sampled_from([0, 2, 30]),
)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.dictionaries(charges, st.integers(1, 30), max_size=3), st.sampled_from([0.9, 0.3, 1e-5, 1e-9]))
def test_every_epsilon_is_a_number_from_zero_to_infinity(histogram: dict[Charge, int], delta: float) -> None:
    for which in ("claimed", "basic_composition", "advanced_composition", "gaussian", "verified"):
        for by in (
            ("basic_composition", "advanced_composition", "gaussian", "verified")
            if which == "claimed"
            else ("advanced_composition",)
        ):
            epsilon = evaluate(which, histogram, delta, by)
            assert 0 <= epsilon <= math.inf, (which, by)
            assert math.copysign(1, epsilon) == 1


@pytest.mark.parametrize("delta", [1e-10, 1e-3, 0.3])
def test_losses_that_are_all_larger_by_a_number_have_an_epsilon_that_is_larger_by_it(delta):
    # sum p (1 - e^(epsilon - loss))_+ only depends on epsilon - loss, also where e^-loss is below the smallest double.
    probabilities = np.random.default_rng(3).dirichlet(np.ones(200))
    small, large = (Masses(lowest, probabilities, 1e-12) for lowest in (1_000, 80_000))
    near, far = small.epsilon(delta, 0.01), large.epsilon(delta, 0.01)
    losses = 0.01 * np.arange(80_000, 80_200)
    assert far == pytest.approx(near + 790, abs=1e-9)
    assert 1e-12 + probabilities @ np.maximum(-np.expm1(far - losses), 0.0) == pytest.approx(delta, rel=1e-4)
