"""What an author gave and hushnet cannot take as it is, is refused or said, and never taken for something else."""

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hushnet.agents.blocks import Block
from hushnet.agents.errors import InputError
from hushnet.agents.graph import Graph
from hushnet.protocols.base import Layout, MessageKind
from hushnet.simulator.api import run
from hushnet.simulator.language.schema import scenario_schema
from hushnet.simulator.network.graphs import Topology


def scenario(**more):
    return {
        "schema": 1,
        "scenario": "s",
        "task": {"kind": "csv", "path": "rows.csv", "label": "y", "agent": "owner", "loss": "squared"},
        "topology": {"kind": "complete"},
        "engine": "event",
        "protocols": {"cd": {"kind": "coordinate_descent"}},
        "record": {"every": 1.0, "metrics": ["objective"]},
        "stop": {"time": 1.0},
        **more,
    }


def written(tmp_path, monkeypatch, lines):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("\n".join(["owner,x,y", *lines]) + "\n")
    return tmp_path / "out"


@pytest.mark.parametrize("size", ["1e155", "1e200", "1e300"])
def test_features_whose_squares_overflow_are_refused_and_show_no_gap_of_0(size, tmp_path, monkeypatch):
    out = written(tmp_path, monkeypatch, [f"{k % 2},{size},{k}" for k in range(8)])
    with pytest.raises(InputError, match=r"size 1e\+\d+, so that sums of squares overflow.*scale the rows"):
        run(scenario(), out=out)


def test_ids_that_are_one_number_are_one_agent(tmp_path, monkeypatch):
    out = written(tmp_path, monkeypatch, [f"{name},{k},{k}" for k, name in enumerate(["7", "7.0", "8.00", "8", "9"])])
    agents = run(scenario(), out=out).agents
    assert agents["agent"].tolist() == ["7", "8", "9"]


def test_names_that_are_no_numbers_stay_as_they_are(tmp_path, monkeypatch):
    out = written(tmp_path, monkeypatch, [f"{name},{k},{k}" for k, name in enumerate(["7", "7.0", "x", "7", "x"])])
    assert run(scenario(), out=out).agents["agent"].tolist() == ["7", "7.0", "x"]


class Custom(Topology):
    """A graph of a custom kind."""

    kind: str = "custom"
    made: Any

    def expected_edges(self, extent, files):
        return 2.0

    def edges(self, task, *, rng, base):
        return self.made() if callable(self.made) else self.made


def built(made):
    task = type("Three", (), {"agents": 3, "ids": [0, 1, 2]})()
    return Custom(made=made).build(task, rng=np.random.default_rng(0))


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_directed_edges_keep_their_direction_and_are_not_made_twice(kind):
    graph = built(kind([(0, 1), (1, 2), (2, 0)]))
    assert (graph.directed, graph.out_degrees.tolist(), graph.opened.sum()) == (True, [1, 1, 1], 3)
    assert built(kind([(0, 1), (1, 2), (1, 0), (2, 1)])).directed
    with pytest.raises(InputError, match="falls into 2 components that do not all hear of each other"):
        built(kind([(0, 1), (1, 2), (2, 1)]))
    if kind is nx.MultiDiGraph:
        with pytest.raises(InputError, match="two edges from agent 1 to agent 2"):
            built(kind([(0, 1), (1, 2), (2, 0), (1, 2)]))


def test_two_edges_between_the_same_agents_are_refused():
    assert built(nx.MultiGraph([(0, 1), (1, 2)])).degrees.tolist() == [1, 2, 1]
    with pytest.raises(InputError, match="makes two edges between agents 0 and 1; make one of them"):
        built(nx.MultiGraph([(0, 1), (1, 2), (1, 0)]))


def test_an_agent_that_is_its_own_neighbour_is_refused():
    for made in (nx.Graph([(0, 1), (1, 1), (1, 2)]), packed([{1: 1}, {0: 1, 1: 1, 2: 1}, {1: 1}])):
        with pytest.raises(InputError, match="makes agent 1 its own neighbour; leave that edge out"):
            built(made)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf, 1e308, "heavy", 1j])
def test_a_weight_below_0_or_no_number_is_no_missing_edge(weight):
    graph = nx.path_graph(3)
    graph[0][1]["weight"] = weight
    with pytest.raises(InputError, match=r"makes a weight that is not a number from 0 to 1e\+100"):
        built(graph)


def packed(rows):
    """A graph of three agents as it is stored, from the neighbours and weights of each."""
    heads = [head for row in rows for head in row]
    weights = [weight for row in rows for weight in row.values()]
    return Graph(np.cumsum([0, *map(len, rows)]), np.array(heads), np.array(weights, dtype=float))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{1: 1}, {2: 1}, {1: 1}], "weight 1 from agent 0 to agent 1 and 0 back"),
        ([{1: 1}, {0: 1, 2: 1}, {}], "weight 1 from agent 1 to agent 2 and 0 back"),
        ([{}, {0: 1, 2: 1}, {1: 1}], "weight 1 from agent 1 to agent 0 and 0 back"),
        ([{1: 1}, {0: 2, 2: 1}, {1: 1}], r"weight 1 from agent 0 to agent 1 and 2 back"),
    ],
)
def test_a_packed_graph_whose_directions_differ_is_refused(rows, words):
    assert built(packed([{1: 1}, {0: 1, 2: 1}, {1: 1}])).degrees.tolist() == [1, 2, 1]
    with pytest.raises(InputError, match=f"makes {words}; messages go both ways along every edge here"):
        built(packed(rows))


def test_a_matrix_whose_directions_differ_is_refused():
    both = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.3], [0.0, 0.1 + 0.2, 0.0]])
    assert built(lambda: Graph.from_matrix(both)).degrees.tolist() == [1, 2, 1]
    for place, words in (((0, 1), "2 from agent 0 to agent 1 and 1 back"), ((2, 0), "0 from agent 0 to agent 2 and 2")):
        one_way = both.copy()
        one_way[place] = 2.0
        with pytest.raises(InputError, match=f"makes weight {words}"):
            built(lambda matrix=one_way: Graph.from_matrix(matrix))


@pytest.mark.parametrize("width", [2.5, -1, [1, 2.5], "3", True])
def test_a_width_that_is_no_whole_number_is_refused(width):
    with pytest.raises(ValueError, match="a width must be an integer from 0"):
        Block(2, width)
    with pytest.raises(ValueError, match="a width must be an integer from 0"):
        Layout(agent={"model": 2}, messages={"model": MessageKind(width)})


def test_the_schema_promises_what_engines_keep():
    said = scenario_schema()["properties"]["engine"]["description"]
    assert "the events are the same" in said
    assert "up to rounding" in said
