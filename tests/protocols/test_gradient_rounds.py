"""D-SGD, gradient tracking, EXTRA and NIDS against loops over matrices, their limits and what losses do to them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hushnet.agents.models import Perceptron
from hushnet.protocols.algorithms import choco_sgd
from hushnet.protocols.algorithms.choco_sgd import ChocoSGD
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD
from hushnet.protocols.algorithms.extra import Extra
from hushnet.protocols.algorithms.gradient_tracking import GradientTracking
from hushnet.protocols.algorithms.nids import Nids
from hushnet.protocols.steps import mixing_weights
from hushnet.simulator.contract.bench import protocol_parameters, small_graph, small_setting, small_task
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive, prepared
from .worlds import gradient, setting_of

ALPHA, MU = 0.2, 0.05
PROTOCOLS = {
    "combine_then_adapt": (DecentralisedSGD, {"order": "combine_then_adapt"}),
    "adapt_then_combine": (DecentralisedSGD, {"order": "adapt_then_combine"}),
    "local_sgd": (DecentralisedSGD, {"order": "adapt_then_combine", "local_steps": 3}),
    "muffliato_sgd": (DecentralisedSGD, {"order": "adapt_then_combine", "gossip_steps": 3}),
    "muffliato_sgd_fast": (
        DecentralisedSGD,
        {"order": "adapt_then_combine", "gossip_steps": 3, "gossip": "chebyshev"},
    ),
    "lazy": (DecentralisedSGD, {"mixing": "lazy"}),
    "choco_sgd": (ChocoSGD, {"keep": 2, "consensus_step": 0.4}),
    "choco_sign": (ChocoSGD, {"compression": "sign", "consensus_step": 0.4, "precision": "float32"}),
    "gradient_tracking": (GradientTracking, {}),
    "extra": (Extra, {}),
    "nids": (Nids, {}),
}
EXACT = ("gradient_tracking", "extra", "nids")


def task_of(model):
    """The small task with a linear model, or with a net from first parameters that are not zero."""
    task = small_task(agents=6)
    if model == "linear":
        return task
    net, loss = Perceptron(kind="perceptron", hidden=[4], activation="tanh").bind(3, task.loss, 2)
    return replace(task, model=net, loss=loss, first=net.first(np.random.default_rng(7)))


def run(name, rounds, *, engine=None, network=None, alpha=ALPHA, model="linear"):
    protocol, fields = PROTOCOLS[name]
    setting = setting_of(task=task_of(model), stop=Stop(updates=rounds), seed=3, **(network or {}))
    parameters = protocol_parameters(protocol, {"step_size": alpha, "mu": MU, **fields})
    world = World(setting, protocol, parameters)
    driver = prepared(world, engine or EventEngine())
    found = {}
    if engine is None:
        make = world.protocol.steps.make

        def watched(phase, me):
            make(phase, me)
            if phase == "step":
                found[me.agent, me.updates + 1] = me.model.copy()

        world.protocol.steps.make = watched
    drive(driver)
    return world, found


def by_matrices(name, rounds, alpha=ALPHA, model="linear"):
    """Models after so many rounds, by the papers' iterations for all agents at once."""
    task, graph = task_of(model), small_graph(6)
    n = task.agents
    mixing = np.zeros((n, n))
    mixing[graph.tails, graph.heads] = mixing_weights(graph, "metropolis") / (2 if name == "lazy" else 1)
    mixing += np.diag(1 - mixing.sum(axis=1))

    def gradients(models):
        if task.model is None:
            return np.array([gradient(task, i, models[i], MU) for i in range(n)])
        found = MU * models
        for i, shard in enumerate(map(task.train.shard, range(n))):
            rows = shard.features, shard.labels, np.array([0, len(shard)])
            found[i] += task.model.mean_gradients(models[i : i + 1], *rows, task.loss)[0]
        return found

    x = np.zeros((n, task.dimension)) if task.first is None else np.tile(task.first, (n, 1))
    if name in ("combine_then_adapt", "lazy"):
        for _ in range(rounds):
            x = mixing @ x - alpha * gradients(x)
    elif name in ("adapt_then_combine", "local_sgd"):
        for _ in range(rounds - 1):  # its first step has nothing to mix
            for _ in range(3 if name == "local_sgd" else 1):
                x = x - alpha * gradients(x)
            x = mixing @ x
    elif name.startswith("muffliato_sgd"):  # algorithm 2, whose model is that before the last gradient
        gap = 1 - np.sort(np.linalg.eigvalsh(mixing))[-2]
        gamma = 2 * (1 - np.sqrt(gap * (1 - gap / 4))) / (1 - gap / 2) ** 2 if name.endswith("fast") else 1.0
        for _ in range((rounds - 1) // 3):
            y = before = x - alpha * gradients(x)
            for _ in range(3):
                before, y = y, gamma * mixing @ y + (1 - gamma) * before
            x = y
    elif name in ("choco_sgd", "choco_sign"):
        hats = np.zeros_like(x)
        for _ in range(rounds - 1):
            half = x - alpha * gradients(x)
            difference = half - hats
            for i in range(n):  # all but the two largest are left out, or all have one size
                if name == "choco_sign":
                    size = float(np.float32(sum(abs(difference[i])) / task.dimension))
                    difference[i] = [-size if one < 0 else size for one in difference[i]]
                    continue
                small = sorted(range(task.dimension), key=lambda c, i=i: -abs(difference[i, c]))[2:]
                difference[i, small] = 0.0
            hats = hats + difference
            x = half + 0.4 * (mixing @ hats - hats)
    elif name == "gradient_tracking":
        y = gradients(x)
        for _ in range(rounds - 1):
            following = mixing @ x - alpha * y
            x, y = following, mixing @ y + gradients(following) - gradients(x)
    elif name == "extra":
        before, x = x, mixing @ x - alpha * gradients(x)
        half = (np.eye(n) + mixing) / 2
        for _ in range(rounds - 1):
            step = alpha * (gradients(x) - gradients(before))
            before, x = x, x + mixing @ x - half @ before - step
    else:
        half = (np.eye(n) + mixing) / 2
        before, x = x, x - alpha * gradients(x)
        for _ in range(rounds - 2):
            step = alpha * (gradients(x) - gradients(before))
            before, x = x, half @ (2 * x - before - step)
    return x


@pytest.mark.parametrize("model", ["linear", "perceptron"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_lossless_rounds_are_the_papers_iteration(name, model):
    """NIDS has x(1) after its second step."""
    _, found = run(name, 25, network={"latency": {"kind": "exponential", "mean": 0.7}}, model=model)
    for rounds in (1, 2, 3, 25)[name == "nids" :]:
        models = [found[agent, rounds] for agent in range(6)]
        np.testing.assert_allclose(models, by_matrices(name, rounds, model=model), rtol=1e-12, atol=1e-14)


def distance(name, rounds, alpha=0.5, **fields):
    """Largest distance of an agent's model to the minimum of F."""
    world, _ = run(name, rounds, alpha=alpha, engine=BatchedEngine(), **fields)
    best, _ = world.protocol.objective().minimise()
    return float(np.abs(world.state.agent["model"].rows - best).max())


@pytest.mark.parametrize("name", EXACT)
def test_exact_methods_end_in_the_minimum_at_a_linear_rate(name):
    distances = [distance(name, rounds) for rounds in (100, 300, 900)]
    assert distances[2] < 1e-6
    assert distances[1] < 0.3 * distances[0]


def test_decentralised_sgd_ends_at_a_distance_in_proportion_to_its_step_size():
    """Yuan, Ling, Yin 2016: the floor is O(alpha), and more rounds do not lower it."""
    name = "combine_then_adapt"
    floor, later, smaller = (distance(name, rounds, alpha) for rounds, alpha in ((900, 0.5), (1800, 0.5), (1800, 0.25)))
    assert later == pytest.approx(floor, rel=1e-2)
    assert 1e-3 < smaller < 0.7 * floor
    assert smaller > 0.3 * floor


@pytest.mark.parametrize("engine", [EventEngine, BatchedEngine])
@pytest.mark.parametrize(
    ("fields", "bits"),
    [
        ({"keep": 2}, 2 * (32 + 64)),
        ({"keep": 2, "compression": "random_k", "precision": "float16"}, 2 * (32 + 16)),
        ({"compression": "sign", "precision": "float32"}, 3 + 32),
        ({"compression": "quantise", "levels": 4, "precision": "float16"}, 3 * (1 + 3) + 16),
    ],
)
def test_the_traffic_counts_the_bytes_that_a_compressed_message_takes(engine, fields, bits):
    setting = small_setting(network=NetworkParameters.model_validate({"loss": 0.2, "header_bytes": 7}), time=30.0)
    world = World(setting, ChocoSGD, protocol_parameters(ChocoSGD, {"step_size": ALPHA, **fields}))
    drive(prepared(world, engine()))
    links, size = world.traffic.links, world.traffic.bytes
    empty = links.sent - world.traffic.vectors  # acknowledgements
    assert world.traffic.conserved
    assert size.sent == world.traffic.vectors * (-(-bits // 8) + 7) + empty * 7
    assert world.traffic.vectors > 50


def test_quantised_differences_are_right_in_the_mean_and_never_too_large():
    """Q(v) tau has mean v; 4,000 draws of seed 5, each coordinate within 5 standard errors."""
    s, p = 4, 3
    me = SimpleNamespace(compression="quantise", levels=s, precision="float64")
    vectors, rng = np.tile([0.5, -2.0, 0.0], (4000, 1)), np.random.default_rng(5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choco_sgd, "uniform", lambda me, size: rng.random((4000, size)))
        found = choco_sgd.compressed(me, vectors) * (1 + min(p / s**2, np.sqrt(p) / s))
    unit = np.linalg.norm(vectors[0]) / s
    assert np.allclose(found / unit, np.round(found / unit))
    assert (np.abs(found) <= s * unit * (1 + 1e-12)).all()
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - vectors[0]) <= 5 * error + 1e-12).all()


@pytest.mark.parametrize(("unit", "bound"), [("record", 0.65), ("agent", 0.3)])
def test_a_private_step_of_a_net_clips_each_row_or_the_mean_and_never_the_penalty(unit, bound, monkeypatch):
    """W (x - alpha (mean_k g_k min(1, C / |g_k|) + mu x)) up to noise of 1e-13, each row's g_k by a call of its own."""
    privacy = {"mechanism": "gaussian", "multiplier": 1e-13, "updates": 5, "clip": bound, "unit": unit}
    private = DecentralisedSGD, {"order": "adapt_then_combine", "privacy": privacy}
    monkeypatch.setitem(PROTOCOLS, "private", private)
    task, graph = task_of("net"), small_graph(6)
    moved, lengths = [], []
    for agent in range(6):
        shard, each = task.shard(agent), unit == "record"
        cuts = np.arange(len(shard) + 1) if each else np.array([0, len(shard)])
        sums = np.zeros(task.dimension)
        for k, end in pairwise(cuts):
            rows = shard.features[k:end], shard.labels[k:end], np.array([0, end - k]), task.loss
            one = task.model.mean_gradients(task.first[None], *rows)[0]
            lengths.append(np.linalg.norm(one))
            sums += one * min(1.0, bound / max(lengths[-1], 1e-300)) / (len(cuts) - 1)
        moved.append(task.first - ALPHA * (sums + MU * task.first))
    assert min(lengths) < bound < max(lengths)
    mixing = np.zeros((6, 6))
    mixing[graph.tails, graph.heads] = mixing_weights(graph, "metropolis")
    mixing += np.diag(1 - mixing.sum(axis=1))
    _, found = run("private", 2, model="net")
    np.testing.assert_allclose([found[agent, 2] for agent in range(6)], mixing @ moved, rtol=0, atol=1e-12)
