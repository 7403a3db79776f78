"""Parameters of private runs, and how a budget becomes noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hushnet.protocols.privacy.accounting import Charge, claimed, verified
from hushnet.protocols.privacy.budget import Allocation, Privacy
from hushnet.protocols.privacy.composition import advanced_composition, gaussian, gaussian_epsilon
from hushnet.protocols.privacy.ledger import Ledger
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.protocols.privacy.plans import Plan, allocation_weights, plan
from pydantic import ValidationError

BUDGET = {"epsilon": 1.0, "delta": 1e-3}
KINDS: list[Allocation] = ["uniform", "proposition2", "late"]


def private(**fields: Any) -> Privacy:
    return Privacy(**{"mechanism": "laplace", "clip": 1.0, **fields})


def weights(kind: Allocation, updates: int = 20) -> np.ndarray:
    return allocation_weights(kind, updates, contraction=0.99, indices=10 * np.arange(updates))


def histogram(mechanism: str, spread: Plan) -> dict[Charge, int]:
    counts: dict[Charge, int] = {}
    for eps, delta, multiplier in zip(spread.epsilons, spread.deltas, spread.multipliers, strict=True):
        charge = Charge(mechanism, float(multiplier), 1.0, float(multiplier), float(eps), float(delta))
        counts[charge] = counts.get(charge, 0) + 1
    return counts


def test_proposition_2_spends_early_and_the_corrected_order_late() -> None:
    indices, contraction = np.array([3, 10, 50]), 0.95
    printed = allocation_weights("proposition2", 3, contraction=contraction, indices=indices)
    late = allocation_weights("late", 3, contraction=contraction, indices=indices)
    # Bellet et al. 2018, Proposition 2: epsilon_t proportional to the cube root of C^t
    assert printed == pytest.approx(contraction ** (indices / 3) / (contraction ** (indices / 3)).sum(), rel=1e-12)
    assert printed[1:] / printed[:-1] == pytest.approx(late[:-1] / late[1:], rel=1e-12)


def test_the_corrected_order_minimises_the_corrected_theorem_2() -> None:
    # sum C^(T-1-t) / eps_t^2 at sum eps_t = 1; false alarm: none, the minimiser of a convex function is unique
    indices, contraction = np.arange(12), 0.8
    best = allocation_weights("late", 12, contraction=contraction, indices=indices)
    rng = np.random.default_rng(3)
    factors = contraction ** (11.0 - indices)
    for _ in range(200):
        other = best * np.exp(0.1 * rng.normal(size=12))
        assert (factors / best**2).sum() <= (factors / (other / other.sum()) ** 2).sum()


@pytest.mark.parametrize(("contraction", "indices"), [(1.5, [0, 1]), (0.0, [0, 1]), (0.5, [0, 1, 2])])
def test_an_allocation_out_of_range_is_refused(contraction: float, indices: list[int]) -> None:
    with pytest.raises(ValueError, match="needs a contraction in"):
        allocation_weights("late", 2, contraction=contraction, indices=indices)


@pytest.mark.parametrize("kind", KINDS)
def test_laplace_plans_spend_a_basic_budget_exactly(kind: Allocation) -> None:
    spread = plan(private(budget={"epsilon": 1.0, "delta": 0.0, "by": "basic_composition"}, updates=20), weights(kind))
    assert spread.epsilons.sum() == pytest.approx(1.0, rel=1e-12)
    assert spread.epsilons == pytest.approx(weights(kind), rel=1e-12)
    assert spread.multipliers == pytest.approx(1 / spread.epsilons, rel=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_laplace_plans_spend_a_three_way_budget_exactly(kind: Allocation) -> None:
    spread = plan(private(budget=BUDGET, updates=20), weights(kind))
    assert advanced_composition(spread.epsilons, 1e-3) == pytest.approx(1.0, rel=1e-12)
    assert spread.epsilons.sum() > 1.0


def test_the_three_way_plan_of_the_figures_has_its_closed_value() -> None:
    # Bellet et al. 2018, Theorem 1 at delta = e^-5: ten releases of .1 give .9337017034 by the second bound
    budget = {"epsilon": 0.9337017033878885, "delta": math.exp(-5)}
    assert plan(private(budget=budget, updates=10), np.full(10, 0.1)).epsilons == pytest.approx([0.1] * 10, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("updates", [1, 20])
def test_laplace_plans_spend_a_verified_budget_from_below(kind: Allocation, updates: int) -> None:
    spread = plan(private(budget={**BUDGET, "by": "verified"}, updates=updates), weights(kind, updates))
    assert 1 - 1e-4 <= verified(histogram("laplace", spread), 1e-3) <= 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", ["gaussian", "verified"])
def test_gaussian_plans_lie_on_the_exact_curve(kind: Allocation, by: str) -> None:
    spread = plan(private(mechanism="gaussian", budget={**BUDGET, "by": by}, updates=20), weights(kind))
    assert gaussian(spread.multipliers, 1e-3) == pytest.approx(1.0, rel=1e-9)
    assert gaussian(spread.multipliers, 1e-3) <= 1.0
    assert spread.multipliers * weights(kind) == pytest.approx(spread.multipliers[0] * weights(kind)[0], rel=1e-12)
    assert spread.epsilons[3] == gaussian_epsilon(1 / spread.multipliers[3], spread.deltas[3])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", ["basic_composition", "advanced_composition"])
def test_gaussian_plans_follow_remark_4(kind: Allocation, by: Any) -> None:
    spread = plan(private(mechanism="gaussian", budget={**BUDGET, "by": by}, updates=20), weights(kind))
    # Bellet et al. 2018, Remark 4, over the sensitivity 2 L0 / m_i of the mean gradient
    scale = np.sqrt(2 * np.log(2 / spread.deltas)) / spread.epsilons
    assert spread.multipliers == pytest.approx(scale, rel=1e-12)
    assert claimed(histogram("gaussian", spread), 1e-3, by) == pytest.approx(1.0, rel=1e-9)
    half = 0.0 if by == "basic_composition" else -math.expm1(math.log1p(-1e-3) / 2)
    assert 1 - (1 - half) * np.prod(1 - spread.deltas) == pytest.approx(1e-3, rel=1e-9)
    assert verified(histogram("gaussian", spread), 1e-3) < 1.0


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("kind", "updates"), [*zip(KINDS, [1, 20, 150], strict=True)])
def test_a_target_is_verified_from_below(mechanism: str, kind: Allocation, updates: int) -> None:
    privacy = private(mechanism=mechanism, target={"verified": 0.8, "delta": 1e-5}, updates=updates)
    assert 0.995 * 0.8 <= verified(histogram(mechanism, plan(privacy, weights(kind, updates))), 1e-5) <= 0.8


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.1), (1000.0, 1e-5)])
def test_a_target_is_met_where_small_epsilons_compose_to_nothing_and_where_noise_is_slight(
    epsilon: float, delta: float
) -> None:
    privacy = private(target={"verified": epsilon, "delta": delta}, updates=3)
    spread = plan(privacy, [0.2, 0.5, 0.3])
    assert 0.995 * epsilon <= verified(histogram("laplace", spread), delta) <= epsilon


@pytest.mark.parametrize(
    ("mechanism", "by"),
    [
        (mechanism, by)
        for mechanism in ("laplace", "gaussian")
        for by in ("basic_composition", "advanced_composition", "verified")
    ]
    + [("gaussian", "gaussian")],
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_ledger_grants_a_whole_plan_and_not_one_release_more(mechanism: Any, by: str, kind: Allocation) -> None:
    privacy = private(mechanism=mechanism, budget={**BUDGET, "by": by}, updates=12)
    spread = plan(privacy, weights(kind, 12))
    ledger = Ledger(1, budget=privacy.budget, updates=privacy.updates, claimed_by=privacy.claimed_by)
    granted = []
    for eps, delta, scale in [*zip(*map(list, (spread.epsilons, spread.deltas, spread.multipliers)), strict=True)] * 2:
        release = Release(0, 0.0, mechanism, privacy.norm, 1.0, "clip", 1.0, scale, eps, delta, 1)
        granted.append(ledger.reserve(release))
    assert granted == [True] * 12 + [False] * 12


def test_a_given_multiplier_is_used_as_it_is_and_claims_what_it_gives() -> None:
    assert plan(private(multiplier=4.0), [0.5, 0.5]).epsilons.tolist() == [0.25, 0.25]
    spread = plan(private(mechanism="gaussian", multiplier=4.0), [0.5, 0.5])
    assert spread.multipliers.tolist() == [4.0, 4.0]
    assert spread.epsilons[0] == gaussian_epsilon(0.25, spread.deltas[0])
    assert 1 - np.prod(1 - spread.deltas) == pytest.approx(0.5e-5, rel=1e-4)


def test_epsilons_are_reported_at_the_delta_of_the_amount() -> None:
    assert private(budget=BUDGET, updates=1).reported_delta == 1e-3
    assert private(target={"verified": 1.0, "delta": 1e-4}, updates=1).reported_delta == 1e-4
    assert private(multiplier=1.0).reported_delta == 1e-5
    assert private(budget=BUDGET, updates=1, delta=1e-6).reported_delta == 1e-6


def test_noise_is_scaled_in_the_norm_of_its_mechanism() -> None:
    assert (private(multiplier=1.0).norm, private(mechanism="gaussian", multiplier=1.0).norm) == ("l1", "l2")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "exactly one of budget, target and multiplier"),
        ({"budget": BUDGET, "multiplier": 1.0, "updates": 2}, "exactly one of budget, target and multiplier"),
        ({"budget": BUDGET}, "updates is required"),
        ({"multiplier": 1.0, "allocation": "late"}, "only uniform is admissible"),
        (
            {"budget": BUDGET, "updates": 2, "oracle_schedule": True},
            "admissible only with allocation proposition2",
        ),
        ({"budget": BUDGET, "updates": 2, "contraction": 0.5}, "admissible only with allocation proposition2"),
        ({"budget": BUDGET, "updates": 2, "allocation": "late", "contraction": 1.5}, "less than or equal to 1"),
        ({"multiplier": 1.0, "clip": None}, "clip is required"),
        ({"multiplier": 1.0, "sensitivity": "claimed"}, "clip is required with sensitivity: clip and admissible only"),
        ({"multiplier": 1.0, "sensitivity": "data_check", "clip": None}, "radius is required"),
        ({"multiplier": 1.0, "radius": 1.0}, "radius is required with sensitivity: data_check and admissible only"),
        ({"multiplier": 1.0, "lipschitz": 2.0}, "lipschitz is admissible only with sensitivity: claimed"),
        ({"budget": {**BUDGET, "by": "gaussian"}, "updates": 2}, "by: gaussian is admissible only with"),
        ({"mechanism": "gaussian", "budget": {**BUDGET, "delta": 0.0}, "updates": 2}, "delta > 0"),
        ({"multiplier": -1.0}, "greater than or equal to 0"),
        ({"multiplier": math.nan}, "finite"),
        ({"multiplier": 1.0, "scale": 2.0}, "Extra inputs"),
        ({"multiplier": 1.0, "updates": 0}, "greater than or equal to 1"),
        ({"target": {"verified": 1.0, "delta": 0.0}, "updates": 2}, "greater than 0"),
    ],
)
def test_parameters_without_effect_or_out_of_range_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        private(**fields)
