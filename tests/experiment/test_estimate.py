"""Estimates before a run, held against what the runs then take: counted, not timed."""

import pytest
from hushnet.simulator.console import run_scenario
from hushnet.simulator.estimate import Estimate, estimate, print_estimate
from hushnet.simulator.experiment import Experiment, perform
from hushnet.simulator.language.loading import load
from hushnet.simulator.probes import Cost
from hushnet.simulator.results import load_all
from hushnet.simulator.tuning import trial_experiment
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


def after_a_quarter(_):
    return lambda world: world.now >= world.setting.stop.time / 4


def test_a_grid_whose_points_differ_in_cost_is_estimated_within_a_factor_of_three(tmp_path):
    experiment = Experiment(load(SWEPT), tmp_path)
    found = estimate(experiment, after_a_quarter)
    perform(experiment)
    done = load_all(tmp_path)
    manifests = {run.split("#")[0]: manifest for run, manifest in zip(done.runs, done.manifests, strict=True)}
    assert (found.runs, found.distinct, found.there) == (40, len(manifests), 0)
    assert found.distinct == 30
    activations = sum(manifest["totals"]["activations"] for manifest in manifests.values())
    rows = len(done.trace[~done.trace["run"].str.contains("#")])
    folders = [tmp_path / run for run in manifests]
    written = sum(path.stat().st_size for folder in folders for path in folder.iterdir())
    for expected, actual in (
        (found.total.activations, activations),
        (found.total.rows, rows),
        (found.total.disk, written),
    ):
        assert 1 / 3 < expected / actual < 3
    assert found.total.seconds > 0
    assert found.total.memory > 0


def test_cost_that_is_a_power_of_a_swept_value_is_met_between_the_probes(tmp_path):
    """Steps are agents times time, and what is met between three probed sizes is a power of the size.

    From half of each probed run (160, 640 and 2,560 expected steps of Poisson clocks) the sum is off by a deviation of
    less than 3 %, so 15 % are exceeded with a probability below 1e-5.
    """
    data = {**SWEPT, "sweep": {"task.agents": {"log": [16, 256, 5]}}, "stop": {"time": 20}}
    found = estimate(Experiment(load(data), tmp_path), lambda _: lambda world: world.now >= 10)
    assert found.total.activations == pytest.approx(2 * 20 * (16 + 32 + 64 + 128 + 256), rel=0.15)


def test_what_is_there_already_is_not_counted_again_and_nothing_is_written(tmp_path):
    data = {**SWEPT, "sweep": {}, "stop": {"time": 2}}
    folder = tmp_path / "results"
    estimate(Experiment(load(data), folder), after_a_quarter)
    assert not folder.exists()
    perform(Experiment(load(data), folder))
    found = estimate(Experiment(load({**data, "seeds": 3}), folder), after_a_quarter)
    assert (found.runs, found.there) == (6, 2)
    assert estimate(Experiment(load(data), folder), after_a_quarter).total.seconds == 0


def test_trials_are_estimated_apart_and_their_choice_is_used_once_they_are_there(tmp_path, capsys):
    data = {**SWEPT, "sweep": {}, "stop": {"time": 2}, "seeds": 2}
    data["tune"] = {"over": {"cd.mu": [0.1, 0.2, 0.3]}, "seeds": 2}
    trials = trial_experiment(Experiment(load(data), tmp_path))
    assert trials is not None
    assert estimate(trials, after_a_quarter).runs == 6
    perform(Experiment(load(data), tmp_path))
    print_estimate(Experiment(load(data), tmp_path), Console(width=200))
    lines = capsys.readouterr().out.splitlines()
    assert "tuning: 6 runs; 6 are there, 0 to run" in lines
    assert "4 runs; 4 are there, 0 to run" in lines


def test_processes_share_the_work_but_not_the_longest_run():
    total = Cost(seconds=100.0, data_seconds=0.0, activations=1.0, rows=1.0, disk=1.0, memory=1.0)
    found = Estimate(10, 10, 0, total, longest=30.0)
    assert [found.wall_seconds(n) for n in (1, 2, 8)] == [100.0, 50.0, 30.0]


def test_a_dry_run_says_what_it_would_do(tmp_path, capsys):
    run_scenario(load({**SWEPT, "sweep": {}, "stop": {"time": 2}}), out=tmp_path / "out", dry_run=True, jobs=2)
    printed = capsys.readouterr().out
    for words in ("2 protocols, 1 grid point, 1 seed", "nothing was run or written", "2 runs; 0 are there, 2 to run"):
        assert words in printed
    assert "estimated from short probes: time about" in printed
    assert "in 2 processes" in printed
    assert not (tmp_path / "out").exists()
