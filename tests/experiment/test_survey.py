"""What data, graph or files refuse at any point of a sweep is refused before the first run starts, at bounded cost."""

from __future__ import annotations

import pytest
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.simulator.cli import main
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.experiment import plan as planning
from hushnet.simulator.experiment.plan import plan
from hushnet.simulator.experiment.preflight import preflight
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
