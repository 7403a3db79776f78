"""Clipping bounds every finite contribution, however extreme, and leaves ordinary ones as they are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hushnet.agents.clipping import clip_rows, norms
from hushnet.agents.losses import LOSSES, clipped_gradient
from hushnet.agents.tables import Shard
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES = sorted(LOSSES)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
EXTREMES = st.sampled_from([0.0, 5e-324, 1e-308, 1e-200, 1e-160, 1.0, -1e19, 1e100, 1e155, -1e160, 1.7e308])
NUMBERS = FINITE | EXTREMES
ROWS = st.integers(1, 4).flatmap(
    lambda p: st.lists(st.lists(NUMBERS, min_size=p, max_size=p), min_size=1, max_size=4).map(np.array)
)
BOUNDS = st.sampled_from([1e-12, 1e-9, 1.0, 1e3]) | st.floats(1e-290, 1e290)
NORMS = st.sampled_from(["l1", "l2"])
SLACK = 1e-14
"""Rounding of a norm, relative to it."""


def within(vector: np.ndarray, norm: str, bound: float) -> bool:
    """Whether a vector's norm is within a bound, in exact arithmetic up to `SLACK`."""
    sizes = [abs(Fraction(number)) for number in vector.tolist()]
    limit = Fraction(bound) * Fraction(1 + SLACK)
    return sum(sizes) <= limit if norm == "l1" else sum(size**2 for size in sizes) <= limit**2


@settings(max_examples=300, deadline=None)
@given(rows=ROWS, bound=BOUNDS, norm=NORMS)
def test_a_clipped_row_is_finite_and_within_its_bound(rows, bound, norm):
    clipped = clip_rows(rows, bound, norm)
    assert all(within(row, norm, bound) for row in clipped)
    assert np.array_equal(clip_rows(clipped, bound, norm), clipped), "clipping again changes nothing"
    kept = [row for row in range(len(rows)) if norms(rows, norm)[row] <= bound]
    assert np.array_equal(clipped[kept], rows[kept])


@settings(max_examples=400, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    row=st.lists(NUMBERS, min_size=3, max_size=3),
    label=NUMBERS,
    model=st.lists(NUMBERS, min_size=3, max_size=3),
    bound=BOUNDS,
    norm=NORMS,
)
def test_the_contribution_of_any_record_is_finite_and_within_the_bound(name, row, label, model, bound, norm):
    shard = Shard(np.array([row]), np.array([label if name == "squared" else math.copysign(1.0, label)]))
    contribution = clipped_gradient(np.array(model), shard, LOSSES[name], 0.0, norm, bound)
    assert within(contribution, norm, bound)


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    row=st.lists(NUMBERS, min_size=4, max_size=4),
    label=NUMBERS,
    norm=NORMS,
    bound=st.sampled_from([1e-9, 1.0, 1e3]),
)
def test_an_extreme_record_moves_the_mean_by_no_more_than_any_other(name, row, label, norm, bound):
    rng = np.random.default_rng(8)
    features, labels, model = rng.standard_normal((5, 4)), rng.choice([-1.0, 1.0], 5), rng.standard_normal(4)
    before = clipped_gradient(model, Shard(features.copy(), labels.copy()), LOSSES[name], 0.0, norm, bound)
    features[2], labels[2] = row, label if name == "squared" else math.copysign(1.0, label)
    after = clipped_gradient(model, Shard(features, labels), LOSSES[name], 0.0, norm, bound)
    assert np.linalg.norm(after - before, ord=1 if norm == "l1" else 2) <= 2 * bound / 5 * (1 + SLACK)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_an_extreme_row_keeps_its_direction(norm):
    rows = np.array([[3e160, -4e160], [3e-200, 4e-200], [3.0, 4.0]])
    unit = np.array([3.0, 4.0]) / (7.0 if norm == "l1" else 5.0)
    np.testing.assert_allclose(clip_rows(rows, 1e-210, norm), 1e-210 * unit * np.array([[1, -1], [1, 1], [1, 1]]))
    expected = [7e160, 7e-200, 7.0] if norm == "l1" else [5e160, 5e-200, 5.0]
    np.testing.assert_allclose(norms(rows, norm), expected, rtol=1e-15)


def test_what_is_not_finite_counts_as_zero_before_the_mean():
    features = np.array([[1.0, 0.0], [0.0, 1.0]])
    shard = Shard(features, np.array([1.7e308, 0.25]))
    found = clipped_gradient(np.zeros(2), shard, LOSSES["squared"], 0.0, "l2", 1.0)
    np.testing.assert_allclose(found, [0.0, -0.25])
    assert np.array_equal(clip_rows(np.array([[np.inf, 1.0], [np.nan, 1.0]]), 1.0), np.zeros((2, 2)))


def test_a_row_of_infinite_norm_is_above_every_radius():
    assert norms(np.array([[1.7e308, 1.7e308], [np.inf, 0.0], [np.nan, 0.0]]), "l1").tolist() == [np.inf] * 3


def test_ordinary_rows_keep_their_bits_beside_an_extreme_one():
    rows = np.random.default_rng(3).standard_normal((6, 5))
    beside = np.concatenate([rows, [[1e155] * 5]])
    assert np.array_equal(norms(rows), np.linalg.norm(rows, axis=1))
    assert np.array_equal(clip_rows(beside, 1.5)[:-1], clip_rows(rows, 1.5))
