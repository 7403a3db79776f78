"""AD-PSGD against a sequential loop."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols.algorithms.ad_psgd import AdPsgd
from hushnet.simulator.contract.bench import protocol_parameters, small_task
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive
from .worlds import setting_of

ALPHA, MU = 0.1, 0.05


@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_without_delays_it_is_the_sequential_loop(momentum):
    setting = setting_of(task=small_task(agents=6), stop=Stop(time=40.0), seed=5)
    world = World(setting, AdPsgd, protocol_parameters(AdPsgd, {"step_size": ALPHA, "mu": MU, "momentum": momentum}))
    calls, make = [], world.protocol.steps.make

    def watched(phase, me, *given):
        make(phase, me, *given)
        if phase == "request":
            calls.append((me.agent, int(me.neighbours[given[0]])))

    world.protocol.steps.make = watched
    drive(world)
    task, models = world.setting.task, np.zeros((6, small_task(agents=6).dimension))
    velocities = np.zeros_like(models)
    for caller, callee in calls:
        shard, x = task.train.shard(caller), models[caller]
        gradient = MU * x
        if len(shard):
            gradient = gradient + task.loss.slope(shard.features @ x, shard.labels) @ shard.features / len(shard)
        models[[caller, callee]] = (x + models[callee]) / 2
        velocities[caller] = momentum * velocities[caller] + gradient
        models[caller] -= ALPHA * velocities[caller]
    assert len(calls) > 100
    np.testing.assert_allclose(world.state.agent["model"].rows, models, rtol=1e-12, atol=1e-14)
