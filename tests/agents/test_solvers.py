"""An agent's local problem is solved exactly, whatever the loss and the shape of the data, also by compiled code."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.loss_codes import CODES
from hushnet.agents.losses import LOSSES, local_gradient, local_loss
from hushnet.agents.optimisation.compiled_newton import bent_solve
from hushnet.agents.optimisation.solvers import minimise_local
from hushnet.agents.tables import Shard
from hushnet.protocols.steps.kernels import minimisers
from hypothesis import given, settings
from hypothesis import strategies as st

SMOOTH = sorted(name for name, loss in LOSSES.items() if loss.smooth)


def a_problem(seed: int, rows: int, dimension: int) -> tuple[Shard, dict]:
    rng = np.random.default_rng(seed)
    shard = Shard(rng.uniform(-1, 1, (rows, dimension)), rng.choice([-1.0, 1.0], rows))
    fields = {"weight": rng.uniform(0.1, 20), "curvature": rng.uniform(0.05, 5), "linear": rng.normal(size=dimension)}
    return shard, fields


def value(model, shard, loss, weight, curvature, linear):
    return weight * local_loss(model, shard, loss, 0.0) + curvature / 2 * model @ model - linear @ model


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(("rows", "dimension"), [(30, 4), (5, 12), (1, 1), (6, 6)])
def test_the_gradient_vanishes_at_the_minimiser_of_a_smooth_loss(loss, rows, dimension):
    for seed in range(5):
        shard, fields = a_problem(seed, rows, dimension)
        far = 10 * np.ones(dimension)
        model, residual = minimise_local(shard, LOSSES[loss], **fields, start=far, tolerance=1e-11)
        gradient = fields["weight"] * local_gradient(model, shard, LOSSES[loss], 0.0)
        gradient += fields["curvature"] * model - fields["linear"]
        assert np.linalg.norm(gradient) == pytest.approx(residual, abs=1e-15)
        assert residual <= 1e-11
        assert far.tolist() == [10.0] * dimension


def test_the_minimiser_of_the_squared_loss_solves_its_normal_equations():
    """(2 a / m X'X + q I) theta = 2 a / m X'y + b."""
    shard, fields = a_problem(3, 8, 3)
    share = 2 * fields["weight"] / 8
    matrix = share * shard.features.T @ shard.features + fields["curvature"] * np.eye(3)
    expected = np.linalg.solve(matrix, share * shard.features.T @ shard.labels + fields["linear"])
    model, _ = minimise_local(shard, LOSSES["squared"], **fields, start=np.zeros(3), tolerance=1e-10)
    np.testing.assert_allclose(model, expected, rtol=1e-13)


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 25), dimension=st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_the_minimiser_of_the_hinge_meets_its_optimality_conditions(seed, rows, dimension):
    """q theta - b is a sum of multipliers in [0, a/m] of y_k x_k: the largest inside the margin, 0 outside it.

    So theta is optimal as far as the duality gap says: |theta - theta*|^2 <= gap / q.
    """
    shard, fields = a_problem(seed, rows, dimension)
    loss, start = LOSSES["hinge"], np.random.default_rng(seed + 1).normal(size=dimension)
    model, residual = minimise_local(shard, loss, **fields, start=start, tolerance=1e-10)
    assert residual <= 1e-10
    signed, most = shard.labels[:, None] * shard.features, fields["weight"] / rows
    mu_c = fields["curvature"] * model - fields["linear"]
    gaps = 1 - signed @ model
    inside, kink = gaps > 1e-7, np.abs(gaps) <= 1e-7
    left = mu_c - most * signed[inside].sum(axis=0)
    multipliers = np.zeros(0)
    if kink.any():
        from scipy.optimize import lsq_linear

        fit = lsq_linear(signed[kink].T, left, bounds=(0, most), method="bvls", tol=1e-14)
        multipliers = fit.x
    left = left - multipliers @ signed[kink]
    assert np.abs(left).max() <= 1e-7


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_without_data_or_weight_the_minimiser_is_that_of_the_quadratic(name):
    shard, fields = a_problem(1, 4, 3)
    empty = Shard(np.empty((0, 3)), np.empty(0))
    for one, weight in ((empty, 2.0), (shard, 0.0)):
        given_fields = {**fields, "weight": weight}
        model, residual = minimise_local(one, LOSSES[name], **given_fields, start=np.ones(3), tolerance=1e-10)
        np.testing.assert_array_equal(model, fields["linear"] / fields["curvature"])
        assert residual == 0.0


def test_a_row_of_zeros_and_repeated_rows_leave_the_hinge_solvable():
    features = np.array([[0.0, 0.0], [1.0, 0.5], [1.0, 0.5], [-1.0, -0.5], [0.3, -1.0]])
    shard = Shard(features, np.array([1.0, 1.0, 1.0, -1.0, 1.0]))
    fields = {"weight": 5.0, "curvature": 0.2, "linear": np.array([0.1, -0.2])}
    model, residual = minimise_local(shard, LOSSES["hinge"], **fields, start=np.zeros(2), tolerance=1e-11)
    assert residual <= 1e-11
    best = value(model, shard, LOSSES["hinge"], **fields)
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert value(model + 0.01 * rng.normal(size=2), shard, LOSSES["hinge"], **fields) >= best


def test_a_loss_of_two_flat_pieces_is_minimised_from_anywhere():
    """Two equal rows, between whose flat pieces steps went to and fro where gradients halved at larger values."""
    rng, row = np.random.default_rng(0), np.full((2, 3), 1 / np.sqrt(3))
    shard, loss = Shard(row, np.ones(2)), LOSSES["smoothed_hinge"]
    for _ in range(3000):
        linear, start = 3 * rng.normal(size=3), 30 * rng.normal(size=3)
        _, residual = minimise_local(
            shard, loss, weight=1.0, curvature=0.1, linear=linear, start=start, tolerance=1e-11
        )
        assert residual <= 1e-11


def minimise(features, labels, weight, curvature, linear, start, tolerance, loss):
    """One agent's minimiser by the kernel, with arrays as tasks have them, which nobody can write."""
    rows = [features, labels, np.array([0, len(labels)])]
    for array in rows:
        array.setflags(write=False)
    numbers = [np.array([number]) for number in (weight, curvature, linear, start, tolerance)]
    out = np.empty((1, len(start)))
    minimisers(*rows, np.array([0]), *numbers, CODES[loss], out)
    return out[0]


@pytest.mark.parametrize(
    ("rows", "width"),
    [(0, 2), (1, 1), (5, 5), (3, 8), (9, 4), (10, 1), (6, 3), (31, 30), (33, 31), (30, 31), (121, 99)],
)
def test_systems_of_every_shape_are_solved(rows, width):
    """A squared loss is minimised by one solution of its normal equations."""
    rng = np.random.default_rng(rows)
    features, labels, right = rng.normal(size=(rows, width)), rng.uniform(-1, 1, rows), rng.normal(size=width)
    found = minimise(features, labels, rows / 2, 0.3, right, np.zeros(width), 1e-11, "squared")
    matrix = features.T @ features + 0.3 * np.eye(width)
    right = features.T @ labels + right
    np.testing.assert_allclose(matrix @ found, right, atol=1e-12 * np.linalg.cond(matrix))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge"])
def test_minimisers_are_those_in_python(loss, dtype):
    rng = np.random.default_rng(4)
    for trial in range(60):
        rows, width = int(rng.integers(0, 15)), int(rng.integers(1, 8))
        size = 10.0 ** rng.uniform(-2, 2)
        features = (size * rng.normal(size=(rows, width))).astype(dtype)
        shard = Shard(features.astype(np.float64), rng.choice([-1.0, 1.0], rows))
        weight, curvature = 10.0 ** rng.uniform(-1, 2), 10.0 ** rng.uniform(-1, 1)
        linear, start = rng.normal(size=(2, width)) * 10.0 ** rng.uniform(-1, 1)
        tolerance = 1e-11 * curvature
        model, _ = minimise_local(
            shard, LOSSES[loss], weight=weight, curvature=curvature, linear=linear, start=start, tolerance=tolerance
        )
        found = minimise(features, shard.labels, weight, curvature, linear, start, tolerance, loss)
        np.testing.assert_allclose(found, model, rtol=1e-10, atol=1e-10, err_msg=str(trial))


def test_what_is_not_finite_stays_so():
    features = np.array([[np.inf, 1.0], [1.0, 2.0]])
    with np.errstate(invalid="ignore"):  # in Python
        assert not np.isfinite(bent_solve(features, np.ones(2), 1.0, np.ones(2))).all()
