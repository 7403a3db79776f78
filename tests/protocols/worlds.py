"""Worlds that protocols' tests run in, and observers that look into them."""

from __future__ import annotations

from hushnet.agents.availability import Always, OnOff
from hushnet.simulator.contract.bench import (
    admitted_world,
    protocol_parameters,
    run_small,
    small_graph,
    small_task,
    split_setting,
)
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop

AWAY = OnOff(kind="on_off", online=0.7, mean_down=3.0)
LATE = {"latency": {"kind": "lognormal", "mean": 0.7, "sigma": 1.2}}
BAD = {**LATE, "loss": 0.3}
"""With AWAY: messages that are late, overtaken and lost between agents that come and go."""


def setting_of(*, task=None, graph=None, clock=None, availability=None, stop=None, seed=1, **network) -> Setting:
    """A setting with a small task and graph and Poisson clocks; further arguments are fields of the network."""
    task = task or small_task()
    return Setting(
        task=task,
        graph=graph or small_graph(task.agents),
        clock=clock or Poisson(kind="poisson"),
        network=NetworkParameters.model_validate(network),
        availability=availability or Always(kind="always"),
        stop=stop or Stop(time=20.0),
        draws=Draws(seed),
    )


def gradient(task, agent, model, mu):
    """(p,) gradient of an agent's mean loss, and of mu / 2 times the model's square, computed by hand."""
    shard = task.train.shard(agent)
    if not len(shard):
        return mu * model
    return mu * model + task.loss.slope(shard.features @ model, shard.labels) @ shard.features / len(shard)


class Watcher:
    """An observer that looks away."""

    def woke(self, world, agent):
        pass

    def sent(self, world, message, delay, lost):
        pass

    def arrived(self, world, message, up, newest):
        pass


def example(protocol, *, time=60.0, split=False, **fields):
    """A small world after some time without delays and losses; with ``split`` parties hold columns, around a centre."""
    parameters = protocol_parameters(protocol, fields)
    if not split:
        return run_small(protocol, parameters, empty=False, time=time)
    world = admitted_world(split_setting(time=time), protocol, parameters)
    EventEngine().run(world)
    return world
