"""Methods of the shelf and baselines against independent loops, and what losses do to them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.availability import OnOff
from hushnet.agents.graph import Graph
from hushnet.agents.objectives.objectives import local_gradients
from hushnet.protocols.algorithms.ad_psgd import AdPsgd
from hushnet.protocols.algorithms.baselines import Consensus
from hushnet.protocols.algorithms.dada import Dada
from hushnet.protocols.algorithms.divshare import DivShare
from hushnet.protocols.algorithms.federated_averaging import FederatedAveraging
from hushnet.protocols.algorithms.gossip_learning import GossipLearning
from hushnet.protocols.algorithms.random_walk_sgd import RandomWalkSGD
from hushnet.simulator.contract.bench import protocol_parameters, run_small, small_graph, small_setting, small_task
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.network.graph_changes import GRAPH_CHANGES
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.network.topology import TOPOLOGIES
from hushnet.simulator.world.world import World
from scipy.optimize import minimize

from ..engine.driving import drive, prepared
from ..engine.helpers import EventLog
from .worlds import gradient, setting_of

ALPHA, MU, AGENTS = 0.2, 0.05, 6
LATE = {"latency": {"kind": "exponential", "mean": 0.7}}
STAR = Graph.from_edges(AGENTS, np.zeros(AGENTS - 1, dtype=np.int64), np.arange(1, AGENTS), np.ones(AGENTS - 1))


def run(protocol, *, graph=None, network=None, stop=None, engine=None, log=None, changes=None, away=None, **fields):
    """Run a world in the small setting, whose balances are checked after every event if there is a log."""
    setting = dataclasses.replace(
        small_setting(agents=AGENTS, network=NetworkParameters.model_validate(network or LATE)),
        graph=graph or small_graph(AGENTS),
        stop=stop or Stop(time=20.0),
        changes=changes,
        **({} if away is None else {"availability": away}),
    )
    parameters = protocol_parameters(protocol, {"step_size": ALPHA, "mu": MU, **fields})
    world = World(setting, protocol, parameters, observer=log)
    if log is not None:
        log.watch(world)
    return drive(prepared(world, engine or EventEngine()))


def test_gossip_learning_merges_by_age_as_a_loop_over_what_was_sent_and_heard():
    """Replayed from the log: who has woken when, and what has arrived since its last step."""
    log, task = EventLog(), small_task(agents=AGENTS)
    complete = TOPOLOGIES["complete"].model_validate({"kind": "complete"}).build(task, rng=np.random.default_rng(1))
    peers = GRAPH_CHANGES["sample"].model_validate({"kind": "sample", "peers": 1})
    log.woke = lambda world, agent: log.events.append(("woke", agent.index))
    log.arrived = lambda world, message, up, newest: (
        vars(log).update(landed=log.landed + 1),
        log.events.append(("arrived", message.receiver, message.sender, message.vector.copy(), newest)),
    )
    world = run(GossipLearning, graph=complete, changes=peers, log=log)
    models, ages = np.zeros((AGENTS, task.dimension)), np.zeros(AGENTS)
    new: list[dict[int, np.ndarray]] = [{} for _ in range(AGENTS)]
    for what, agent, *event in log.of("woke", "arrived"):
        if what == "arrived":
            if event[-1]:
                new[agent][event[0]] = event[1]
            continue
        weights = np.array([ages[agent], *(one[-1] for one in new[agent].values())])
        vectors = np.array([models[agent], *(one[:-1] for one in new[agent].values())])
        if weights.sum() > 0:
            models[agent] = weights @ vectors / weights.sum()
        models[agent] = models[agent] - ALPHA * gradient(task, agent, models[agent], MU)
        ages[agent], new[agent] = weights.max() + 1, {}
    np.testing.assert_allclose(world.state.agent["model"].rows, models, rtol=1e-12, atol=1e-14)
    assert world.state.agent["aged"].rows[:, -1].tolist() == ages.tolist()
    assert ages.max() > world.updates.max() - 1
    assert world.traffic.links.sent == world.updates.sum()


@pytest.mark.parametrize("weighting", ["rows", "equal"])
@pytest.mark.parametrize(("local_steps", "iterations"), [(1, 4), (3, 5)])
def test_federated_averaging_is_mcmahans_iteration(weighting, local_steps, iterations):
    task = small_task(agents=AGENTS)
    given = {"local_steps": local_steps, "weighting": weighting}
    worlds = [  # the last one amid an iteration, when the server has descended, too
        run(FederatedAveraging, graph=STAR, stop=Stop(updates=2 * iterations + more), engine=engine, **given)
        for engine, more in ((EventEngine(), 1), (BatchedEngine(), 1), (EventEngine(), 2))
    ]
    x, rows = np.zeros(task.dimension), np.diff(task.train.offsets).astype(float)
    for _ in range(iterations):
        each = []
        for agent in range(AGENTS):
            local = x
            for _ in range(local_steps):
                local = local - ALPHA * gradient(task, agent, local, MU)
            each.append(local)
        x = np.average(each, axis=0, weights=rows if weighting == "rows" else None)
    for world in worlds:
        np.testing.assert_allclose(world.protocol.models(world.state)[1], x, rtol=1e-12, atol=1e-14)
        assert world.traffic.vectors >= 2 * iterations * (AGENTS - 1)
    assert worlds[0].state.agent["model"].rows.tobytes() == worlds[1].state.agent["model"].rows.tobytes()
    assert "batched" in worlds[1].engine


def test_divshare_averages_coordinates_over_the_fragments_that_have_come():
    """Replayed from the log: what has come since an agent's last step, by sender and fragment (Biswas et al. 2025)."""
    log, task, count, peers = EventLog(), small_task(agents=AGENTS), 2, 2
    log.woke = lambda world, agent: log.events.append(("woke", agent.index))
    log.arrived = lambda world, message, up, newest: (
        vars(log).update(landed=log.landed + 1),
        log.events.append(("arrived", message.receiver, message.sender, message.kind, message.vector.copy(), newest)),
    )
    given = {"fragments": count, "peers": peers, "local_steps": 2}
    world = run(DivShare, log=log, network={**LATE, "loss": 0.2}, **given)
    halves, new = np.zeros((AGENTS, task.dimension)), [{} for _ in range(AGENTS)]
    models = halves.copy()
    for what, agent, *event in log.of("woke", "arrived"):
        if what == "arrived":
            if event[-1]:
                new[agent][event[0], event[1]] = event[2]
            continue
        for c in range(task.dimension):
            came = [vector[c // count] for (_, kind), vector in new[agent].items() if kind == f"fragment_{c % count}"]
            models[agent, c] = (halves[agent, c] + sum(came)) / (1 + len(came))
        halves[agent], new[agent] = models[agent], {}
        for _ in range(2):
            halves[agent] = halves[agent] - ALPHA * gradient(task, agent, halves[agent], MU)
    np.testing.assert_allclose(world.state.agent["model"].rows, models, rtol=1e-12, atol=1e-14)
    assert world.traffic.links.sent == sum(world.updates * count * np.minimum(peers, small_graph(AGENTS).degrees))
    assert world.traffic.vectors * count == world.traffic.links.sent


@pytest.mark.parametrize("every", [None, 1, 3])
def test_dada_moves_models_and_weights_as_a_loop_over_what_has_come(every):
    """Zantedeschi et al. 2020, (4) and algorithms 1 and 2, by matrices of all agents' own weights."""
    log, task, graph = EventLog(), small_task(agents=AGENTS, empty=False), small_graph(AGENTS)
    log.woke = lambda world, agent: log.events.append(("woke", agent.index))
    log.arrived = lambda world, message, up, newest: (
        vars(log).update(landed=log.landed + 1),
        log.events.append(("arrived", message.receiver, message.sender, message.vector.copy(), newest)),
    )
    beta, mu, mu_graph, penalty, delta = 3.0, 0.8, 0.7, 0.1, 0.5
    given = {"l1_radius": beta, "mu": mu, "mu_graph": mu_graph, "lambda_graph": penalty, "delta": delta}
    world = drive_dada(graph_every=every, network={**LATE, "loss": 0.2}, stop=Stop(time=30.0), log=log, **given)
    trust = task.train.counts / task.train.counts.max()
    near = np.zeros((AGENTS, AGENTS))
    near[graph.tails, graph.heads] = graph.weights
    weights, models, steps = near / near.sum(axis=1).max(), np.zeros((AGENTS, task.dimension)), np.zeros(AGENTS, int)
    told = [[(np.zeros(task.dimension), 0.0, 0.0) for _ in range(AGENTS)] for _ in range(AGENTS)]
    new = [set() for _ in range(AGENTS)]

    def loss(agent):
        shard = task.train.shard(agent)
        return trust[agent] * np.mean(task.loss.value(shard.features @ models[agent], shard.labels))

    for what, i, *event in log.of("woke", "arrived"):
        if what == "arrived":
            if event[-1]:
                told[i][event[0]] = (event[1][:-2], *event[1][-2:])
                new[i].add(event[0])
            continue
        if every is not None and (steps[i] + 1) % every == 0:
            slopes = {}
            for j in new[i]:
                theta, value, degree = told[i][j]
                slopes[j] = loss(i) + value + mu / 2 * np.sum((models[i] - theta) ** 2)
                slopes[j] += mu_graph * 2 * penalty * weights[i, j]
                slopes[j] -= mu_graph * (1 / (weights[i].sum() + delta) + 1 / (degree + delta))
            lipschitz = mu_graph * ((len(slopes) + 1) / delta**2 + 2 * penalty)
            for j, slope in slopes.items():
                weights[i, j] = max(weights[i, j] - slope / lipschitz, 0.0)
        new[i], degree = set(), weights[i].sum()
        pulled = degree * models[i] - sum(weights[i, j] * told[i][j][0] for j in range(AGENTS))
        g = (degree or 1) * trust[i] * gradient(task, i, models[i], 0.0) + mu * pulled
        if np.abs(g).max() > 0:
            vertex = np.zeros(task.dimension)
            vertex[np.argmax(np.abs(g))] = -beta * np.sign(g[np.argmax(np.abs(g))])
            gamma = 2 * AGENTS / (steps[i] * AGENTS + 2 * AGENTS)
            models[i] = (1 - gamma) * models[i] + gamma * vertex
        steps[i] += 1
    np.testing.assert_allclose(world.state.agent["model"].rows, models, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(world.state.edge["weight"].rows[:, 0], weights[graph.tails, graph.heads], atol=1e-12)
    everyone = sum(world.updates * graph.degrees)
    assert world.traffic.links.sent == everyone if every is None else 0 < world.traffic.links.sent < everyone


def drive_dada(*, network=None, stop, log=None, **fields):
    """A run in the small setting, all of whose agents have rows."""
    setting = dataclasses.replace(
        small_setting(agents=AGENTS, network=NetworkParameters.model_validate(network or LATE)),
        task=small_task(agents=AGENTS, empty=False),
        graph=small_graph(AGENTS),
        stop=stop,
    )
    world = World(setting, Dada, protocol_parameters(Dada, fields), observer=log)
    if log is not None:
        log.watch(world)
    return drive(prepared(world, EventEngine()))


def test_the_learned_weights_are_those_that_a_solver_finds_for_the_models_of_the_end():
    """h(w) minimised by scipy over one weight for both ends; models stand still with mu = 0 and steps that fade."""
    task, graph = small_task(agents=AGENTS, empty=False), small_graph(AGENTS)
    world = drive_dada(stop=Stop(time=1000.0), mu=0.0, mu_graph=0.3, lambda_graph=0.2, delta=0.5, peers=9)
    trust = task.train.counts / task.train.counts.max()
    models, value = world.state.agent["model"].rows, np.zeros(AGENTS)
    for i in range(AGENTS):
        shard = task.train.shard(i)
        value[i] = trust[i] * np.mean(task.loss.value(shard.features @ models[i], shard.labels))
    one = np.flatnonzero(graph.tails < graph.heads)
    ends = np.stack((graph.tails[one], graph.heads[one]))

    def h(w):
        degrees = sum(np.bincount(end, w, AGENTS) for end in ends)
        return value @ degrees + 0.3 * (0.2 * w @ w - np.log(degrees + 0.5).sum())

    best = minimize(h, np.full(len(one), 0.1), bounds=[(0, None)] * len(one), options={"ftol": 1e-15, "gtol": 1e-9}).x
    np.testing.assert_allclose(world.state.edge["weight"].rows[one, 0], best, atol=2e-3)
    assert best.min() < 1e-6 < best.max()


def test_the_server_draws_its_clients_anew_for_each_iteration():
    """Algorithm 1 of McMahan et al. 2017 with C K = 2, replayed with the clients that were sent a model."""
    task, log = small_task(agents=AGENTS), EventLog()
    log.woke = lambda world, agent: None
    sample = GRAPH_CHANGES["sample"].model_validate({"kind": "sample", "peers": 2})
    given = {"local_steps": 2, "weighting": "rows"}
    world = run(FederatedAveraging, graph=STAR, stop=Stop(updates=21), log=log, changes=sample, **given)
    common = [where for _, _, where, _, _, kind, _ in log.of("sent") if kind == "common"]
    local = [where for _, _, where, _, _, kind, _ in log.of("sent") if kind == "local"]
    x, rows, drawn = np.zeros(task.dimension), np.diff(task.train.offsets).astype(float), []
    for number in range(10):
        chosen = sorted(receiver for _, receiver, tick in common if tick == 2 * number)
        assert sorted(sender for sender, _, tick in local if tick == 2 * number + 1) == chosen
        assert len(set(chosen)) == 2
        drawn.append(tuple(chosen))
        each = []
        for agent in (0, *chosen):
            model = x
            for _ in range(2):
                model = model - ALPHA * gradient(task, agent, model, MU)
            each.append(model)
        x = np.average(each, axis=0, weights=rows[[0, *chosen]])
    assert len(set(drawn)) > 3
    np.testing.assert_allclose(world.protocol.models(world.state)[1], x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("loss", "away"), [(0.0, None), (0.3, OnOff(kind="on_off", online=0.7, mean_down=2.0))])
def test_one_token_walks_and_carries_gradient_descent_along_its_path(loss, away):
    log, task = EventLog(), small_task(agents=AGENTS)
    log.woke = lambda world, agent: None
    world = run(RandomWalkSGD, network={**LATE, "loss": loss}, stop=Stop(time=150.0), log=log, away=away)
    first: dict[int, tuple] = {}
    for _, _, (sender, receiver, _), _, _, kind, vector in log.of("sent"):
        if kind == "token":
            first.setdefault(int(vector[-1]), (sender, receiver, np.array(vector[:-1])))
            assert first[int(vector[-1])][0:2] == (sender, receiver)  # a repeat says the same to the same
    assert len(first) > 12
    x, holder, count = np.zeros(task.dimension), 0, 0
    for number, (sender, receiver, carried) in sorted(first.items()):
        assert sender == holder
        while count < number:  # steps of a token that has stayed
            x, count = x - ALPHA * gradient(task, holder, x, MU), count + 1
        np.testing.assert_allclose(carried, x, rtol=1e-12, atol=1e-14)
        holder = receiver
    assert world.state.agent["walk"].rows[:, 0].sum() <= 1


class Visits:
    """Observer that counts the steps of agents that have held the token: each has a number of its own."""

    def __init__(self):
        self.count, self.last = np.zeros(AGENTS), np.zeros(AGENTS)

    def woke(self, world, agent):
        taken = world.state.agent["walk"].rows[agent.index, 1]
        self.count[agent.index] += taken != self.last[agent.index]
        self.last[agent.index] = taken

    def sent(self, *_):
        """Nothing to count."""

    arrived = sent


@pytest.mark.parametrize("weights", ["metropolis", "simple"])
def test_the_walk_visits_all_agents_alike_by_metropolis_and_by_degree_if_it_is_simple(weights):
    """Within .12, where none of 400 walks of 1,500 steps of the chain was off by .1; the two laws are .33 apart."""
    setting = dataclasses.replace(small_setting(agents=AGENTS), graph=STAR, stop=Stop(time=3000.0))
    visits = Visits()
    parameters = protocol_parameters(RandomWalkSGD, {"walk_weights": weights})
    drive(prepared(World(setting, RandomWalkSGD, parameters, observer=visits), EventEngine()))
    law = np.full(AGENTS, 1 / AGENTS) if weights == "metropolis" else STAR.degrees / STAR.degrees.sum()
    assert visits.count.sum() > 1500
    assert np.abs(visits.count / visits.count.sum() - law).max() < 0.12


STEP = 0.1


@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_without_delays_it_is_the_sequential_loop(momentum):
    setting = setting_of(task=small_task(agents=6), stop=Stop(time=40.0), seed=5)
    world = World(setting, AdPsgd, protocol_parameters(AdPsgd, {"step_size": STEP, "mu": MU, "momentum": momentum}))
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
        velocities[caller] = momentum * velocities[caller] + gradient(task, caller, models[caller], MU)
        models[[caller, callee]] = (models[caller] + models[callee]) / 2
        models[caller] -= STEP * velocities[caller]
    assert len(calls) > 100
    np.testing.assert_allclose(world.state.agent["model"].rows, models, rtol=1e-12, atol=1e-14)


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
