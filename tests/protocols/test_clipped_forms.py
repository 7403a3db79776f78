"""Contributions of single examples are clipped alike in both forms, whatever the data are."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hushnet.agents.clipping import clipped_terms
from hushnet.agents.losses import LOSSES, clipped_gradient
from hushnet.agents.tables import Shard
from hushnet.protocols.steps import loss_gradient
from hushnet.protocols.steps.gradient_forms import shortened_in
from hushnet.protocols.steps.word_form import Categories

ENTRIES = [np.nan, np.inf, -1.0, 0.0, 3.0, 1e155, -1e-200]
SLOPES = [2.0, -0.25, 0.0, 1e-300, 1e200, np.inf, np.nan]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("bound", [1.0, 1e-60, 1e150])
def test_a_contribution_is_shortened_alike_in_both_forms_and_counts_as_zero_if_it_has_no_direction(norm, bound):
    shortened = shortened_in(norm)
    for entries, slope in itertools.product(itertools.product(ENTRIES, repeat=3), SLOPES):
        row = np.array(entries)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            coefficients, rows = clipped_terms(np.array([slope]), row[None], norm, bound)
            share, unit = shortened(slope, row, bound)
            found = share * (row * unit) if unit > 0.0 else np.zeros(3)
        expected = coefficients[0] * rows[0]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0.0, err_msg=f"{slope} {row}")
        assert np.isfinite(found).all()
        if not (np.isfinite(row).all() and np.isfinite(slope)):
            assert not found.any()


class Own(NamedTuple):
    """What a word reads of a record."""

    features: np.ndarray
    labels: np.ndarray
    bound_: float


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_an_example_that_is_not_finite_adds_nothing_to_a_clipped_gradient_in_either_form(loss, norm):
    rng = np.random.default_rng(6)
    features, labels, model = rng.normal(size=(6, 4)), rng.choice([-1.0, 1.0], 6), rng.normal(size=4)
    compiled = loss_gradient.compiled_form.make(Categories(loss=loss, mechanism="", clip=norm))
    for place, value in itertools.product([(1, 0), (2, 1), (5, 3)], [np.nan, np.inf]):
        rows = features.copy()
        rows[place] = value
        with np.errstate(over="ignore", invalid="ignore"):
            expected = clipped_gradient(model, Shard(rows, labels), LOSSES[loss], 0.0, norm, 0.7)
        np.testing.assert_allclose(compiled(Own(rows, labels, 0.7), model), expected, rtol=1e-12, atol=1e-15)
        kept = np.delete(np.arange(6), place[0])
        own = compiled(Own(rows[kept], labels[kept], 0.7), model)
        np.testing.assert_allclose(compiled(Own(rows, labels, 0.7), model), own * 5 / 6, rtol=1e-12, atol=1e-15)
