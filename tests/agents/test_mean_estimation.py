"""The two moons of Vanhaesebrouck et al. 2017, section 5.1."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.tasks.mean_estimation import MeanEstimation
from hushnet.agents.tasks.task import Task
from hushnet.simulator.metrics.criterion_metrics import quality
from hushnet.simulator.network.similarity import GaussianKernel


def task(seed: int = 0, **fields) -> Task:
    return MeanEstimation(kind="mean_estimation", **fields).build(rng=np.random.default_rng(seed), data_dir=None)


def test_points_lie_on_two_half_circles_of_radius_one():
    points = task(point_noise=0.0).profiles
    upper, lower = points[::2], points[1::2]
    np.testing.assert_allclose(np.linalg.norm(upper, axis=1), 1.0)
    np.testing.assert_allclose(np.linalg.norm(lower - [1.0, 0.5], axis=1), 1.0)
    assert upper[:, 1].min() >= 0.0
    assert lower[:, 1].max() <= 0.5


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_sizes_follow_their_law(spread):
    """Kolmogorov's distance of 2000 uniform shares exceeds 0.05 with probability below 1e-4; seed 1."""
    counts = np.sort(task(1, agents=2000, spread=spread).train.counts)
    assert counts.min() >= max(1, np.ceil(100 * (0.5 - spread / 2)))
    assert counts.max() <= np.ceil(100 * (0.5 + spread / 2))
    if spread == 0:
        assert np.all(counts == 50)
    else:
        share = np.clip((counts / 100 - 0.5) / spread + 0.5, 0.0, 1.0)
        assert np.abs(share - (np.arange(2000) + 0.5) / 2000).max() < 0.05 + 0.01 / spread


def test_samples_have_the_moons_mean_and_the_stated_variance():
    """About 15,000 samples a moon: 4.5 standard errors of mean and variance, false alarm below 4e-5; seed 2."""
    made = task(2, agents=600)
    upper = made.train.labels[made.train.owners % 2 == 0]
    lower = made.train.labels[made.train.owners % 2 == 1]
    for values, mean in ((upper, 1.0), (lower, -1.0)):
        assert abs(values.mean() - mean) < 4.5 * np.sqrt(40.0 / len(values))
        assert abs(values.var() - 40.0) < 4.5 * 40.0 * np.sqrt(2.0 / len(values))


def test_the_measure_is_the_squared_error_against_the_true_mean():
    made = task(4, agents=5)
    assert made.metric == "mse"
    models = np.array([[1.0], [-1.0], [3.0], [0.0], [0.5]])
    np.testing.assert_allclose(quality(made, models), [0.0, 0.0, 4.0, 1.0, 0.25])


def test_the_kernel_weighs_by_distance():
    made = task(6, agents=12)
    graph = GaussianKernel(kind="gaussian_kernel", sigma=0.3).build(made, rng=np.random.default_rng(0))
    assert len(graph.heads) == 12 * 11
    gaps = made.profiles[graph.tails] - made.profiles[graph.heads]
    np.testing.assert_allclose(graph.weights, np.exp(-(gaps**2).sum(axis=1) / (2 * 0.3**2)), rtol=1e-12)
    cut = GaussianKernel(kind="gaussian_kernel", sigma=0.3, cutoff=0.5, allow_isolated=True, allow_disconnected=True)
    assert cut.build(made, rng=np.random.default_rng(0)).weights.min() >= 0.5
