"""What data, graph or files refuse at any point of a sweep is refused before the first run starts, at bounded cost."""

from __future__ import annotations

import pytest
from hushnet.agents.tasks.linear_classification import LinearClassification
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.simulator.cli import main
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.experiment import plan as planning
from hushnet.simulator.experiment.plan import plan
from hushnet.simulator.experiment.survey import survey
from hushnet.simulator.language.loading import load
from hushnet.simulator.network.network import Network

BASE = {
    "schema": 1,
    "scenario": "surveyed",
    "task": {"kind": "linear_classification", "agents": 6, "dimension": 2, "samples": [5, 5], "test_samples": 2},
    "topology": {"kind": "ring"},
    "protocols": {"p": {"kind": "local"}, "q": {"kind": "coordinate_descent"}},
    "stop": {"time": 1.0},
    "record": {"every": 1.0, "metrics": ["accuracy"]},
}
CHECKED = "mechanism: laplace, multiplier: 1.0, sensitivity: data_check, radius"
REFUSED = {
    "a graph": (
        "topology: {kind: erdos_renyi, probability: 1.0}",
        "sweep: {topology.probability: [1.0, 1.0e-9]}",
        "topology: leaves 6 of 6 agents without a neighbour",
    ),
    "rows": (
        "protocols: {local: {kind: local}, p: {kind: coordinate_descent, privacy: {" + CHECKED + ": 9.0}}}",
        "sweep: {protocols.p.privacy.radius: [9.0, 0.001]}",
        "protocols.p.privacy.radius = 0.001: agent 0 has a row of l1 norm",
    ),
    "rows that are sent by dual averaging": (
        "protocols: {p: {kind: dual_averaging, privacy: {mechanism: gaussian, multiplier: 1.0, "
        "sensitivity: data_check, "
        "radius: 9.0}}}",
        "sweep: {protocols.p.privacy.radius: [9.0, 0.001]}",
        "protocols.p.privacy.radius = 0.001: agent 0 has a row of l2 norm",
    ),
    "a condition": (
        "protocols: {p: {kind: perturbed_admm, loss_weight: 1.0, noise: {alpha: 3.0}}}",
        "sweep: {protocols.p.loss_weight: [1.0, 1000000.0]}",
        "protocols.p.loss_weight = 1000000.0: theorem 4.1 asks for",
    ),
    "a target": (
        "protocols: {p: {kind: perturbed_admm, loss_weight: 1.0, noise: {target: {verified: 9.0, delta: 0.001}, "
        "updates: 3}}}",
        "sweep: {protocols.p.noise.target.verified: [9.0, 0.0001]}",
        "protocols.p.noise.target.verified = 0.0001: cannot be reached by any noise",
    ),
    "a list of links": (
        "network: {latency: 0.0}",
        "sweep: {network.latency: [0.0, {kind: matrix, path: links.csv}]}",
        "links.csv gives no delay from 0 to 1",
    ),
    "a trace": (
        "availability: {kind: always}",
        "sweep: {availability: [{kind: always}, {kind: trace, path: trace.csv}]}",
        "trace.csv:2: up_from 1.0 must be below up_to 0.0",
    ),
    "a clock": (
        "clock: {kind: recorded, order: [0, 1]}",
        "sweep: {clock: [{kind: poisson}, {kind: recorded, path: order.txt}]}",
        "order.txt:2: '17' is not the id of an agent of this task",
    ),
}


def written(tmp_path, *lines):
    (tmp_path / "links.csv").write_text("sender,receiver,delay\n1,0,0.5\n")
    (tmp_path / "trace.csv").write_text("agent,up_from,up_to\n0,1,0\n")
    (tmp_path / "order.txt").write_text("0\n17\n")
    fields = {line.partition(":")[0] for line in lines}
    rest = [f"{key}: {value!r}".replace("'", "") for key, value in BASE.items() if key not in fields]
    (tmp_path / "s.yaml").write_text("\n".join([*rest, *lines]) + "\n")
    return tmp_path / "s.yaml"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_later_point_is_refused_before_the_first_run_starts(tmp_path, capsys, name):
    *lines, says = REFUSED[name]
    path = written(tmp_path, *lines)
    assert main(["check", str(path)]) == 0, capsys.readouterr().err
    assert main(["run", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert not list(tmp_path.glob("out/*/trace.parquet")), "a run"


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

    counted(LinearClassification, "build", "data")
    counted(Network, "check_links", "links")
    counted(PerturbedAdmm, "check_problem", "rules")
    return found


def surveyed(**fields):
    protocols = {"p": {"kind": "perturbed_admm", "noise": {"alpha": 3.0}}, "q": {"kind": "local"}}
    experiment = Experiment(load({**BASE, "protocols": protocols, **fields}))
    survey(experiment, plan(experiment, experiment.runs()))
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
