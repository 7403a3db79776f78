"""What each kind of graph promises, what is refused, and what is reported."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.graph import Graph
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.graphs import components, describe, graph_line
from hushnet.simulator.network.topology import TOPOLOGIES, TopologyParameters
from pydantic import TypeAdapter, ValidationError
from scipy import sparse, stats

PROFILES = np.random.default_rng(51).normal(size=(24, 3))
KINDS = [
    {"kind": "angular_similarity", "gamma": 0.3},
    {"kind": "gaussian_kernel", "sigma": 1.0},
    {"kind": "knn", "k": 5},
    {"kind": "complete"},
    {"kind": "ring", "reach": 2},
    {"kind": "torus", "rows": 4},
    {"kind": "erdos_renyi", "probability": 0.5},
    {"kind": "watts_strogatz", "neighbours": 6, "rewire": 0.2},
    {"kind": "barabasi_albert", "links": 2},
    {"kind": "random_regular", "degree": 3},
    {"kind": "star"},
]


def task_of(agents=24, *, profiles=PROFILES, ids=None):
    task = dataclasses.replace(small_task(agents), profiles=profiles)
    return task if ids is None else dataclasses.replace(task, ids=list(ids))


def build(fields, task=None, *, seed=1, base=None):
    topology = TypeAdapter(TopologyParameters).validate_python(fields)
    return topology.build(task or task_of(), rng=np.random.default_rng(seed), base=base)


def matrix(graph):
    dense = np.zeros((graph.agents, graph.agents))
    dense[graph.tails, graph.heads] = graph.weights
    return dense


@pytest.mark.parametrize("kind", ["erdos_renyi", "watts_strogatz", "barabasi_albert", "random_regular"])
def test_another_stream_gives_another_random_graph(kind):
    fields = next(f for f in KINDS if f["kind"] == kind)
    assert len({build(fields, seed=seed).heads.tobytes() for seed in range(4)}) == 4


def test_every_kind_but_the_file_is_among_the_common_tests():
    directed = {"directed_ring", "directed_random", "exponential"}  # tests/protocols/test_directed_graphs.py
    assert {fields["kind"] for fields in KINDS} == set(TOPOLOGIES) - {"edge_list", *directed}


@pytest.mark.parametrize("fields", KINDS, ids=lambda fields: fields["kind"])
def test_a_graph_is_symmetric_with_positive_weights_and_follows_from_its_stream(fields):
    graph, again = build(fields), build(fields)
    for name in ("heads", "offsets", "weights"):
        assert getattr(graph, name).tobytes() == getattr(again, name).tobytes()
    dense, edges = matrix(graph), np.arange(len(graph.heads))
    assert np.array_equal(dense, dense.T)
    assert (graph.weights > 0).all()
    assert not np.diag(dense).any()
    assert len(graph.heads) == np.count_nonzero(dense)
    assert np.array_equal(graph.reverse[graph.reverse], edges)
    assert np.array_equal(graph.tails[graph.reverse], graph.heads)
    assert np.array_equal(graph.heads[graph.reverse], graph.tails)
    for agent in range(graph.agents):
        assert (np.diff(graph.neighbours(agent)) > 0).all()
    assert np.allclose(graph.strengths, dense.sum(axis=1))
    if "degree" in fields or fields["kind"] == "complete":
        assert (graph.degrees == fields.get("degree", 23)).all()


@pytest.mark.parametrize(("reach", "degree"), [(1, 2), (3, 6), (12, 23), (40, 23)])
def test_a_ring_reaches_the_nearest_on_both_sides(reach, degree):
    graph = build({"kind": "ring", "reach": reach})
    assert (graph.degrees == degree).all()
    gaps = (graph.heads - graph.tails) % 24
    assert (np.minimum(gaps, 24 - gaps) <= reach).all()


@pytest.mark.parametrize("rows", [3, 4, 6, 8])
def test_a_torus_has_four_neighbours_a_step_away(rows):
    graph, columns = build({"kind": "torus", "rows": rows}), 24 // rows
    assert (graph.degrees == 4).all()
    for agent in range(24):
        row, column = divmod(agent, columns)
        steps = [((row + 1) % rows, column), ((row - 1) % rows, column)]
        steps += [(row, (column + 1) % columns), (row, (column - 1) % columns)]
        assert graph.neighbours(agent).tolist() == sorted(r * columns + c for r, c in steps)


def test_an_erdos_renyi_graph_has_the_density_asked_for():
    """Seeds 0 to 19, 5,520 pairs; binomial test, false-alarm probability 1e-4."""
    fields = {"kind": "erdos_renyi", "probability": 0.3, "allow_isolated": True, "allow_disconnected": True}
    edges = sum(len(build(fields, seed=seed).heads) // 2 for seed in range(20))
    assert stats.binomtest(edges, 20 * 24 * 23 // 2, 0.3).pvalue > 1e-4


def test_a_small_world_keeps_its_edges_and_without_rewiring_is_a_ring():
    lattice = build({"kind": "watts_strogatz", "neighbours": 4, "rewire": 0.0})
    assert np.array_equal(matrix(lattice), matrix(build({"kind": "ring", "reach": 2})))
    rewired = build({"kind": "watts_strogatz", "neighbours": 4, "rewire": 0.5})
    assert len(rewired.heads) == len(lattice.heads)
    assert not np.array_equal(matrix(rewired), matrix(lattice))


def test_preferential_attachment_brings_its_links_with_every_agent():
    graph = build({"kind": "barabasi_albert", "links": 3})
    assert len(graph.heads) // 2 == 3 * (24 - 3)
    assert graph.degrees.min() == 3


def cosines(profiles):
    unit = profiles / np.linalg.norm(profiles, axis=1, keepdims=True)
    return unit @ unit.T


def test_angular_weights_follow_the_formula_and_the_cutoff():
    expected = np.exp((cosines(PROFILES) - 1) / 0.3)
    np.fill_diagonal(expected, 0.0)
    expected[expected < 0.05] = 0.0
    dense = matrix(build({"kind": "angular_similarity", "gamma": 0.3, "cutoff": 0.05}))
    assert 0 < np.count_nonzero(expected) < 24 * 23
    assert np.allclose(dense, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("join", ["union", "mutual"])
def test_nearest_neighbours_are_joined_where_either_or_both_choose(metric, join):
    if metric == "cosine":
        far = -cosines(PROFILES)
    else:
        far = np.linalg.norm(PROFILES[:, None] - PROFILES[None], axis=2)
    np.fill_diagonal(far, np.inf)
    chosen = np.zeros((24, 24), dtype=bool)
    for agent, row in enumerate(far):
        chosen[agent, np.argsort(row)[:5]] = True
    expected = (chosen | chosen.T) if join == "union" else (chosen & chosen.T)
    fields = {"kind": "knn", "k": 5, "metric": metric, "join": join, "allow_isolated": True, "allow_disconnected": True}
    assert np.array_equal(matrix(build(fields)), expected.astype(float))


def test_sparse_profiles_give_the_graph_of_dense_ones():
    profiles = np.where(np.abs(PROFILES) > 0.5, PROFILES, 0.0)
    for fields in ({"kind": "knn", "k": 4, "metric": "euclidean"}, {"kind": "knn", "k": 4}, KINDS[0]):
        allowed = {**fields, "allow_isolated": True, "allow_disconnected": True}
        dense = build(allowed, task_of(profiles=profiles))
        assert np.array_equal(matrix(dense), matrix(build(allowed, task_of(profiles=sparse.csr_array(profiles)))))


def test_equal_profiles_choose_the_lower_index():
    graph = build({"kind": "knn", "k": 2, "metric": "euclidean"}, task_of(5, profiles=np.ones((5, 2))))
    expected = np.zeros((5, 5))
    for agent in range(5):
        expected[agent, [other for other in range(5) if other != agent][:2]] = 1
    assert np.array_equal(matrix(graph), np.maximum(expected, expected.T))


def edge_list(tmp_path, rows, **fields):
    (tmp_path / "edges.csv").write_text("source,target,weight\n" + rows)
    task = task_of(4, ids=["a", "b", "c", "d"])
    return build({"kind": "edge_list", "path": "edges.csv", **fields}, task, base=tmp_path)


def test_an_edge_list_may_list_all_its_edges_in_both_directions(tmp_path):
    expected = np.zeros((4, 4))
    for u, v, w in ((0, 1, 0.5), (1, 3, 2.0), (2, 3, 0.25)):
        expected[u, v] = expected[v, u] = w
    once = edge_list(tmp_path, "b,a,0.5\n\nb,d,2\nd,c,.25\n")
    assert np.array_equal(matrix(once), expected)
    both = edge_list(tmp_path, "d,b,2\na,b,0.5\nb,d,2.0\nd,c,.25\nc,d,0.25\nb,a,.5\n")
    assert np.array_equal(matrix(both), matrix(once))
    assert describe(both)["edges"] == 3


def test_an_edge_list_is_assumed_to_be_public_and_its_file_is_named():
    topology = TOPOLOGIES["edge_list"](kind="edge_list", path="who-knows-whom.csv")
    assert topology.assumed_public(task_of(4)) == ("graph and weights, as given by who-knows-whom.csv",)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,b,1\nz,a,1\n", r"edges.csv:3: 'z' is not the id"),
        ("a,b,0\n", r"edges.csv:2: weight 0.0 must be greater than 0"),
        ("a,b,1.1e100\n", r"edges.csv:2: weight 1.1e\+100 must be at most 1e\+100"),
        ("a,b,heavy\n", r"edges.csv:2: weight 'heavy' must be a finite number"),
        ("a,a,1\n", r"edges.csv:2: agent 'a' cannot be its own neighbour"),
        ("a,b,1\nc,d,1\na,b,1\n", r"edges.csv:4: the edge a - b is listed twice, first in line 2"),
        ("a,b,1\nc,d,1\nb,a,2\n", r"edges.csv:4: weight 2.0 of b - a is 1.0 in the other direction, in line 2"),
        ("a,b,1\nc,d,1\nb,a,1\n", r"edges.csv:3: the edge c - d is listed in one direction while others are in both"),
        ("a,b,1\nb,a,1\nd,c,1\n", r"edges.csv:4: the edge d - c is listed in one direction while others are in both"),
        ("a,b\n", r"edges.csv:2: has 2 values"),
    ],
)
def test_a_bad_row_of_an_edge_list_is_named(tmp_path, rows, message):
    with pytest.raises(InputError, match=message) as error:
        edge_list(tmp_path, rows)
    assert error.value.field == ("topology", "path")


def test_isolated_agents_are_refused_unless_they_are_allowed(tmp_path):
    with pytest.raises(InputError, match=r"leaves 1 of 4 agents without a neighbour \(first: 'd'\)") as error:
        edge_list(tmp_path, "a,b,1\nb,c,1\n")
    assert error.value.field == ("topology",)
    with pytest.raises(InputError, match="without a neighbour"):
        edge_list(tmp_path, "a,b,1\nb,c,1\n", allow_disconnected=True)
    assert edge_list(tmp_path, "a,b,1\nb,c,1\n", allow_isolated=True).degrees.tolist() == [1, 2, 1, 0]


def test_a_disconnected_graph_is_refused_unless_it_is_allowed(tmp_path):
    with pytest.raises(InputError, match="falls into 2 components") as error:
        edge_list(tmp_path, "a,b,1\nc,d,1\n", allow_isolated=True)
    assert error.value.field == ("topology",)
    assert components(edge_list(tmp_path, "a,b,1\nc,d,1\n", allow_disconnected=True)) == 2


@pytest.mark.parametrize("fields", [{"kind": "complete"}, {"kind": "ring"}, {"kind": "torus", "rows": 1}])
def test_one_agent_alone_has_a_graph_without_edges(fields):
    graph = build(fields, task_of(1, profiles=None))
    assert graph.degrees.tolist() == [0]
    assert describe(graph)["edges"] == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "angular_similarity"}, "makes 24 agents where the task has 6"),
        ({"kind": "watts_strogatz", "neighbours": 5}, "multiple of 2"),
        ({"kind": "erdos_renyi"}, "Field required"),
    ],
)
def test_graphs_that_cannot_be_are_refused(fields, message):
    """What does not fit the agents stands in tests/scenario/refused.yaml."""
    with pytest.raises((InputError, ValidationError), match=message):
        build(fields, task_of(6))


def test_the_description_counts_what_is_there():
    dense = np.zeros((5, 5))
    for u, v, w in ((0, 1, 1.0), (1, 2, 3.0), (0, 2, 2.0)):
        dense[u, v] = dense[v, u] = w
    dense[3, 3] = 7.0
    assert describe(Graph.from_matrix(dense)) == {
        "agents": 5,
        "edges": 3,
        "components": 3,
        "isolated": 2,
        "degree": {"min": 0, "mean": 6 / 5, "max": 2},
        "weight": {"min": 1.0, "mean": 2.0, "max": 3.0},
    }


def test_diameter_and_spectral_gap_are_those_of_known_graphs(tmp_path):
    """Of a ring with weights 1/3 the eigenvalues are (1 + 2 cos(2 pi k / n)) / 3."""
    n, task = 24, task_of()
    ring, complete = build({"kind": "ring"}), build({"kind": "complete"})
    one_way = build({"kind": "directed_ring"})
    assert (ring.diameter, complete.diameter, one_way.diameter) == (n // 2, 1, n - 1)
    assert ring.spectral_gap == pytest.approx(2 * (1 - np.cos(2 * np.pi / n)) / 3, rel=1e-9)
    assert complete.spectral_gap == pytest.approx(1.0, rel=1e-9)
    assert one_way.spectral_gap == pytest.approx(1 - np.abs(1 + np.exp(2j * np.pi / n)) / 2, rel=1e-9)
    assert "diameter 12, spectral gap 0.0227" in graph_line(describe(build({"kind": "ring"}, task)))
    assert "diameter" not in describe(edge_list(tmp_path, "a,b,1\nc,d,1\n", allow_disconnected=True))
