"""Tasks whose columns are split between parties around a centre, and worlds on them."""

from __future__ import annotations

import numpy as np
from hushnet.agents.graph import Graph
from hushnet.agents.tasks.partition import ByColumns, partitioned
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.network.topology import Star
from hushnet.simulator.world.world import World

from .worlds import setting_of

ISOTROPIC = {"mechanism": "gaussian", "multiplier": 3.0, "sensitivity": "clip", "clip": 2.0}
PARTS = [2, 3, 1]


def split_task(parts=PARTS, rows: int = 40, *, loss: str = "logistic", seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (rows + 10, sum(parts)))
    labels = np.where(features @ rng.normal(size=sum(parts)) + 0.3 * rng.normal(size=rows + 10) > 0, 1.0, -1.0)
    return partitioned(
        (features[:rows], labels[:rows]),
        (features[rows:], labels[rows:]),
        ByColumns(by="columns", parts=parts),
        name="split",
        loss=loss,
        bounds={},
        notes={},
        rng=rng,
    )


def star(task: Task) -> Graph:
    return Star(kind="star").build(task, rng=np.random.default_rng(0))


class EveryRound:
    """The centre's model and dual variables whenever time is recorded."""

    def __init__(self) -> None:
        self.models: list[np.ndarray] = []
        self.residuals: list[float] = []

    def sample(self, world: World, *, final: bool) -> None:
        self.models.append(world.protocol.models(world.state)[0].copy())
        if "y" in world.state.agent:
            task = world.setting.task
            slope = task.loss.slope(world.state.agent["z"][0], task.train.labels)
            self.residuals.append(float(np.abs(world.state.agent["y"][0] - slope).max()))


def world_of(task: Task, rounds: int, protocol=FeatureSharing, *, every: float = 2.0, seed: int = 5, **fields) -> World:
    kind = "feature_sharing" if protocol is FeatureSharing else "feature_sgd"
    periodic = {"clock": Periodic(kind="periodic"), "stop": Stop(updates=rounds), "seed": seed}
    setting = setting_of(task=task, graph=fields.pop("graph", None) or star(task), **periodic)
    spec = protocol.Parameters.model_validate({"kind": kind, **fields})
    return World(setting, protocol, spec, recorder=EveryRound(), every=every)


def value(task: Task, model: np.ndarray, ridge: float = 1.0) -> float:
    scores = task.train.features @ model
    return float(np.logaddexp(0, -task.train.labels * scores).sum() + ridge / 2 * model @ model)
