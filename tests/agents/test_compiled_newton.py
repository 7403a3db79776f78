"""Compiled local solves find what `minimise_local` finds, and small systems are solved to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.compilation import compiled
from hushnet.agents.loss_codes import CODES
from hushnet.agents.losses import LOSSES
from hushnet.agents.optimisation import compiled_newton
from hushnet.agents.optimisation.solvers import minimise_local
from hushnet.agents.tables import Shard

bent_solve, minimise = map(compiled, (compiled_newton.bent_solve, compiled_newton.minimise))


@pytest.mark.parametrize(
    ("rows", "width"),
    [(0, 2), (1, 1), (5, 5), (3, 8), (9, 4), (10, 1), (6, 3), (31, 30), (33, 31), (30, 31), (121, 99)],
)
def test_small_systems_are_solved(rows, width):
    rng = np.random.default_rng(rows)
    features, bends, right = rng.normal(size=(rows, width)), rng.uniform(0, 2, rows), rng.normal(size=width)
    bends[::3] = 0.0
    step = bent_solve(features, bends, 0.3, right)
    matrix = features.T @ (bends[:, None] * features) + 0.3 * np.eye(width)
    np.testing.assert_allclose(matrix @ step, right, atol=1e-12 * np.linalg.cond(matrix))


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
        found = minimise(features, shard.labels, weight, curvature, linear, start, tolerance, CODES[loss])
        np.testing.assert_allclose(found, model, rtol=1e-10, atol=1e-10, err_msg=str(trial))


def test_what_is_not_finite_stays_so():
    shard = Shard(np.array([[np.inf, 1.0], [1.0, 2.0]]), np.ones(2))
    assert not np.isfinite(bent_solve(shard.features, np.ones(2), 1.0, np.ones(2))).all()
