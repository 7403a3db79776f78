"""Estimates before a run, held against what the runs then take."""

import re

import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.console import run_scenario
from hushnet.simulator.engine.selection import Engine
from hushnet.simulator.experiment import Experiment, perform
from hushnet.simulator.experiment.estimate import estimate, print_estimate
from hushnet.simulator.experiment.tuning import trial_experiment
from hushnet.simulator.language.loading import load
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
