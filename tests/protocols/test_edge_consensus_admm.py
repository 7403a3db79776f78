"""Edge-activated consensus ADMM: against its equations, its synchronous parent, and its optimum on bad networks."""

from __future__ import annotations

import numpy as np
from hushnet.agents.losses import LOSSES
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.edge_consensus_admm import EdgeConsensusAdmm
from hushnet.simulator.contract import protocol_parameters
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive, driver_of
from .worlds import Watcher, setting_of

FIELDS = {"loss_weight": 2.0, "rho": 0.5, "penalty": 0.4}


def world_of(protocol=EdgeConsensusAdmm, *, recorder=None, fields=FIELDS, **setting) -> World:
    """A world that is ready to run; further arguments are those of `setting_of`."""
    spec = protocol_parameters(protocol, fields)
    return World(setting_of(**setting), protocol, spec, recorder=recorder, every=1.0)


def models_of(world: World) -> np.ndarray:
    return world.protocol.models(world.state)


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
    world = world_of(task=task, stop=Stop(activations=80))
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
