"""Claims of privacy are refuted by lower bounds, which stay below what is verified."""

from __future__ import annotations

import math

import pytest
from hushnet.protocols.algorithms.subgradient_noise import verified_epsilon
from hushnet.protocols.privacy.budget import Privacy
from hushnet.simulator.reproduction import bellet2018_statements, hu2019, liu2022
from hushnet.simulator.reproduction.attacks import drawn_row, hinged_row, theorem_1_scale, turned_corner
from hushnet.simulator.reproduction.claims import Finding, Number, Promise
from hushnet.simulator.reproduction.pages import number_text


@pytest.mark.parametrize("check", [bellet2018_statements.theorem_1, liu2022.theorem_1, hu2019.theorem_3])
def test_printed_theorems_are_refuted_by_counterexamples(check):
    finding = check()
    assert finding.verdict == "refuted"
    assert "ounterexample" in finding.why


def test_a_claim_of_privacy_is_proved_refuted_or_neither():
    proved, open_, refuted = (
        Promise("epsilon", value, high=1.0, at_least=low) for value, low in ((0.9, 0), (3, 0.5), (3, 2))
    )
    assert [number.verdict for number in (proved, open_, refuted)] == ["proved", "not proved", "refuted"]
    assert Finding((proved, proved)).verdict == "proved"
    assert Finding((proved, open_)).verdict == "not proved"
    assert Finding((proved, open_, refuted)).verdict == "refuted"
    assert Finding((Number("loss", 1.0, low=0.0),)).verdict == "holds"
    assert number_text(refuted) == "3, at least 2"


@pytest.mark.parametrize("rows", [50, 500, 2_000])
def test_bounds_on_a_drawn_row_stay_below_what_is_verified(rows):
    rounds = 3 * rows
    scale = theorem_1_scale(rows, rounds, 1.0, 0.01)
    verified = verified_epsilon(scale / 2, rounds, 1 / rows, 0.01)
    assert 0 <= drawn_row(rows, rounds, scale, 0.01) <= verified
    assert (drawn_row(rows, rounds, scale, 0.01) > 1) == (rows == 2_000)


def test_the_exact_bound_is_that_of_its_event():
    """Every round draws the only row, and noise is so small that one round tells for certain: e^-epsilon = Q(S)."""
    assert drawn_row(1, 1, 0.5, 0.0) > 6
    tails = [0.5 * math.erfc((3 + shift) / 0.5 / math.sqrt(2)) for shift in (1, -1)]
    assert drawn_row(1, 1, 0.5, 0.0) == pytest.approx(math.log(tails[1] / tails[0]), rel=1e-6)


def test_an_attack_on_the_hinge_loss_stays_below_what_is_verified():
    """Seeded; on another seed it fails with a probability of .001."""
    scale = 0.3
    verified = verified_epsilon(scale / 2, 60, 1 / 20, 0.01)
    assert 1.5 < hinged_row(20, 60, scale, 0.01, mu=0.0005, gamma=20.0) <= verified


def test_an_attack_on_a_corner_of_the_cube_passes_the_claim():
    """p = 30 and a claimed epsilon of 1; seeded."""
    budget = {"epsilon": 1.0, "delta": 0.01, "by": "advanced_composition"}
    privacy = Privacy.model_validate({"mechanism": "laplace", "budget": budget, "updates": 3, "sensitivity": "claimed"})
    assert 1.0 < turned_corner(privacy, 30) < 30
