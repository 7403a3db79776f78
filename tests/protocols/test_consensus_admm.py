"""Consensus ADMM by rounds (Zhang, Khalili, Liu 2018) and by edges, against their equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES, local_gradient
from hushnet.agents.objectives.consensus_objective import ConsensusObjective
from hushnet.agents.objectives.objectives import local_losses
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.consensus_admm import ConsensusAdmm, ConsensusAdmmParameters
from hushnet.protocols.algorithms.edge_consensus_admm import EdgeConsensusAdmm
from hushnet.simulator.contract import protocol_parameters
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive, driver_of
from .worlds import Watcher, setting_of


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


FIELDS = {"loss_weight": 2.0, "rho": 0.5, "penalty": 0.4}


def edge_world(protocol=EdgeConsensusAdmm, *, recorder=None, fields=FIELDS, **setting) -> World:
    """A world that is ready to run; further arguments are those of `setting_of`."""
    spec = protocol_parameters(protocol, fields)
    return World(setting_of(**setting), protocol, spec, recorder=recorder, every=1.0)


class Sessions(Watcher):
    """Whose session it is, and the models after every one."""

    def __init__(self, world):
        self.pairs, self.models, self.world = [], [], world
        world.observer = self
        driver = driver_of(world)
        count = driver.count

        def counted(agent):
            self.models.append(models_of(world).copy())
            count(agent)

        driver.count = counted

    def sent(self, world, message, delay, lost):
        if message.kind == "request":
            self.pairs.append((message.sender, message.receiver))


def test_sessions_that_take_no_time_are_the_randomised_admm_of_the_docstring():
    """Independent: dictionaries by name, and a linear system, as the loss is squared."""
    task = Task(**{**small_task().__dict__, "loss": LOSSES["squared"]})
    world = edge_world(task=task, stop=Stop(activations=80))
    watcher, graph, p = Sessions(world), world.setting.graph, task.dimension
    drive(world)
    z, dual, models = {}, {}, np.zeros((6, p))
    for i, j in zip(graph.tails.tolist(), graph.heads.tolist(), strict=True):
        z[frozenset((i, j))], dual[i, j] = np.zeros(p), np.zeros(p)
    for (caller, callee), expected in zip(watcher.pairs, watcher.models, strict=True):
        for i in (caller, callee):
            shard, matrix, right = task.train.shard(i), 0.5 / 6 * np.eye(p), np.zeros(p)
            if len(shard):
                matrix += 2.0 * 2 / len(shard) * shard.features.T @ shard.features
                right += 2.0 * 2 / len(shard) * shard.features.T @ shard.labels
            for j in graph.neighbours(i).tolist():
                matrix += 2 * 0.4 * np.eye(p)
                right += 2 * 0.4 * z[frozenset((i, j))] - 2 * dual[i, j]
            models[i] = np.linalg.solve(matrix, right)
        z[frozenset((caller, callee))] = middle = (models[caller] + models[callee]) / 2
        for i, j in ((caller, callee), (callee, caller)):
            dual[i, j] = dual[i, j] + 0.4 * (models[i] - middle)
        np.testing.assert_allclose(expected, models, atol=1e-10)
