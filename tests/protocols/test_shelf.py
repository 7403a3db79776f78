"""Gossip learning, federated averaging and random-walk SGD against independent loops, and what losses do to them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.availability import OnOff
from hushnet.agents.graph import Graph
from hushnet.protocols.algorithms.divshare import DivShare
from hushnet.protocols.algorithms.federated_averaging import FederatedAveraging
from hushnet.protocols.algorithms.gossip_learning import GossipLearning
from hushnet.protocols.algorithms.random_walk_sgd import RandomWalkSGD
from hushnet.protocols.catalog import resolve
from hushnet.simulator.contract import check_contract
from hushnet.simulator.contract.bench import protocol_parameters, small_graph, small_setting, small_task
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.network.graph_changes import GRAPH_CHANGES
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.network.topology import TOPOLOGIES
from hushnet.simulator.world.world import World

from ..engine.driving import drive, prepared
from ..engine.helpers import EventLog

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


def gradient(task, agent, model):
    shard = task.train.shard(agent)
    own = MU * model
    if len(shard):
        own = own + task.loss.slope(shard.features @ model, shard.labels) @ shard.features / len(shard)
    return own


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
        models[agent] = models[agent] - ALPHA * gradient(task, agent, models[agent])
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
    worlds = [
        run(FederatedAveraging, graph=STAR, stop=Stop(updates=2 * iterations + 1), engine=engine, **given)
        for engine in (EventEngine(), BatchedEngine())
    ]
    x, rows = np.zeros(task.dimension), np.diff(task.train.offsets).astype(float)
    for _ in range(iterations):
        each = []
        for agent in range(AGENTS):
            local = x
            for _ in range(local_steps):
                local = local - ALPHA * gradient(task, agent, local)
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
            halves[agent] = halves[agent] - ALPHA * gradient(task, agent, halves[agent])
    np.testing.assert_allclose(world.state.agent["model"].rows, models, rtol=1e-12, atol=1e-14)
    assert world.traffic.links.sent == sum(world.updates * count * np.minimum(peers, small_graph(AGENTS).degrees))
    assert world.traffic.vectors * count == world.traffic.links.sent


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
                model = model - ALPHA * gradient(task, agent, model)
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
            x, count = x - ALPHA * gradient(task, holder, x), count + 1
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


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("gossip_learning", {}),
        ("gossip_learning", {"batch": 2, "schedule": "rounds"}),
        ("divshare", {"batch": 2, "fragments": 3}),
        ("federated_averaging", {"batch": 2, "local_steps": 2}),
        ("random_walk_sgd", {"batch": 2}),
        ("choco_sgd", {"compression": "quantise", "precision": "float16"}),
        ("choco_sgd", {"compression": "sign"}),
    ],
)
def test_they_fit_the_contract(kind, fields):
    check_contract(resolve(kind), fields)
