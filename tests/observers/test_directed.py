"""Observers on directed and changing graphs, beside a replay of what was sent and delivered."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hushnet.simulator.network.graph_changes import GRAPH_CHANGES
from hushnet.simulator.observers import deliveries_of, release_record
from hushnet.simulator.observers.data_flow import releases_heard
from hushnet.simulator.world.watchers import Observer

from .worlds import DELTA, NOISE, Pushed, found, mu_of, ran

AGENTS = 7
GRAPHS = {
    "directed": (nx.gnp_random_graph(AGENTS, 0.35, seed=4, directed=True), None),
    "directed, in turn": (nx.gnp_random_graph(AGENTS, 0.6, seed=5, directed=True), {"kind": "in_turn"}),
    "sampled": (nx.complete_graph(AGENTS), {"kind": "sample", "peers": 1}),
    "regular": (nx.complete_graph(AGENTS), {"kind": "regular", "peers": 2}),
}


LOSSY = {"latency": {"kind": "exponential", "mean": 0.7}, "loss": 0.25}


class Replay(Observer):
    """Weights of all agents' values in each one's model, and in all that each has heard, from events alone."""

    def __init__(self):
        self.own, self.sent_now, self.last = np.eye(AGENTS), {}, {}
        self.heard = {v: [] for v in range(AGENTS)}

    def woke(self, world, agent):
        """Mix what was heard last of each one."""
        v, graph = agent.index, world.setting.graph
        weights = dict(zip(graph.neighbours(v).tolist(), world.protocol.weights[graph.edges_of(v)], strict=True))
        heard = {w: content for (to, w), content in self.last.items() if to == v}
        self.own[v] = self.own[v] + sum(weights[w] * (content - self.own[v]) for w, content in heard.items())

    def sent(self, world, message, delay, lost):
        """Keep what the sender has now."""
        self.sent_now[message.sender, message.order] = self.own[message.sender].copy()

    def arrived(self, world, message, up, newest):
        """Hear it, and keep it where it is the newest."""
        content = self.sent_now[message.sender, message.order]
        if up:
            self.heard[message.receiver].append(content)
        if newest:
            self.last[message.receiver, message.sender] = content

    def learned(self):
        """(n, n) squared mu of each agent's value for each observer, in that of its release, and if it was reached."""
        squares, reached = np.zeros((AGENTS, AGENTS)), np.zeros((AGENTS, AGENTS), dtype=bool)
        for v, rows in self.heard.items():
            others = np.arange(AGENTS) != v
            view = np.array(rows).reshape(-1, AGENTS)[:, others]
            squares[v, others] = np.diag(np.linalg.pinv(view, rcond=1e-10) @ view)
            reached[v, others] = (view > 0).any(axis=0)
        return squares, reached


@pytest.mark.parametrize("case", GRAPHS)
def test_bounds_are_those_of_a_replay_on_directed_and_changing_graphs(case):
    """The linear bound is the projection on what was heard; data flow has whoever is mixed into it (event engine)."""
    graph, changes = GRAPHS[case]
    changes = None if changes is None else GRAPH_CHANGES[changes["kind"]].model_validate(changes)
    fields = {"gossip": "simple", "rounds": 3, "privacy": NOISE}
    given = {"protocol": Pushed, "changes": changes, "network": LOSSY}
    replay = Replay()
    ran(graph, fields, observer=replay, **given)
    world = ran(graph, fields, **given)
    squares, reached = replay.learned()
    others = ~np.eye(AGENTS, dtype=bool)
    result = found(world)
    assert result.mistake == ""
    np.testing.assert_allclose(4 * mu_of(result.epsilons)[others] ** 2, squares[others], atol=1e-7)
    deliveries = deliveries_of(world)
    parties = [deliveries.heard & (deliveries.receiver == v) for v in range(AGENTS)]
    counts = np.array(releases_heard(deliveries, release_record(world, deliveries, DELTA), parties))
    np.testing.assert_array_equal(counts[others] > 0, reached[others])
    assert 0 < reached[others].mean() < 1
    assert (squares[others] < 0.99 * reached[others]).any()
