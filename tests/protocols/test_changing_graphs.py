"""Graphs that change: which edges are open when, epidemic learning on them, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols.algorithms.ad_psgd import AdPsgd
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD
from hushnet.protocols.algorithms.epidemic_learning import EpidemicLearning
from hushnet.protocols.algorithms.stochastic_gradient_push import StochasticGradientPush
from hushnet.simulator.contract.bench import protocol_parameters, small_setting, small_task
from hushnet.simulator.engine.selection import engine_for
from hushnet.simulator.network.graphs import describe, graph_line
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.network.topology import TOPOLOGIES
from hushnet.simulator.world.world import World
from pydantic import ValidationError
from scipy import stats

from ..engine.driving import drive, prepared
from .worlds import gradient

ALPHA, MU, AGENTS = 0.2, 0.05, 8
TIMES = "source,target,from,until\n0,1,0,2.5\n1,0,4,5\n2,3,1,100\n"
CHANGES = {
    "sample": ("complete", {"peers": 2}),
    "regular": ("complete", {"peers": 3}),
    "in_turn": ("exponential", {}),
    "matchings": ("ring", {"reach": 2}),
    "times": ("ring", {"path": "times.csv"}),
    "mobility": ("complete", {"radius": 0.4, "speed": 0.1}),
    "fixed": ("ring", {"reach": 2}),
}


def graph_of(kind, topology=None, **fields):
    base, given = CHANGES[kind]
    reach = {name: value for name, value in given.items() if name == "reach"}
    rest = {name: value for name, value in {**given, **fields}.items() if name != "reach"}
    changes = {"kind": kind, **rest}
    made = TOPOLOGIES[topology or base].model_validate({"kind": topology or base, "changes": changes, **reach})
    return made.build(small_task(agents=AGENTS), rng=np.random.default_rng(6)), made.changes


def opening_of(kind, base=None, seed=3, **fields):
    graph, changes = graph_of(kind, **fields)
    return graph, changes.build(graph, range(AGENTS), np.arange(AGENTS, dtype=np.uint64), Draws(seed), base)


def sent_to(graph, opened, tick, now=0.0):
    """(n, n) whether the column's agent sends to the row's."""
    matrix = np.zeros((AGENTS, AGENTS), dtype=int)
    for agent in range(AGENTS):
        matrix[graph.heads[graph.edges_of(agent)][opened(agent, tick, now)], agent] = 1
    return matrix


def test_every_agent_draws_its_peers_uniformly_and_keeps_them_for_a_while():
    """Seed 3; a chi-square test of 1,600 draws with false-alarm probability 1e-4."""
    graph, opened = opening_of("sample", every=2)
    at = [sent_to(graph, opened, tick) for tick in range(800)]
    assert all((one.sum(axis=0) == 2).all() and np.trace(one) == 0 for one in at)
    assert all((at[tick] == at[tick + 1]).all() for tick in range(0, 800, 2))
    drawn = sum(at[::2])[1:, 0]
    assert stats.chisquare(drawn).pvalue > 1e-4
    assert any((at[tick] != at[tick].T).any() for tick in range(10))


def test_a_regular_draw_gives_all_as_many_to_hear_as_to_send_to():
    graph, opened = opening_of("regular")
    at = [sent_to(graph, opened, tick) for tick in range(40)]
    assert all((one.sum(axis=0) == 3).all() and (one.sum(axis=1) == 3).all() for one in at)
    assert len({one.tobytes() for one in at}) > 35


def test_edges_in_turn_are_the_one_peer_exponential_graph():
    graph, opened = opening_of("in_turn")
    for tick in range(7):
        expected = np.zeros((AGENTS, AGENTS), dtype=int)
        expected[(np.arange(AGENTS) + 2 ** (tick % 3)) % AGENTS, np.arange(AGENTS)] = 1
        assert (sent_to(graph, opened, tick) == expected).all()


def test_a_summary_says_how_open_edges_connect_agents_over_time():
    """Of 8 agents' edges 1, 2 and 4 places ahead in turn, the first alone is a ring; the last two reach even places."""
    numbers = describe(*opening_of("in_turn"))
    assert numbers["changes"] == {"ticks": 50, "open_degree": 1.0, "connected": 17 / 50, "connected_in": 3}
    assert "1 an agent are open at a tick, which connect all agents at 34% of 50 ticks, and by any 3" in graph_line(
        numbers
    )
    assert describe(*opening_of("mobility", radius=1e-3))["changes"]["connected_in"] == 0
    assert "changes" not in describe(*opening_of("fixed"))


def test_matchings_pair_agents_and_together_are_the_graph():
    graph, opened = opening_of("matchings")
    every = [sent_to(graph, opened, tick) for tick in range(2 * 4)]
    assert all((one == one.T).all() and (one.sum(axis=0) <= 1).all() for one in every)
    count = next(k for k in range(1, 8) if (every[k] == every[0]).all())
    assert count <= 7  # greedy: below twice the degree
    assert sum(every[:count]).sum() == len(graph.heads)


def test_edges_are_open_from_and_until_the_times_of_a_file(tmp_path):
    (tmp_path / "times.csv").write_text(TIMES)
    graph, opened = opening_of("times", tmp_path)
    found = {now: sent_to(graph, opened, 0, now) for now in (0.0, 2.0, 2.5, 4.5, 100.0)}
    assert {now: (int(one[0, 1]), int(one[1, 0]), int(one[3, 2])) for now, one in found.items()} == {
        0.0: (1, 1, 0), 2.0: (1, 1, 1), 2.5: (0, 0, 1), 4.5: (1, 1, 1), 100.0: (0, 0, 0),
    }  # fmt: skip
    assert all(one[4, 5] and one[7, 0] for one in found.values())
    for rows, says in (
        ("0,9,0,1", "times.csv:2: '9' is not the id"),
        ("0,2,0,1", "times.csv:2: the graph has no edge from '0' to '2'"),
        ("0,1,3,2", "times.csv:2: from 3.0 must be at least 0 and below until, 2.0"),
        ("0,1,0,2\n1,0,1,3", "opens the edge from 0 to 1 twice at a time"),
        ("", "lists no edge"),
    ):
        (tmp_path / "times.csv").write_text("source,target,from,until\n" + rows + "\n")
        with pytest.raises(InputError, match=says):
            opening_of("times", tmp_path)


def test_agents_move_by_random_waypoints_and_send_to_whoever_is_near():
    """Seed 3. By 4,000 places on a long path, coordinates are in the middle half more often than uniform ones."""
    graph, opened = opening_of("mobility")
    changes = graph_of("mobility")[1]
    place = changes.places(np.arange(AGENTS, dtype=np.uint64), Draws(3))
    for now in (40.0, 0.0, 3.25):  # in any order
        at = np.array([place(agent, now) for agent in range(AGENTS)])
        apart = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1))
        near = (apart <= changes.radius) & ~np.eye(AGENTS, dtype=bool)
        assert (sent_to(graph, opened, 0, now) == near).all()
    path = np.array([place(0, now) for now in np.arange(0.0, 2000.0, 0.5)])
    steps = np.hypot(*np.diff(path, axis=0).T)
    assert steps.max() <= 0.5 * changes.speed * (1 + 1e-9)  # less where it turns
    assert np.median(steps) == pytest.approx(0.5 * changes.speed)
    assert (path >= 0).all()
    assert (path <= 1).all()
    assert np.mean(np.abs(path - 0.5) < 0.25) > 0.55  # about .69; .5 if it were uniform
    with pytest.raises(ValidationError, match="radius"):
        opening_of("mobility", radius=0.0)


def world_of(kind, *, protocol=EpidemicLearning, rounds=9, network=None, base=None, topology=None, **fields):
    graph, changes = graph_of(kind, topology)
    setting = dataclasses.replace(
        small_setting(agents=AGENTS, network=NetworkParameters.model_validate(network or {})),
        graph=graph,
        stop=Stop(updates=rounds),
        changes=changes,
        base=base,
    )
    given = {"step_size": ALPHA, "mu": MU, "schedule": "rounds", **fields}
    given = {name: value for name, value in given.items() if value is not None}
    return World(setting, protocol, protocol_parameters(protocol, given))


def by_loop(matrices, local_steps=1):
    """(n, p) models of algorithm 1 of de Vos et al. 2023 on graphs in turn."""
    task = small_task(agents=AGENTS)
    x = np.zeros((AGENTS, task.dimension))
    for sent in matrices:
        half = x.copy()
        for _ in range(local_steps):
            for i in range(AGENTS):
                half[i] = half[i] - ALPHA * gradient(task, i, half[i], MU)
        x = np.array([np.mean([half[i], *half[np.flatnonzero(sent[i])]], axis=0) for i in range(AGENTS)])
    return x


def pushed(matrices, agents=AGENTS):
    """(n, p) models of algorithm 1 of Assran et al. 2019 on graphs in turn, by column-stochastic matrices."""
    task = small_task(agents=agents)
    x, w = np.zeros((agents, task.dimension)), np.ones(agents)
    for sent in [*matrices, np.zeros((agents, agents))]:
        z = x / w[:, None]
        for i in range(agents):
            x[i] = x[i] - ALPHA * gradient(task, i, z[i], MU)
        shares = (np.eye(agents) + sent) / (1 + sent.sum(axis=0))
        x, w = shares @ x, shares @ w
    return z


@pytest.mark.parametrize("kind", [kind for kind in CHANGES if kind not in ("times", "mobility")])
@pytest.mark.parametrize(
    ("protocol", "loop", "fields"),
    [
        (EpidemicLearning, by_loop, {}),
        (EpidemicLearning, by_loop, {"local_steps": 3}),
        (StochasticGradientPush, pushed, {}),
    ],
)
def test_lossless_rounds_are_algorithm_1_on_graphs_in_turn(kind, protocol, loop, fields):
    network = {"latency": {"kind": "exponential", "mean": 0.7}}
    world = world_of(kind, protocol=protocol, network=network, **fields)
    graph, opened = opening_of(kind, seed=world.setting.draws.seed)
    if opened is None:
        opened = lambda agent, tick, now: graph.opened[graph.edges_of(agent)]  # noqa: E731
    drive(prepared(world, engine_for("auto", world)))
    assert world.engine.startswith("batched")
    assert world.traffic.conserved
    matrices = [sent_to(graph, opened, tick) for tick in range(int(world.updates.max()))]
    models = world.state.agent["model"].rows
    for agent, count in enumerate(world.updates.tolist()):
        expected = loop(matrices[: count - 1], **fields)[agent]
        np.testing.assert_allclose(models[agent], expected, rtol=1e-12, atol=1e-14)
    sent = [sum(matrices[tick][:, agent].sum() for tick in range(world.updates[agent])) for agent in range(AGENTS)]
    assert world.traffic.vectors == sum(sent)


def test_what_cannot_run_on_a_graph_that_changes_refuses_it():
    for protocol, fields in ((DecentralisedSGD, {}), (AdPsgd, {"schedule": "exchange"})):
        with pytest.raises(InputError, match=r"a graph that changes, and the protocol .* needs all edges open"):
            world_of("sample", protocol=protocol, **fields)
    with pytest.raises(InputError, match="needs kind: complete"):
        graph_of("regular", "ring")
    with pytest.raises(InputError, match="must be below the number of agents, 8"):
        graph_of("regular", peers=8)
    with pytest.raises(InputError, match="needs an undirected graph"):
        graph_of("matchings", "directed_ring")


class OnChangingGraphs(CoordinateDescent):
    """What a step adds stays in the model that later messages carry."""

    @classmethod
    def traits_for(cls, parameters):
        return dataclasses.replace(super().traits_for(parameters), changing=True)


@pytest.mark.parametrize("engine", ["event", "batched"])
@pytest.mark.parametrize("budget", [{}, {"updates": 4}])
def test_noise_of_a_step_that_reaches_nobody_is_charged(engine, budget, tmp_path):
    (tmp_path / "times.csv").write_text("source,target,from,until\n0,1,3,9\n")
    privacy = {"mechanism": "gaussian", "multiplier": 2.0, "clip": 1.0, "delta": 1e-5, **budget}
    fields = {"schedule": "async", "mu": 0.5, "privacy": privacy, "step_size": None}
    world = world_of("times", protocol=OnChangingGraphs, base=tmp_path, rounds=6, **fields)
    drive(prepared(world, engine_for(engine, world)))
    assert world.engine.startswith(engine)
    steps = world.updates.tolist()
    assert [world.ledger.releases(agent) for agent in range(1, AGENTS)] == steps[1:]  # agent 0 has no data
    assert min(steps) == (4 if budget else 6)
