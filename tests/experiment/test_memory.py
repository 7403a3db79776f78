"""Large worlds are estimated before they are built, and refused with numbers where they cannot fit."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
from hushnet.simulator.cli import main
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits import memory

SCENARIO = {
    "schema": 1,
    "scenario": "large",
    "task": {"kind": "linear_classification", "agents": 400, "dimension": 50, "samples": [40, 80], "test_samples": 50},
    "topology": {"kind": "random_regular", "degree": 6},
    "protocols": {"cd": {"kind": "coordinate_descent"}},
    "stop": {"time": 1.0},
}


SIZES = {"agents": 300, "dimension": 3, "samples": [2, 4], "test_samples": 2}
SMALL = {"kind": "linear_classification", **SIZES}
GRAPHS = [
    {"kind": "complete"},
    {"kind": "ring", "reach": 20},
    {"kind": "torus", "rows": 20},
    {"kind": "erdos_renyi", "probability": 0.2},
    {"kind": "watts_strogatz", "neighbours": 40},
    {"kind": "barabasi_albert", "links": 20},
    {"kind": "star"},
    {"kind": "edge_list", "path": "edges.csv"},
    {"kind": "angular_similarity"},
    {"kind": "knn", "k": 20, "allow_disconnected": True},
]
TASKS = [
    {"kind": "csv", "path": "table.csv", "label": "y", "agent": "who", "categorical": ["c"]},
    {"kind": "adult", "agents": 20, "path": "adult"},
    {"kind": "a9a", "path": "a9a"},
    {"kind": "a9a", "path": "a9a", "rows": 500, "test_rows": 9, "split": {"by": "columns", "parts": [66, 57]}},
    {"kind": "movielens", "path": "u.data"},
    {"kind": "synthetic_ratings", "users": 100, "items": 300, "ratings": [20, 200]},
    {"kind": "mean_estimation", "agents": 200, "samples": 500},
    {"kind": "epsilon_like", "samples": 100},
    {"kind": "gisette_like", "rows": 400, "dimension": 300, "test_rows": 100},
]
PERSON = "39, State-gov, 77516, Bachelors, 13, {}, Clerical, Husband, White, Male, 2174, 0, 40, Cuba, {}\n"
PEOPLE = [PERSON.format("ab"[row % 2], ("<=50K", ">50K")[row % 3 == 0]) for row in range(900)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Small files of every kind that a task or graph is read from."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(1)
    rows = [f"{row % 30},{row % 2},{rng.normal():.6f},{rng.normal():.6f},k{row % 7}" for row in range(3000)]
    edges = [f"{i},{(i + step) % 300},1.0" for i in range(300) for step in range(1, 21)]
    ratings = [f"{i % 40 + 1}\t{i // 40 + 1}\t{i % 5 + 1}\t880000000" for i in range(4000)]
    signs = [f"{(-1) ** row} " + " ".join(f"{column}:1" for column in range(1, 123, 9)) for row in range(1000)]
    (folder / "table.csv").write_text("\n".join(["who,y,a,b,c", *rows]))
    (folder / "edges.csv").write_text("\n".join(["source,target,weight", *edges]))
    (folder / "u.data").write_text("\n".join(ratings))
    for name in ("adult/adult.data", "adult/adult.test", "a9a/a9a", "a9a/a9a.t"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("".join(PEOPLE) if "adult" in name else "\n".join(signs))
    return folder


@pytest.mark.parametrize(
    ("task", "topology"),
    [(SMALL, graph) for graph in GRAPHS] + [(task, {"kind": "star" if "split" in task else "ring"}) for task in TASKS],
    ids=str,
)
def test_every_task_and_graph_is_estimated_within_a_factor_of_three(task, topology, files):
    protocol = {"kind": "feature_sgd" if "split" in task else "local"}
    scenario = {**SCENARIO, "task": task, "topology": topology, "protocols": {"p": protocol}}
    (files / "s.yaml").write_text(json.dumps(scenario))
    for trace in (lambda: None, tracemalloc.start):  # once untraced, for what is imported on the way
        experiment = Experiment(load(files / "s.yaml"))
        run = next(experiment.runs())
        trace()
        built, graph = experiment.data(run)
        experiment.world(run)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    needed = memory.expected_bytes(experiment.loaded.scenario, experiment.files)
    assert 1 / 3 < needed / peak < 3
    extent = experiment.loaded.scenario.task.extent(experiment.files)
    assert (extent.agents, extent.dimension) == (built.agents, built.dimension)
    edges = experiment.loaded.scenario.topology.expected_edges(extent, experiment.files)
    assert edges == pytest.approx(len(graph.heads) / 2, rel=0.5)


LEARNERS = [
    {"kind": "local"},
    {"kind": "coordinate_descent"},
    {"kind": "model_propagation", "alpha": 0.5},
    {"kind": "collaborative_admm", "mu": 1.0, "rho": 1.0},
    {"kind": "consensus_admm", "penalty": 1.0},
    {"kind": "edge_consensus_admm", "rho": 1.0},
    {"kind": "dual_averaging"},
    {"kind": "push_sum_dual_averaging"},
]


@pytest.mark.parametrize("protocol", LEARNERS, ids=lambda given: given["kind"])
def test_what_every_protocol_lays_out_is_estimated_within_a_factor_of_three(protocol):
    """Edge blocks of ADMM are most of what it takes: six vectors an edge, and nine in its inbox."""
    task = {"kind": "linear_classification", "agents": 200, "dimension": 200, "samples": [2, 4], "test_samples": 1}
    scenario = {**SCENARIO, "task": task, "topology": {"kind": "ring", "reach": 10}, "protocols": {"p": protocol}}
    experiment = Experiment(load({**scenario, "engine": "event"}))
    run = next(experiment.runs())
    experiment.world(run)  # once untraced, for what is imported on the way
    tracemalloc.start()
    world = experiment.world(run)
    EventEngine().prepare(world)  # which copies what was heard for every edge
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(world.agents) == 200
    needed = memory.expected_bytes(experiment.loaded.scenario) - experiment.loaded.scenario.task.extent(None).data
    assert 1 / 3 < needed / peak < 3


def test_a_file_that_does_not_fit_is_refused_by_its_size_before_it_is_read(files, tmp_path, capsys):
    """What comes after the first rows is a hole, which reading would complain about."""
    table = tmp_path / "table.csv"
    table.write_bytes((files / "table.csv").read_bytes() * 20)
    with table.open("r+b") as stream:
        stream.truncate(2**29)
    task = {"kind": "csv", "path": "table.csv", "label": "y", "agent": "who"}
    (tmp_path / "s.yaml").write_text(json.dumps({**SCENARIO, "task": task, "topology": {"kind": "ring"}}))
    given = [str(tmp_path / "s.yaml"), "--set", "limits.memory=2 GiB"]
    for command in (["check", *given], ["run", *given, "--quiet", "--out", str(tmp_path / "out")]):
        assert main(command) == 5
        message = capsys.readouterr().err
        assert "large: needs about" in message
        assert len(message.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "topology",
    [
        {"kind": "star"},
        {"kind": "complete"},
        {"kind": "torus", "rows": 10},
        {"kind": "erdos_renyi", "probability": 0.9},
    ],
    ids=str,
)
def test_check_refuses_what_does_not_fit_where_no_data_are_needed(topology, tmp_path, capsys):
    scenario = {**SCENARIO, "task": {"kind": "a9a", "split": {"by": "rows", "agents": 30_000}}, "topology": topology}
    (tmp_path / "s.yaml").write_text(json.dumps(scenario))
    assert main(["check", str(tmp_path / "s.yaml"), "--set", "limits.memory=100 MiB"]) == 5
    assert "large: needs about" in capsys.readouterr().err
