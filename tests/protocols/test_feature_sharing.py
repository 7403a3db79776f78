"""ADMM sharing against equations (6) to (8) and (16) of Hu et al. 2019, and the gradient baseline beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.losses import LOSSES
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.feature_sgd import FeatureSgd
from hushnet.protocols.privacy.composition import gaussian
from hushnet.protocols.steps import clipped
from hushnet.simulator.contract import bench
from scipy.optimize import minimize

from ..engine.driving import drive
from .columns import ISOTROPIC, split_task, world_of


def printed_loop(task: Task, epochs: int, rho: float, order: str) -> list[np.ndarray]:
    """Updates (6), (7) and (8), each by a general-purpose minimiser or a linear system; models after every epoch."""
    labels, parts = task.train.labels, [task.train.features[:, held] for held in task.columns[1:]]
    models = [np.zeros(part.shape[1]) for part in parts]
    z = y = np.zeros(len(labels))
    found = []
    for _ in range(epochs):
        scores = [part @ model for part, model in zip(parts, models, strict=True)]
        for m, part in enumerate(parts):
            others = sum(scores[k] for k in range(len(parts)) if k != m) - z
            system = np.eye(part.shape[1]) + rho * part.T @ part
            models[m] = np.linalg.solve(system, -part.T @ (y + rho * others))
            if order == "gauss_seidel":
                scores[m] = part @ models[m]
        total = sum(part @ model for part, model in zip(parts, models, strict=True))
        z = np.array([_scalar(b, y[k], rho, total[k]) for k, b in enumerate(labels)])
        y = y + rho * (total - z)
        found.append(np.concatenate(models))
    return found


def _scalar(label: float, dual: float, rho: float, total: float) -> float:
    def augmented(z):
        return np.logaddexp(0, -label * z[0]) - dual * z[0] + rho / 2 * (total - z[0]) ** 2

    return float(minimize(augmented, [total], method="BFGS", options={"gtol": 1e-12}).x[0])


@pytest.mark.parametrize(("order", "rounds"), [("jacobi", 2), ("gauss_seidel", 6)])
def test_rounds_are_the_printed_algorithm(order, rounds):
    task = split_task()
    world = world_of(task, 4 * rounds, order=order, rho=0.8, every=float(rounds))
    drive(world)
    for model, expected in zip(world.recorder.models[1:5], printed_loop(task, 4, 0.8, order), strict=True):
        np.testing.assert_allclose(model, expected, atol=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge"])
def test_its_fixed_point_is_the_optimum_and_y_is_the_slope_after_every_round(loss):
    task = split_task(loss=loss)
    world = world_of(task, 1600, rho=1.0)
    drive(world)
    objective = world.protocol.objective()
    best, minimum = objective.minimise()
    np.testing.assert_allclose(world.protocol.models(world.state)[0], best[0], atol=1e-6)
    assert objective.value(world.protocol.models(world.state)) == pytest.approx(minimum, abs=1e-9)
    assert max(world.recorder.residuals[1:]) < 1e-8


def test_the_printed_noise_is_claimed_and_proves_nothing():
    """Lemma 1 with d = 2, M = 3, rho = .5, lambda = c1 = b1 = 1: C = 3 (1 + 2.5) / 1 = 10.5."""
    noise = {"scale": 200.0, "round_delta": 1e-8}
    world = world_of(split_task(), 20, rho=0.5, noise=noise)
    drive(world)
    release = world.protocol.parameters.noise.release(world.peers[1], parties=3, rho=0.5, ridge=1.0)
    assert release.sensitivity == pytest.approx(10.5)
    epsilon = math.sqrt(2 * math.log(1.25e8)) * 10.5 / 200
    assert release.claimed_epsilon == pytest.approx(epsilon)
    claimed = world.ledger.epsilon("claimed", 1e-5)
    assert 0 < claimed[1] <= 10 * epsilon
    assert np.isinf(world.ledger.verified(1e-5)).all()
    loud = type(world.protocol.parameters.noise)(scale=1.0).release(world.peers[1], parties=3, rho=0.5, ridge=1.0)
    assert math.isinf(loud.claimed_epsilon)


def test_isotropic_noise_on_clipped_scores_is_a_gaussian_mechanism_of_sensitivity_2_clip():
    world = world_of(split_task(), 20, privacy=ISOTROPIC)
    drive(world)
    verified = world.ledger.verified(1e-5)
    assert verified[1:] == pytest.approx(gaussian([3.0], 1e-5, [10]))
    assert math.isinf(verified[0])
    scores = clipped(np.full(40, 1.0), world.protocol.scores.bound)
    assert np.linalg.norm(scores) == pytest.approx(2.0)
    assert world.protocol.scores.release(world.peers[2]).scale == 12.0


def test_rows_other_graphs_and_other_losses_are_refused_in_a_sentence():
    with pytest.raises(InputError, match=r"splits rows; set task\.split"):
        world_of(bench.small_task(4), 2, graph=bench.small_graph(4))
    with pytest.raises(InputError, match=r"use topology: \{kind: star\}"):
        world_of(split_task(), 2, graph=bench.small_graph(4))
    with pytest.raises(InputError, match="'hinge' is not"):
        world_of(split_task(loss="hinge"), 2)


def test_gradient_steps_over_all_rows_are_gradient_descent():
    task = split_task()
    world = world_of(task, 21, FeatureSgd, batch=40, step_size=0.5, ridge=2.0)
    drive(world)
    model = np.zeros(6)
    for _ in range(10):
        slopes = LOSSES["logistic"].slope(task.train.features @ model, task.train.labels)
        model -= 0.5 / 40 * (slopes @ task.train.features + 2.0 * model)
    np.testing.assert_allclose(world.protocol.models(world.state)[0], model, atol=1e-14)
