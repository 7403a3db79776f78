"""AD-PSGD against a sequential loop, and what late and lost answers do to the mean of its models."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.availability import Always
from hushnet.protocols.algorithms.ad_psgd import AdPsgd
from hushnet.simulator.contract.bench import protocol_parameters, small_graph, small_task
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive, prepared

ALPHA, MU = 0.1, 0.05


def run(engine, *, time=40.0, **network):
    task = small_task(agents=6)
    setting = Setting(
        task=task,
        graph=small_graph(6),
        clock=Poisson(kind="poisson"),
        network=NetworkParameters.model_validate(network),
        availability=Always(kind="always"),
        stop=Stop(time=time),
        draws=Draws(5),
    )
    world = World(setting, AdPsgd, protocol_parameters(AdPsgd, {"step_size": ALPHA, "mu": MU}))
    driver = prepared(world, engine)
    calls, make = [], world.protocol.steps.make

    def watched(phase, me, *given):
        make(phase, me, *given)
        if phase == "request":
            calls.append((me.agent, int(me.neighbours[given[0]])))

    if isinstance(engine, EventEngine):
        world.protocol.steps.make = watched
    drive(driver)
    return world, calls


def test_without_delays_it_is_the_sequential_loop():
    world, calls = run(EventEngine())
    task, models = world.setting.task, np.zeros((6, small_task(agents=6).dimension))
    for caller, callee in calls:
        shard, x = task.train.shard(caller), models[caller]
        gradient = MU * x
        if len(shard):
            gradient = gradient + task.loss.slope(shard.features @ x, shard.labels) @ shard.features / len(shard)
        models[[caller, callee]] = (x + models[callee]) / 2
        models[caller] -= ALPHA * gradient
    assert len(calls) > 100
    np.testing.assert_allclose(world.state.agent["model"].rows, models, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("network", [{}, {"latency": {"kind": "exponential", "mean": 1.0}, "loss": 0.3}])
def test_both_engines_have_the_same_bits_and_gains_of_edges_cancel(network):
    (one, _), (other, _) = run(EventEngine(), **network), run(BatchedEngine(), **network)
    assert one.state.agent["model"].rows.tobytes() == other.state.agent["model"].rows.tobytes()
    if not network:
        assert np.abs(one.state.edge["gained"].rows.sum(axis=0)).max() < 1e-12
