"""Statements of Zhang et al. 2018 that small problems decide."""

import pytest
from hushnet.simulator.reproduction.pages import judged
from hushnet.simulator.reproduction.zhang2018 import PAPER
from hushnet.simulator.reproduction.zhang2018_statements import contraction, recovered


def test_distances_shrink_at_equal_penalties_but_not_by_the_bound_that_is_printed():
    equal = [0.6] * 4, [1.0] * 4
    assert contraction(*equal, curvature=0.003) > 1.01
    assert contraction(*equal, curvature=0.003, printed=False) < 1
    assert contraction(*equal, curvature=0.2) < 1


@pytest.mark.parametrize("seed", range(3))
def test_private_penalties_hide_no_row(seed):
    assert recovered(seed, rows=30, width=4) < 1e-9


def test_both_statements_are_refuted_on_the_page():
    found = {s.place: judged(s.text, s.check, s.kind).finding.verdict for s in PAPER.statements}
    assert found == {"Theorem 3.2": "does not hold", "Section 6.2": "does not hold"}
