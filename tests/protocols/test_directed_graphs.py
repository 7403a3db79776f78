"""Directed graphs: who sends to whom, what is refused, and stochastic gradient push on them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD
from hushnet.protocols.algorithms.stochastic_gradient_push import StochasticGradientPush
from hushnet.protocols.steps import mixing_weights
from hushnet.simulator import run
from hushnet.simulator.cli import main
from hushnet.simulator.contract.bench import protocol_parameters, small_setting, small_task
from hushnet.simulator.engine.selection import EventEngine, engine_for
from hushnet.simulator.network.graphs import describe
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.network.topology import TOPOLOGIES
from hushnet.simulator.world.world import World

from ..engine.driving import drive, prepared
from .test_changing_graphs import pushed

ALPHA, MU, AGENTS = 0.2, 0.05, 6
KINDS = {
    "directed_ring": {"reach": 2},
    "exponential": {},
    "directed_random": {"probability": 0.4},
}


def graph_of(kind, agents=AGENTS):
    made = TOPOLOGIES[kind].model_validate({"kind": kind, **KINDS[kind]})
    return made.build(small_task(agents=agents), rng=np.random.default_rng(6))


def world_of(graph, *, rounds, network=None, schedule="rounds", protocol=StochasticGradientPush, **fields):
    network = NetworkParameters.model_validate(network or {"latency": {"kind": "exponential", "mean": 0.7}})
    setting = dataclasses.replace(small_setting(agents=AGENTS, network=network), graph=graph, stop=Stop(updates=rounds))
    given = {"step_size": ALPHA, "mu": MU, "schedule": schedule, **fields}
    return World(setting, protocol, protocol_parameters(protocol, given))


def by_loop(arcs, rounds):
    """(n, p) models of stochastic gradient push, Assran et al. 2019, algorithm 1, by the matrix of shares."""
    sent = np.zeros((AGENTS, AGENTS))
    for tail, head in arcs:
        sent[head, tail] = 1.0
    return pushed([sent] * (rounds - 1), AGENTS)


def arcs_of(graph):
    return list(zip(graph.tails[graph.opened].tolist(), graph.heads[graph.opened].tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [1, 2, 30])
def test_lossless_rounds_are_stochastic_gradient_push_and_nothing_goes_the_other_way(kind, rounds):
    graph = graph_of(kind)
    assert graph.directed
    assert len(graph.heads) > graph.opened.sum() or kind == "exponential"
    world = world_of(graph, rounds=rounds)
    drive(prepared(world, engine_for("auto", world)))
    assert world.engine.startswith("batched")
    found = {int(updates) for updates in world.updates}
    models = world.state.agent["model"].rows
    for count in found:
        at = world.updates == count
        np.testing.assert_allclose(models[at], by_loop(arcs_of(graph), count)[at], rtol=1e-12, atol=1e-14)
    assert world.traffic.links.sent == int((world.updates * graph.out_degrees).sum())
    counts = world.traffic.links
    assert counts.sent == counts.delivered + counts.lost + counts.dropped + counts.in_flight
    p = small_task(agents=AGENTS).dimension
    assert world.traffic.bytes.sent == counts.sent * world.network.size(p + 1)


@pytest.mark.parametrize("schedule", ["async", {"kind": "rounds", "patience": 2.0}])
def test_no_weight_is_lost_on_a_directed_graph_that_loses_messages(schedule):
    network = {"loss": 0.3, "latency": {"kind": "exponential", "mean": 1.0}}
    world = world_of(graph_of("directed_ring"), rounds=60, network=network, schedule=schedule)
    drive(prepared(world, EventEngine()))
    assert world.traffic.links.lost > 0
    mass, under_way = world.state.agent["mass"].rows[:, -1], world.protocol.conserved(world.state)["w under way"]
    assert mass.sum() + AGENTS * under_way == pytest.approx(AGENTS, rel=1e-12)
    assert np.abs(mass - 1.0).max() > 0.01


def test_what_needs_an_undirected_graph_or_a_way_back_refuses_a_directed_one():
    graph = graph_of("exponential")
    with pytest.raises(InputError, match="'decentralised_sgd' needs an undirected one"):
        world_of(graph, rounds=3, protocol=DecentralisedSGD)
    with pytest.raises(InputError, match="no way back"):
        world_of(graph, rounds=3, network={"loss": 0.1})


TINY = {
    "schema": 1,
    "scenario": "tiny",
    "task": {"kind": "epsilon_like", "agents": 4, "samples": 20, "dimension": 3, "test_samples": 10},
    "topology": {"kind": "edge_list", "path": "arcs.csv", "directed": True},
    "protocols": {"push": {"kind": "stochastic_gradient_push", "schedule": "rounds", "step_size": 0.5}},
    "stop": {"updates": 20},
    "record": {"every": 5, "metrics": ["objective", "traffic", "conserved"]},
    "figures": [{"kind": "portrait", "y": "updates", "style": {"formats": ["png"]}}],
}
CYCLE = "source,target,weight\n0,1,1\n1,2,1\n2,3,1\n3,0,2\n0,2,1\n"


def test_a_file_has_directions_and_what_is_not_strongly_connected_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("arcs.csv").write_text(CYCLE)
    result = run(TINY)
    assert result.manifests[0]["topology"]["edges"] == 5
    assert result.manifests[0]["topology"]["directed"]
    result.save_figures()
    for rows, fields, says in (
        (CYCLE.replace("3,0,2\n", ""), {}, "4 components that do not all hear of each other"),
        (CYCLE + "0,1,3\n", {}, "listed twice"),
        (CYCLE, {"protocols": {"d": {"kind": "decentralised_sgd"}}}, "needs an undirected one"),
        (CYCLE, {"topology": {"kind": "edge_list", "path": "arcs.csv"}}, ""),
    ):
        Path("arcs.csv").write_text(rows)
        Path("bad.yaml").write_text(json.dumps({**TINY, **fields}))
        assert main(["run", "bad.yaml"]) == (2 if says else 0)
        said = capsys.readouterr().err
        assert says in said
        assert "Traceback" not in said


def test_directed_graphs_are_packed_with_both_directions():
    graph = graph_of("directed_ring")
    made = nx.DiGraph(arcs_of(graph))
    assert sorted(made.edges) == sorted((i, (i + k) % AGENTS) for i in range(AGENTS) for k in (1, 2))
    assert np.array_equal(graph.tails[graph.reverse], graph.heads)
    assert np.array_equal(graph.out_degrees, [made.out_degree(i) for i in range(AGENTS)])
    assert np.array_equal(graph.in_degrees, [made.in_degree(i) for i in range(AGENTS)])
    assert (graph.weights > 0).tolist() == graph.opened.tolist()
    matrix = np.zeros((AGENTS, AGENTS))
    matrix[graph.tails, graph.heads] = mixing_weights(graph, "column_uniform")
    assert (matrix.sum(axis=0) == 2 / 3).all()
    assert np.argwhere(matrix.T).tolist() == sorted(map(list, made.edges))
    with pytest.raises(ValueError, match="the graph is directed; use column_uniform"):
        mixing_weights(graph, "metropolis")
    numbers = describe(graph)
    assert (numbers["edges"], numbers["degree"]["max"], numbers["components"]) == (2 * AGENTS, 2, 1)
