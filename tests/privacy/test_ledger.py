"""Counting releases, and refusing those beyond a budget."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols.privacy.budget import Budget, Privacy
from hushnet.protocols.privacy.composition import advanced_composition, gaussian
from hushnet.protocols.privacy.ledger import Ledger
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.protocols.privacy.plans import plan


def laplace_release(agent: int = 0, multiplier: float = 10.0, *, verified: float = 1.0) -> Release:
    return Release(agent, 0.0, "laplace", "l1", 1.0, "clip", verified, multiplier, 1 / multiplier, 0.0, 2)


def gaussian_release(agent: int = 0, multiplier: float = 10.0, *, epsilon: float = 0.1, delta: float = 0.0) -> Release:
    return Release(agent, 0.0, "gaussian", "l2", 1.0, "clip", 1.0, multiplier, epsilon, delta, 2)


def spend(ledger: Ledger, release: Release) -> bool:
    """Reserve and, if granted, commit."""
    granted = ledger.reserve(release)
    if granted:
        ledger.commit(release)
    return granted


def test_a_fresh_release_is_charged_and_the_same_release_sent_again_is_free() -> None:
    ledger, release = Ledger(1), laplace_release()
    assert ledger.commit(release, np.array([1.0]))
    assert not ledger.commit(release, np.array([1.0]))
    assert not ledger.commit(release, np.array([2.0]))
    assert ledger.releases(0) == 1


def test_identical_bytes_are_free_until_something_else_is_sent() -> None:
    ledger, first, second = Ledger(2), np.array([1.0, 2.0]), np.array([1.0, 2.5])
    assert ledger.commit(laplace_release(), first)
    assert not ledger.commit(laplace_release(), first.copy())
    assert ledger.commit(laplace_release(1), first)
    assert ledger.commit(laplace_release(), second)
    assert ledger.commit(laplace_release(), first)
    assert [ledger.releases(agent) for agent in (0, 1)] == [3, 1]


def test_fresh_noise_is_charged_even_if_what_is_sent_of_it_has_the_same_bytes() -> None:
    # Signs of noisy numbers: 100 draws, of which about half repeat the sign before.
    ledger, rng = Ledger(1), np.random.default_rng(3)
    for _ in range(100):
        release = gaussian_release(multiplier=1.0)
        assert ledger.reserve(release)
        assert ledger.commit(release, np.sign(release.perturb(np.array([0.5]), rng=rng)))
    assert ledger.releases(0) == 100


def test_noise_drawn_anew_for_every_neighbour_is_charged_for_every_neighbour() -> None:
    ledger, release = Ledger(1, budget=Budget(epsilon=0.5, delta=0.0, by="basic_composition")), laplace_release()
    assert ledger.reserve(release)
    vectors = [release.perturb(np.zeros(2), rng=np.random.default_rng(seed)) for seed in range(3)]
    assert [ledger.commit(release, vector) for vector in vectors] == [True, False, False]
    assert ledger.epsilon("basic_composition", 0.0)[0] == pytest.approx(0.3)
    assert ledger.commit(release, release.perturb(np.zeros(2), rng=np.random.default_rng(3)))
    assert ledger.epsilon("basic_composition", 0.0)[0] == pytest.approx(0.4)
    assert spend(ledger, laplace_release())
    assert not ledger.reserve(laplace_release())


def test_public_messages_are_free_and_never_refused() -> None:
    ledger = Ledger(1, budget=Budget(epsilon=0.1, delta=0.0))
    assert spend(ledger, laplace_release())
    public = Release.public(0, 0.0, "constant start")
    assert ledger.reserve(public)
    assert not ledger.commit(public, np.zeros(3))
    assert ledger.epsilon("basic_composition", 0.0)[0] == pytest.approx(0.1)


def test_a_plain_message_makes_its_own_sender_infinite() -> None:
    ledger = Ledger(2)
    ledger.commit(Release.plain(1, 0.0), np.zeros(3))
    ledger.commit(laplace_release(0))
    for which in ("claimed", "basic_composition", "advanced_composition", "verified"):
        assert np.isfinite(ledger.epsilon(which, 1e-5)).tolist() == [True, False]


@pytest.mark.parametrize("by", ["basic_composition", "advanced_composition", "verified"])
def test_an_agent_is_refused_before_it_overspends_and_the_others_are_not(by: str) -> None:
    budget = Budget(epsilon=2.0, delta=1e-5, by=by)
    ledger = Ledger(2, budget=budget, claimed_by=by)
    granted = sum(spend(ledger, laplace_release()) for _ in range(100))
    composed = sum if by == "basic_composition" else lambda eps: advanced_composition(eps, 1e-5)
    assert composed([0.1] * granted) <= 2.0 * (1 + 1e-9) < composed([0.1] * (granted + 1))
    assert ledger.epsilon("claimed", 1e-5)[0] <= 2.0 * (1 + 1e-9)
    assert spend(ledger, laplace_release(1))


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("by", ["zcdp", "renyi"])
def test_a_budget_by_a_filter_is_planned_granted_and_stated_alike(mechanism: str, by: str) -> None:
    """A plan spends what the filter grants; the claim never exceeds the budget, nor is it below what is proved."""
    budget = Budget(epsilon=2.0, delta=1e-5, by=by)
    privacy = Privacy(mechanism=mechanism, budget=budget, updates=7, clip=1.0)
    multipliers = plan(privacy, np.array([1, 1, 2, 1, 3, 1, 1]) / 10).multipliers.tolist()
    ledger = Ledger(1, budget=budget, claimed_by=by)
    make = gaussian_release if mechanism == "gaussian" else laplace_release
    assert all(spend(ledger, make(multiplier=multiplier)) for multiplier in multipliers)
    assert not spend(ledger, make(multiplier=200 * max(multipliers) / 7))
    stated, proved = (ledger.epsilon(which, 1e-5)[0] for which in ("claimed", "verified"))
    assert proved / (1 + 2e-4) <= stated <= 2.0 * (1 + 1e-9)
    assert stated > (1.99 if by == "zcdp" else 1.6)


@pytest.mark.parametrize("by", ["gaussian", "verified"])
def test_gaussian_releases_are_refused_at_the_exact_curve(by: str) -> None:
    ledger = Ledger(1, budget=Budget(epsilon=1.0, delta=1e-5, by=by))
    granted = sum(spend(ledger, gaussian_release(multiplier=20.0)) for _ in range(200))
    assert gaussian([20.0], 1e-5, [granted]) <= 1.0 < gaussian([20.0], 1e-5, [granted + 1])


def test_a_budget_by_the_gaussian_curve_refuses_laplace_releases() -> None:
    assert not Ledger(1, budget=Budget(epsilon=1.0, delta=1e-5, by="gaussian")).reserve(laplace_release())


def test_claimed_deltas_use_up_the_budget_too() -> None:
    ledger = Ledger(1, budget=Budget(epsilon=100.0, delta=1e-5, by="basic_composition"))
    assert sum(spend(ledger, gaussian_release(delta=3e-6)) for _ in range(10)) == 3


def test_an_agent_stops_after_its_planned_number_of_updates() -> None:
    ledger = Ledger(2, budget=Budget(epsilon=1.0, delta=1e-5, by="verified"), updates=4)
    assert [spend(ledger, laplace_release()) for _ in range(6)] == [True] * 4 + [False] * 2
    assert spend(ledger, laplace_release(1))


def test_a_reservation_holds_budget_until_it_is_cancelled() -> None:
    ledger = Ledger(1, budget=Budget(epsilon=0.2, delta=0.0, by="basic_composition"))
    first, second, third = (laplace_release() for _ in range(3))
    assert ledger.reserve(first)
    assert ledger.reserve(first)
    assert ledger.reserve(second)
    assert not ledger.reserve(third)
    ledger.cancel(second)
    ledger.cancel(second)
    assert ledger.reserve(third)
    assert ledger.releases(0) == 0
    assert ledger.verified(0.0)[0] == 0


def test_what_is_sent_without_reservation_is_charged_all_the_same() -> None:
    ledger = Ledger(1, budget=Budget(epsilon=0.1, delta=0.0))
    assert [ledger.commit(laplace_release()) for _ in range(3)] == [True] * 3
    assert not ledger.reserve(laplace_release())
    assert ledger.epsilon("basic_composition", 0.0)[0] == pytest.approx(0.3)


def test_strict_makes_assumed_public_inputs_infinite_but_leaves_the_claim() -> None:
    ledger = Ledger(2, assumed_public=("step size",), strict=True, claimed_by="basic_composition")
    ledger.commit(laplace_release())
    assert ledger.epsilon("claimed", 1e-5).tolist() == [pytest.approx(0.1), 0.0]
    for which in ("basic_composition", "advanced_composition", "verified", "gaussian"):
        assert np.isinf(ledger.epsilon(which, 1e-5)).all()


def test_epsilon_follows_later_releases_and_is_composed_once_per_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    from hushnet.protocols.privacy import ledger as module

    calls = []
    original = module.evaluate
    monkeypatch.setattr(module, "evaluate", lambda *args: calls.append(args) or original(*args))
    ledger = Ledger(50)
    for agent in range(50):
        ledger.commit(laplace_release(agent))
    before = ledger.epsilon("basic_composition", 0.0)
    ledger.epsilon("basic_composition", 0.0)
    ledger.commit(laplace_release(7))
    after = ledger.epsilon("basic_composition", 0.0)
    assert len(calls) == 2
    assert before.tolist() == [0.1] * 50
    assert after[7] == pytest.approx(0.2)
    assert before[7] == 0.1


def test_unknown_epsilons_are_refused() -> None:
    ledger = Ledger(1)
    ledger.commit(laplace_release())
    with pytest.raises(ValueError, match="claimed, basic_composition, advanced_composition, gaussian, verified"):
        ledger.epsilon("renyi", 1e-5)  # type: ignore[arg-type]


def test_the_frame_has_one_row_per_agent_and_charge() -> None:
    ledger = Ledger(3)
    for multiplier in (10.0, 10.0, 5.0):
        ledger.commit(laplace_release(2, multiplier))
    ledger.commit(Release.plain(0, 0.0))
    frame = ledger.to_frame()
    assert frame[["agent", "mechanism", "multiplier", "count"]].to_numpy().tolist() == [
        [0, "none", 0.0, 1],
        [2, "laplace", 5.0, 1],
        [2, "laplace", 10.0, 2],
    ]
    assert list(frame.columns) == list(Ledger(1).to_frame().columns)
    assert frame["sensitivity_source"].tolist()[1:] == ["clip", "clip"]


def test_new_bytes_under_a_release_whose_first_bytes_were_free_are_charged() -> None:
    ledger = Ledger(1)
    vector = np.ones(2)
    assert ledger.commit(laplace_release(), vector)
    second = laplace_release()
    assert not ledger.commit(second, vector)
    assert ledger.commit(laplace_release(), 5 * vector)
    assert not ledger.commit(second, vector)
    assert ledger.commit(second, 2 * vector)
    assert not ledger.commit(second, 3 * vector)
    assert ledger.releases(0) == 3
