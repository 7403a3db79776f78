"""Synthetic linear classification, and the accuracies that a correct build reaches on it."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.objectives.objectives import GraphRegularised, local_models, row_scores
from hushnet.agents.objectives.pooled_objective import PooledObjective
from hushnet.agents.tasks.linear_classification import LinearClassification
from hushnet.agents.tasks.task import Task
from hushnet.simulator.metrics.criterion_metrics import quality


def build(seed: int = 0, **fields) -> Task:
    given = {"kind": "linear_classification", "agents": 30, "dimension": 5, **fields}
    return LinearClassification(**given).build(rng=np.random.default_rng(seed), data_dir=None)


def test_targets_lie_in_the_plane_of_the_first_two_coordinates():
    task = build(dimension=7)
    assert task.profiles.shape == (30, 7)
    assert np.all(task.profiles[:, :2] != 0)
    assert not task.profiles[:, 2:].any()


def test_one_model_is_right_for_all_agents_where_their_target_is_common_and_not_where_it_is_personal():
    """Seeds 0: of personal targets in all directions, one model is right by luck; of one it misses few points."""
    found = {}
    for targets in ("personal", "common"):
        task = build(targets=targets)
        best, _ = PooledObjective.mean_of_agents(task, 1e-3).minimise()
        found[targets] = float(np.mean(quality(task, best)))
        assert (np.ptp(task.profiles, axis=0).max() == 0) == (targets == "common")
    assert found["personal"] < 0.75
    assert found["common"] > 0.95


def test_test_labels_are_clean_and_training_labels_flipped_at_the_stated_rate():
    task = build(seed=1, agents=200, samples=[50, 50], label_noise=0.1)
    assert np.array_equal(np.sign(row_scores(task.test, task.profiles)), task.test.labels)
    flipped = np.sign(row_scores(task.train, task.profiles)) != task.train.labels
    # Seed 1: 10,000 flips at rate .1 have deviation .003; five deviations raise a false alarm once in 1.7 million.
    assert abs(flipped.mean() - 0.1) < 5 * 0.003
    assert np.all(build(label_noise=0.0).train.labels == np.sign(row_scores(build().train, build().profiles)))


@pytest.mark.parametrize(("points", "second_moment"), [("cube", 1 / 3), ("ball", 1 / 7), ("gaussian", 1 / 2)])
def test_points_have_the_moments_and_bounds_of_their_law(points, second_moment):
    task = build(seed=2, agents=100, samples=[100, 100], points=points)
    features = task.train.features
    # Seed 2: 50,000 coordinates; 5 % is above seven deviations of the mean square under each law.
    assert np.mean(features**2) == pytest.approx(second_moment, rel=0.05)
    assert abs(features.mean()) < 0.02
    assert set(task.bounds) == (set() if points == "gaussian" else {"l1", "l2"})
    for norm, bound in task.bounds.items():
        assert np.linalg.norm(features, ord=int(norm[1]), axis=1).max() <= bound


@pytest.mark.parametrize("points", ["cube", "ball", "gaussian"])
def test_single_precision_keeps_half_the_bytes_of_the_same_points(points):
    double = build(seed=5, points=points, label_noise=0.0)
    single = build(seed=5, points=points, label_noise=0.0, precision="float32")
    for kept, exact in ((single.train, double.train), (single.test, double.test)):
        assert kept.features.dtype == np.float32
        assert kept.features.nbytes == exact.features.nbytes / 2
        assert np.all(np.abs(kept.features) <= np.abs(exact.features))
        np.testing.assert_allclose(kept.features, exact.features, rtol=np.finfo(np.float32).eps)
        assert kept.shard(3).features.dtype == np.float64
        assert np.array_equal(kept.shard(3).features, kept.features[kept.offsets[3] : kept.offsets[4]])
        assert np.array_equal(np.sign(row_scores(kept, single.profiles)), kept.labels)
    for norm, bound in single.bounds.items():
        rows = single.train.features.astype(np.float64)
        assert np.linalg.norm(rows, ord=int(norm[1]), axis=1).max() <= bound
    assert single.fingerprint != double.fingerprint


def test_an_agent_may_have_no_data_and_then_has_no_regularisation():
    task = build(agents=60, samples=[0, 2])
    empty = task.train.counts == 0
    assert empty.any()
    assert not empty.all()
    assert not task.regularisation[empty].any()
    np.testing.assert_allclose(task.regularisation[~empty], 1 / task.train.counts[~empty])
    assert not local_models(task)[empty].any()


def test_the_same_seed_gives_the_same_data_and_another_seed_other_data():
    assert build(seed=3).fingerprint == build(seed=3).fingerprint
    assert build(seed=3).fingerprint != build(seed=4).fingerprint


def similarity(targets: np.ndarray) -> Graph:
    """W_ij = exp((cos phi_ij - 1) / 0.1), weights below 0.01 dropped (Bellet et al. 2018, section 5.1)."""
    unit = targets / np.linalg.norm(targets, axis=1, keepdims=True)
    weights = np.exp((np.clip(unit @ unit.T, -1, 1) - 1) / 0.1)
    weights[weights < 0.01] = 0
    return Graph.from_matrix(weights)


def accuracy(task: Task, models: np.ndarray) -> float:
    right = np.sign(row_scores(task.test, models)) == task.test.labels
    return float(np.mean(np.bincount(task.test.owners, weights=right) / task.test.counts))


@pytest.mark.slow
def test_local_models_and_the_optimum_reach_the_accuracies_of_two_independent_implementations():
    """Seeds 0 to 4; the tolerances are about three standard errors of a mean over five instances."""
    alone, together = [], []
    for seed in range(5):
        task = build(seed, agents=100, dimension=100)
        objective = GraphRegularised(task, similarity(task.profiles), 0.04, task.train.counts.astype(float))
        alone.append(accuracy(task, local_models(task)))
        together.append(accuracy(task, objective.minimise()[0]))
    assert np.mean(alone) == pytest.approx(0.683, abs=0.01)
    assert np.mean(together) == pytest.approx(0.8985, abs=0.012)
