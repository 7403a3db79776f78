"""One model for everybody's rows: values, gradients and exact minimisers."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.losses import LOSSES
from hushnet.agents.objectives.pooled_objective import PooledObjective
from hushnet.agents.optimisation.splitting import minimise_rows
from hushnet.agents.optimisation.support_vectors import minimise_hinge
from hushnet.agents.tasks.task import Task
from hushnet.simulator.contract.bench import small_task
from scipy.optimize import brentq, linprog


def task_with(loss: str) -> Task:
    return Task(**{**small_task(empty=True).__dict__, "loss": LOSSES[loss]})


@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge", "hinge"])
def test_it_is_the_mean_of_the_agents_mean_losses_at_their_average(loss):
    task, rng = task_with(loss), np.random.default_rng(0)
    objective = PooledObjective.mean_of_agents(task, 0.3)
    models = rng.normal(size=(task.agents, task.dimension))
    model = models.mean(axis=0)
    means = []
    for agent in range(task.agents):
        shard = task.train.shard(agent)
        means.append(task.loss.value(shard.features @ model, shard.labels).mean() if len(shard) else 0.0)
    assert objective.value(models) == pytest.approx(np.mean(means) + 0.15 * model @ model, rel=1e-13)


@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge"])
def test_its_gradient_is_that_of_its_value(loss):
    objective = PooledObjective.sum_of_rows(task_with(loss), 0.3, agent=2)
    models = np.random.default_rng(1).normal(size=(6, 3))
    gradient = objective.gradient(models)
    for index in np.ndindex(models.shape):
        up, down = models.copy(), models.copy()
        up[index] += 1e-6
        down[index] -= 1e-6
        slope = (objective.value(up) - objective.value(down)) / 2e-6
        assert gradient[index] == pytest.approx(slope, abs=1e-7)


def test_large_models_are_minimised_by_conjugate_gradients_to_the_same_point(monkeypatch):
    objective = PooledObjective.mean_of_agents(task_with("logistic"), 0.3)
    exact = objective.minimise()[0]
    monkeypatch.setattr("hushnet.agents.objectives.pooled_objective.LARGEST_HESSIAN", 1)
    again = PooledObjective.mean_of_agents(task_with("logistic"), 0.3).minimise()[0]
    np.testing.assert_allclose(again, exact, atol=1e-10)


def test_fingerprints_tell_ridges_rows_and_mixtures_apart():
    task = task_with("logistic")
    kinds = [
        PooledObjective.mean_of_agents(task, 0.3),
        PooledObjective.mean_of_agents(task, 0.4),
        PooledObjective.sum_of_rows(task, 0.3, agent=0),
        PooledObjective.sum_of_rows(task, 0.3, agent=1),
    ]
    assert len({kind.fingerprint for kind in kinds}) == 4


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
def test_a_support_vector_machine_has_no_better_neighbour_and_satisfies_its_dual(ridge):
    """Optimality, checked independently: 0 is a subgradient, found by a linear programme over the rows at the kink."""
    rng = np.random.default_rng(2)
    features, weights = rng.normal(size=(40, 6)), rng.uniform(0.1, 1.0, 40)
    labels = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    model = minimise_hinge(features, labels, weights, ridge)
    signed = labels[:, None] * features
    margins = signed @ model
    at_kink = np.abs(margins - 1) < 1e-4
    fixed = (weights * (margins < 1) * ~at_kink) @ signed
    free = (weights[:, None] * signed)[at_kink]
    size = np.abs(ridge * model).max()
    found = linprog(
        np.concatenate([np.zeros(len(free)), [1.0]]),
        A_ub=np.block([[free.T, -np.ones((6, 1))], [-free.T, -np.ones((6, 1))]]),
        b_ub=np.concatenate([ridge * model - fixed, fixed - ridge * model]),
        bounds=[(0, 1)] * len(free) + [(0, None)],
    )
    assert found.fun < 1e-4 * max(size, 1.0)


def test_a_support_vector_machine_of_one_row_is_known_in_closed_form():
    """min max(0, 1 - x) + (ridge/2) x^2: x = min(1, 1/ridge)."""
    for ridge in (0.5, 4.0):
        model = minimise_hinge(np.ones((1, 1)), np.ones(1), np.ones(1), ridge)
        assert model[0] == pytest.approx(min(1.0, 1 / ridge), rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge"])
@pytest.mark.parametrize("curvature", [0.3, 0.01, 1e-4])
def test_scalar_problems_are_solved_where_plain_newton_steps_cycle(loss, curvature):
    """At small curvature Newton's method from linear / curvature overshoots to and fro."""
    rng = np.random.default_rng(4)
    labels, linear = np.where(rng.random(300) < 0.5, 1.0, -1.0), rng.normal(size=300) * rng.choice([0.1, 1, 10], 300)
    points = minimise_rows(LOSSES[loss], labels, curvature=curvature, linear=linear)
    residual = LOSSES[loss].slope(points, labels) + curvature * points - linear
    assert np.abs(residual).max() < 1e-8
    for row in range(0, 300, 30):
        own = labels[row : row + 1]

        def slope(z, own=own, row=row):
            return float(LOSSES[loss].slope(np.array([z]), own)[0]) + curvature * z - linear[row]

        centre = linear[row] / curvature
        expected = brentq(slope, centre - 2 / curvature, centre + 2 / curvature, xtol=1e-12)
        assert points[row] == pytest.approx(expected, abs=1e-7 / curvature)
