"""Exported runs are read back by the trackers' own clients: every number of the trace, under the run's name."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator import run
from hushnet.simulator.bundle.experiment_trackers import WRITERS, export

SCENARIO = {
    "schema": 1,
    "scenario": "tiny",
    "task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [6, 8]},
    "topology": {"kind": "ring"},
    "protocols": {"local": {"kind": "local"}, "cd": {"kind": "coordinate_descent", "mu": 0.04}},
    "stop": {"time": 3},
    "record": {"every": 1, "metrics": ["accuracy", "epsilon"]},
    "sweep": {"network.loss": [0.0, 0.3]},
}


def needs(client):
    return pytest.mark.skipif(find_spec(client) is None, reason=f"{client}, the extra of this name, is not installed")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run(SCENARIO, out=tmp_path_factory.mktemp("results") / "tiny")


@needs("mlflow")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its use of SQLAlchemy
def test_mlflow_reads_every_number_of_the_trace(result, tmp_path):
    folder = export(result.folder, "mlflow", tmp_path / "out")
    client = import_module("mlflow").MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    [experiment] = client.search_experiments(filter_string="name = 'tiny'")
    runs = {made.data.tags["hushnet.run"]: made for made in client.search_runs([experiment.experiment_id])}
    assert set(runs) == {name.replace("#", "-") for name in result.collection.runs}
    for name, trace in result.trace.groupby("run"):
        numbers = trace["value"].clip(upper=sys.float_info.max).groupby([trace["metric"], trace["statistic"]])
        expected = {"/".join(pair): [*values.dropna()] for pair, values in numbers}
        expected["time"] = [*trace["time"].unique()]
        for metric, values in expected.items():
            history = client.get_metric_history(runs[name.replace("#", "-")].info.run_id, metric)
            assert [entry.value for entry in sorted(history, key=lambda entry: entry.step)] == pytest.approx(values)
    assert {made.info.run_name for made in runs.values()} >= {
        "local, network.loss 0, seed 0",
        "cd, network.loss 0.3, seed 0",
    }
    assert {made.data.params["protocol.kind"] for made in runs.values()} == {"local", "coordinate_descent"}
    assert {made.info.status for made in runs.values()} == {"FINISHED"}


@needs("wandb")
def test_wandb_has_an_offline_run_for_each(result, tmp_path):
    folder = export(result.folder, "wandb", tmp_path / "out")
    logs = {
        path.stem.removeprefix("run-"): path.read_bytes() for path in folder.glob("wandb/offline-run-*/run-*.wandb")
    }
    assert set(logs) == {name.replace("#", "-") for name in result.collection.runs}
    for log in logs.values():
        assert all(word in log for word in (b"accuracy/mean", b"epsilon_verified/median", b"network.loss", b"tiny"))


@pytest.mark.parametrize(
    ("to", "out", "sentence"),
    [
        ("tensorboard", None, "--to tensorboard: must be one of mlflow, wandb"),
        *((to, None, f"--to {to} needs {to}; install it with: pip install") for to in WRITERS),
        ("json", "", "is there already; remove it, or name another folder with --out"),
    ],
)
def test_a_tracker_that_cannot_be_written_is_one_sentence(to, out, sentence, result, tmp_path, monkeypatch):
    if out is None:
        monkeypatch.setitem(sys.modules, to, None)  # as if it were not installed
    else:
        monkeypatch.setitem(WRITERS, to, lambda *_: pytest.fail("nothing is overwritten"))
    with pytest.raises(InputError, match=sentence):
        export(result.folder, to, None if out is None else tmp_path / out)
