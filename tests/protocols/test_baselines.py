"""What agents reach alone, and what one common model reaches."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.objectives.objectives import local_gradients
from hushnet.agents.tasks.linear_classification import LinearClassification
from hushnet.protocols.algorithms.baselines import Consensus
from hushnet.protocols.base import Problem
from hushnet.simulator.contract import protocol_parameters
from hushnet.simulator.contract.bench import run_small, small_task

TASK = small_task()


def models_of(protocol, fields=None):
    world = run_small(protocol, protocol_parameters(protocol, fields or {}), time=1.0)
    assert world.traffic.messages == 0
    return world, world.protocol.models(world.state)


def test_the_consensus_model_is_common_and_stationary_for_the_sum_over_all_rows():
    world, models = models_of(Consensus)
    assert np.all(models == models[0])
    slope = TASK.train.counts @ local_gradients(TASK, models)
    assert np.abs(slope).max() < 1e-9
    inhabited = TASK.train.counts > 0
    np.testing.assert_array_equal(np.isinf(world.ledger.epsilon("verified", 1e-5)), inhabited)


@pytest.mark.parametrize("regularisation", ["1/m", 0.0])
def test_no_direction_lowers_the_pooled_hinge_loss(regularisation):
    """A convex function that no small step out of 200 random ones lowers; seed 0."""
    spec = LinearClassification(
        kind="linear_classification",
        agents=12,
        dimension=4,
        samples=[5, 9],
        loss="hinge",
        regularisation=regularisation,
    )
    task = spec.build(rng=np.random.default_rng(0), data_dir=None)
    made = Consensus(protocol_parameters(Consensus, {}), Problem(task, Graph.from_matrix(1.0 - np.eye(12))))
    model = made._common
    ridge = task.train.counts @ task.regularisation

    def total(point):
        return task.loss.value(task.train.features @ point, task.train.labels).sum() + ridge * point @ point

    rng, best = np.random.default_rng(0), total(model)
    for length in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            step = rng.standard_normal(4)
            assert total(model + length * step / np.linalg.norm(step)) >= best - 1e-7
