"""Steps a second by the size of the model, one by one and batched: ``python -m tests.benchmarks.models``.

Agents of a random regular graph learn digits by decentralised SGD in rounds, with 16 rows a gradient. One by one is the
event engine, batched the other; both make the same steps to every bit. Times are processor time of one thread.
``--agents 1000 --updates 4 --peak float32`` prints what 1,000 agents of 100,026 numbers take in memory at most.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, get_args

import numpy as np
from hushnet.agents.availability import Always
from hushnet.agents.models.model_registry import Precision
from hushnet.agents.models.torch_model import NETS
from hushnet.agents.tasks import TASKS
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD, DecentralisedSGDParameters
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World
from threadpoolctl import threadpool_limits

from ..engine.driving import drive, prepared
from .cases import SEED, random_regular

MODELS: Mapping[str, Mapping[str, Any]] = {
    "softmax": {"kind": "softmax"},
    "perceptron of 32": {"kind": "perceptron", "hidden": [32]},
    "perceptron of 256": {"kind": "perceptron", "hidden": [256]},
    "perceptron of 1,316": {"kind": "perceptron", "hidden": [1316]},
}
HIDDEN = (32, 256, 1316)
if find_spec("torch") is not None:
    nets = {f"torch, {hidden}": {"kind": "torch", "net": f"net.py:Net{hidden}"} for hidden in HIDDEN}
    MODELS = {**MODELS, **nets, **{f"{name}, vmap": {**net, "vmap": True} for name, net in nets.items()}}


def net_of(hidden: int, features: int, outputs: int) -> Any:
    """The perceptron of so many hidden units as a net of PyTorch."""
    from torch import nn

    return nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


NETS.update({f"net.py:Net{hidden}": partial(net_of, hidden) for hidden in HIDDEN})
ENGINES = {"one by one": EventEngine, "batched": BatchedEngine}


def world_of(model: Mapping[str, Any], engine: str, agents: int, updates: int) -> World:
    """A world that is to make so many steps of every agent."""
    kind = TASKS["digits"].model_validate(
        {"kind": "digits", "split": {"kind": "even", "agents": agents}, "model": model}
    )
    draws = Draws(SEED)
    task = kind.build(rng=draws.generator("data"), data_dir=None)
    setting = Setting(
        task=kind.with_model(task, rng=draws.generator("model")),
        graph=random_regular(agents, 4, np.random.default_rng(SEED)),
        clock=Poisson(kind="poisson"),
        network=NetworkParameters(),
        availability=Always(kind="always"),
        stop=Stop(updates=updates),
        draws=draws,
    )
    parameters = DecentralisedSGDParameters(kind="decentralised_sgd", step_size=0.1, batch=16)
    return prepared(World(setting, DecentralisedSGD, parameters), ENGINES[engine]())


def measure(model: Mapping[str, Any], engine: str, agents: int, updates: int) -> tuple[float, World]:
    """Steps a second of processor time, and the world at its end."""
    drive(world_of(model, engine, agents, 2))
    world = world_of(model, engine, agents, updates)
    with threadpool_limits(limits=1):
        begun = time.process_time()
        drive(world)
        return world.activations / (time.process_time() - begun), world


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.models", description=__doc__)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument(
        "--peak", choices=get_args(Precision), help="only the peak of memory, of 100,026 numbers an agent"
    )
    parser.add_argument("--engine", choices=list(ENGINES), default="batched", help="for --peak")
    given = parser.parse_args(arguments)
    if given.peak is not None:
        model = {**MODELS["perceptron of 1,316"], "precision": given.peak}
        world = drive(world_of(model, given.engine, given.agents, given.updates))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{given.agents:,} agents, {world.activations:,} steps, {given.engine}, {given.peak}: {peak:.1f} GiB")
        return 0
    print("| model | parameters | one by one, steps a second | batched | times |", "| --- " * 5 + "|", sep="\n")
    for name, model in MODELS.items():
        rates, world = [], None
        for engine in ENGINES:
            rate, world = measure(model, engine, given.agents, given.updates)
            rates.append(rate)
        assert world is not None
        width = world.setting.task.dimension
        print(f"| {name} | {width:,} | {rates[0]:,.0f} | {rates[1]:,.0f} | {rates[1] / rates[0]:.1f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
