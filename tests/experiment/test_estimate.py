"""What is estimated before a run and what is refused there: memory, disk, and any point of a sweep."""

from __future__ import annotations

import json
import re
import tracemalloc

import numpy as np
import pytest
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.console import run_scenario
from hushnet.simulator.engine.selection import Engine
from hushnet.simulator.experiment import Experiment, perform
from hushnet.simulator.experiment import plan as planning
from hushnet.simulator.experiment.estimate import estimate, print_estimate
from hushnet.simulator.experiment.plan import plan
from hushnet.simulator.experiment.preflight import preflight
from hushnet.simulator.experiment.tuning import trial_experiment
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits import memory
from hushnet.simulator.network.network import Network
from rich.console import Console

SWEPT = {
    "schema": 1,
    "scenario": "tiny",
    "task": {"kind": "linear_classification", "agents": 4, "dimension": 3},
    "topology": {"kind": "ring"},
    "protocols": {"cd": {"kind": "coordinate_descent"}, "mp": {"kind": "model_propagation"}},
    "stop": {"time": 20},
    "sweep": {
        "task.agents": {"log": [4, 64, 5]},
        "protocols.cd.mu": [0.1, 0.2],
        "network.latency": [{"kind": "constant", "value": 0.1}, {"kind": "exponential", "mean": 0.1}],
    },
}


def test_the_disk_that_a_grid_takes_is_estimated_within_a_factor_of_three_and_nothing_is_run(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "run", lambda *_: pytest.fail("an estimate runs nothing"))
        found = estimate(Experiment(load(SWEPT), tmp_path))
    assert list(tmp_path.iterdir()) == []
    perform(Experiment(load(SWEPT), tmp_path))
    done = load_all(tmp_path)
    manifests = {run.split("#")[0]: manifest for run, manifest in zip(done.runs, done.manifests, strict=True)}
    assert (found.runs, found.distinct, found.there) == (40, len(manifests), 0)
    assert found.distinct == 30
    written = sum(path.stat().st_size for run in manifests for path in (tmp_path / run).iterdir())
    assert 1 / 3 < found.disk / written < 3


def test_trials_are_estimated_apart_and_their_choice_is_used_once_they_are_there(tmp_path, capsys):
    data = {**SWEPT, "sweep": {}, "stop": {"time": 2}, "seeds": 2}
    data["tune"] = {"over": {"cd.mu": [0.1, 0.2, 0.3]}, "seeds": 2}
    trials = trial_experiment(Experiment(load(data), tmp_path))
    assert trials is not None
    assert estimate(trials).runs == 6
    perform(Experiment(load(data), tmp_path))
    print_estimate(Experiment(load(data), tmp_path), Console(width=200))
    lines = capsys.readouterr().out.splitlines()
    assert "tuning: 6 runs; 6 are there, 0 to run" in lines
    assert "4 runs; 4 are there, 0 to run" in lines


def test_what_the_trials_have_come_to_does_not_depend_on_other_trials_since_then(tmp_path, capsys):
    data = {**SWEPT, "sweep": {}, "stop": {"time": 2}, "seeds": 2}
    data["tune"] = {"over": {"cd.mu": [1e-6, 0.2, 0.3]}, "seeds": 2, "metric": "training_loss"}
    data["record"] = {"every": 1.0, "metrics": ["training_loss"]}
    perform(Experiment(load(data), tmp_path))
    perform(Experiment(load({**data, "tune": {**data["tune"], "over": {"cd.mu": [0.3, 0.2, 1e-6]}}}), tmp_path))
    perform(Experiment(load({**data, "tune": {**data["tune"], "seeds": 1}}), tmp_path))
    print_estimate(Experiment(load(data), tmp_path), Console(width=200))
    lines = capsys.readouterr().out.splitlines()
    assert "tuning: 6 runs; 6 are there, 0 to run" in lines
    assert "4 runs; 4 are there, 0 to run" in lines


def test_a_dry_run_says_what_it_would_do(tmp_path, capsys):
    run_scenario(load({**SWEPT, "sweep": {}, "stop": {"time": 2}}), out=tmp_path / "out", dry_run=True, jobs=2)
    printed = capsys.readouterr().out
    for words in ("2 protocols, 1 grid point, 1 seed", "nothing was run or written", "2 runs; 0 are there, 2 to run"):
        assert words in printed
    assert re.search(r"memory about .* in each of 2 processes; disk about", printed)
    assert "events" not in printed
    assert not (tmp_path / "out").exists()


def test_memory_that_data_take_is_counted_once(tmp_path, monkeypatch):
    """A dry run makes data, which are part of what a run needs: what is held beside them is asked before."""
    experiment, made = Experiment(load({**SWEPT, "sweep": {}}), tmp_path), []
    monkeypatch.setattr(
        "hushnet.simulator.experiment.estimate.used_memory", lambda: made.append(dict(experiment._built)) or 0
    )
    monkeypatch.setattr(
        Experiment, "data", lambda self, run, data=Experiment.data: (made.append("data"), data(self, run))[1]
    )
    print_estimate(experiment, Console(width=200))
    assert made[0] == {}
    assert "data" in made
    assert {} not in made[1:]


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
    {"kind": "barabasi_albert", "links": 20},
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
    """Edge blocks of ADMM are most of what it takes: six vectors an edge."""
    task = {"kind": "linear_classification", "agents": 200, "dimension": 200, "samples": [2, 4], "test_samples": 1}
    scenario = {**SCENARIO, "task": task, "topology": {"kind": "ring", "reach": 10}, "protocols": {"p": protocol}}
    experiment = Experiment(load({**scenario, "engine": "event"}))
    run = next(experiment.runs())
    experiment.world(run)  # once untraced, for what is imported on the way
    tracemalloc.start()
    world = experiment.world(run)
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


BASE = {
    "schema": 1,
    "scenario": "surveyed",
    "task": {"kind": "linear_classification", "agents": 6, "dimension": 2, "samples": [5, 5], "test_samples": 2},
    "topology": {"kind": "ring"},
    "protocols": {"p": {"kind": "local"}, "q": {"kind": "coordinate_descent"}},
    "stop": {"time": 1.0},
    "record": {"every": 1.0, "metrics": ["accuracy"]},
}


def written(tmp_path, *lines):
    (tmp_path / "links.csv").write_text("sender,receiver,delay\n1,0,0.5\n")
    (tmp_path / "trace.csv").write_text("agent,up_from,up_to\n0,1,0\n")
    (tmp_path / "order.txt").write_text("0\n17\n")
    fields = {line.partition(":")[0] for line in lines}
    rest = [f"{key}: {value!r}".replace("'", "") for key, value in BASE.items() if key not in fields]
    (tmp_path / "s.yaml").write_text("\n".join([*rest, *lines]) + "\n")
    return tmp_path / "s.yaml"


def test_trials_do_not_begin_where_the_reported_runs_cannot(tmp_path, capsys):
    path = written(
        tmp_path,
        "topology: {kind: erdos_renyi, probability: 1.0}",
        "seeds: [1, 2]",
        "tune: {over: {q.mu: [0.1, 1.0]}, seeds: [7]}",
        "sweep: {topology.probability: [1.0, 1.0e-9]}",
    )
    assert main(["check", str(path)]) == 0, capsys.readouterr().err
    assert main(["run", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 2
    assert "without a neighbour" in capsys.readouterr().err
    assert not list(tmp_path.glob("out/**/trace.parquet"))


@pytest.fixture
def counts(monkeypatch):
    """How often data are drawn, links looked at and a protocol's rules asked."""
    found = {"data": 0, "links": 0, "rules": 0}

    def counted(owner, name, key):
        before = getattr(owner, name)

        def call(*args, **named):
            found[key] += 1
            return before(*args, **named)

        monkeypatch.setattr(owner, name, call)

    counted(Experiment, "_build", "data")
    counted(Network, "check_links", "links")
    counted(PerturbedAdmm, "check_problem", "rules")
    return found


def surveyed(**fields):
    protocols = {"p": {"kind": "perturbed_admm", "noise": {"alpha": 3.0}}, "q": {"kind": "local"}}
    experiment = Experiment(load({**BASE, "protocols": protocols, **fields}))
    preflight(experiment, plan(experiment, experiment.runs()))
    return experiment


def test_what_points_share_is_looked_at_once(counts):
    surveyed(sweep={"network.loss": [i / 1000 for i in range(300)], "stop.time": [1.0, 2.0]})
    assert counts == {"data": 1, "links": 300, "rules": 1}


def test_every_data_set_and_every_set_of_parameters_is_looked_at_once(counts):
    surveyed(sweep={"protocols.p.noise.alpha": [1.0, 2.0, 3.0], "task.dimension": [2, 3]}, seeds={"data": 2, "run": 5})
    assert counts == {"data": 4, "links": 4, "rules": 12}


def test_data_are_kept_for_the_runs_as_far_as_there_is_room(counts, monkeypatch):
    experiment = surveyed(seeds=4)
    for run in experiment.runs():
        experiment.data(run)
    assert counts["data"] == 4
    size = experiment._data(next(experiment.runs())).size
    monkeypatch.setattr(planning, "KEPT", 2 * size + size // 2)
    assert len(surveyed(seeds=9)._built) == 3
