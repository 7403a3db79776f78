"""A run says how far it is and what time is left, tells whoever asks from outside, and keeps a log."""

from __future__ import annotations

import io
import math
import os
import re
import shutil
import socket
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.console.log import FILE, LOGGER
from hushnet.simulator.console.progress import _Shown, perform_visibly
from hushnet.simulator.console.status import status
from hushnet.simulator.experiment import Experiment, InProcess, RunOutcome, perform, start_workers, worker_pool
from hushnet.simulator.experiment.plan import plan
from hushnet.simulator.experiment.processes import OwnProcesses
from hushnet.simulator.experiment.time_left import TimeLeft, range_in_words
from hushnet.simulator.experiment.tuning import trial_experiment
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits import memory
from hushnet.simulator.storage.ownership import MARKER
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.progress import Progress

from .sweep import write

TUNED = {
    "schema": 1,
    "scenario": "a-name-that-is-long",
    "seeds": 2,
    "task": {"kind": "linear_classification", "agents": 5, "dimension": 3, "samples": [5, 9], "test_samples": 9},
    "topology": {"kind": "complete"},
    "network": {"latency": {"kind": "constant", "value": 0.1}},
    "protocols": {"cd": {"kind": "coordinate_descent", "label": "coordinate descent of the paper", "mu": 0.1}},
    "stop": {"time": 2},
    "record": {"every": 1, "metrics": ["accuracy"]},
    "tune": {"over": {"cd.mu": [0.1, 0.2, 0.4]}, "seeds": 2},
    "sweep": {"network.latency.value": [0.1, 0.2]},
}


def test_progress_has_counts_time_left_and_names_of_runs_in_80_columns(tmp_path, monkeypatch):
    update = Progress.update
    monkeypatch.setattr(Progress, "update", lambda self, *a, **k: (update(self, *a, **k), self.refresh())[1])
    screen = io.StringIO()
    experiment = Experiment(load(TUNED), tmp_path / "out")
    assert perform_visibly(experiment, InProcess(), Console(file=screen, force_terminal=True, width=80)) == []
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", screen.getvalue())]
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for count in range(11):
        assert f" {count}/10 runs " in text, "six trials and four reported runs"
    assert re.search(r" 9/10 runs about \d+ s left coordinate", text)
    assert re.search(r"tuning coordinate descent of the paper, (value|trial)", text)
    assert "92233720" not in text


def test_nothing_is_left_once_the_last_runs_have_reached_their_end(tmp_path, monkeypatch):
    experiment = Experiment(load({**TUNED, "tune": None, "engine": "batched"}), tmp_path / "out")
    said, render = [], _Shown.render

    def rendered(self, task):
        text = render(self, task)
        if self._share == 1 and self._ended + len(self._begun) == self._total:
            said.append((str(text), task.description))
        return text

    monkeypatch.setattr(_Shown, "render", rendered)
    monkeypatch.setattr(_Shown, "max_refresh", 0.0)
    update = Progress.update
    monkeypatch.setattr(Progress, "update", lambda self, *a, **k: (update(self, *a, **k), self.refresh())[1])
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    assert perform_visibly(experiment, InProcess(), screen) == []
    assert said[-1] == ("", "writing tables")


def test_whoever_reads_results_while_runs_go_on_finds_them_in_order(tmp_path, monkeypatch):
    monkeypatch.setitem(perform.__globals__, "INDEXED_EVERY", -1.0)
    monkeypatch.setitem(perform.__globals__, "SHARE", math.inf)
    protocols = {"second": {"kind": "local"}, "first": {**TUNED["protocols"]["cd"], "label": "first"}}
    experiment = Experiment(load({**TUNED, "tune": None, "protocols": protocols}), tmp_path / "out")
    seen = []

    def on_run(run, outcome):
        found = load_all(tmp_path / "out")
        seen.append([(m["grid"], m["seed"], m["protocol"]) for m in found.manifests])

    assert perform(experiment, on_run=on_run) == []
    order = seen[-1]
    assert len(order) == 2 * 2 * 2
    assert all(found == [place for place in order if place in found] for found in seen)
    assert len(seen[0]) < 8


def test_trials_are_called_by_their_number_and_that_of_their_seed(tmp_path):
    trials = trial_experiment(Experiment(load(TUNED), tmp_path))
    assert trials is not None
    words = [run.words for run in trials.runs()]
    assert words[3] == (
        "tuning coordinate descent of the paper, trial 2 of 3, seed 2 of 2, network.latency.value = 0.1"
    )
    chosen = {**TUNED, "tune": {**TUNED["tune"], "seeds": [7, 9]}}
    trials = trial_experiment(Experiment(load(chosen), tmp_path))
    assert trials is not None
    assert [run.at for run in trials.runs()][1] == "network.latency.value = 0.1, trial 1 of 3, seed 9"


START = datetime(2026, 11, 28, 4, tzinfo=UTC)
LOG = f"""\
{START:%Y-%m-%dT%H:%M:%S}Z INFO little: 99 runs, old.yaml, hushnet 0
{START:%Y-%m-%dT%H:%M:%S}Z INFO little: 10 runs, little.yaml, hushnet 0
{START + timedelta(seconds=1):%Y-%m-%dT%H:%M:%S}Z INFO alone, seed 0: there already, 12
{START + timedelta(seconds=30):%Y-%m-%dT%H:%M:%S}Z WARNING alone, seed 1: diverged: protocol alone: it has
an infinite model: at once
{START + timedelta(seconds=40):%Y-%m-%dT%H:%M:%S}Z INFO alone, seed 2: complete in 9.00 s, 9.00 s of processor time, \
1 to 4 min left, 34
"""


def keep(folder, log=LOG):
    """A folder with a log, and with the two runs that it says are there."""
    for run in ("12", "34"):
        (folder / run).mkdir(parents=True)
        (folder / run / "manifest.json").write_text("{}")
    (folder / FILE).write_text(log)


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        (
            f"process {os.getpid()} on {socket.gethostname()}",
            ["OUT: running, 3 of 10 runs done, 1 of them not to their end (see run.log)", "process"],
        ),
        ("process 4 on elsewhere", ["OUT: running, 3 of", "process 4 on elsewhere"]),
        (
            f"process 999999999 on {socket.gethostname()}",
            ["OUT: stopped after 3 of 10 runs, 1 of them not to their end (see run.log); the same command goes on"],
        ),
    ],
    ids=["here", "elsewhere", "stopped"],
)
def test_somebody_outside_sees_how_far_a_run_is(tmp_path, lock, said):
    keep(tmp_path)
    (tmp_path / "tuning").mkdir()
    (tmp_path / "tuning" / ".lock").write_text(lock)
    found = [line.replace(str(tmp_path), "OUT") for line in status(tmp_path, START + timedelta(seconds=50))]
    left = "" if "stopped" in said[0] else ", with 1 to 4 min to go"
    assert found.pop() == f"latest: alone, seed 2, 10 s ago{left}"
    for line, start in zip(found, said, strict=True):
        assert line.startswith(start)


def test_status_of_a_run_that_is_done_and_of_what_is_no_run(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["run", str(write(tmp_path)), "--trust-code", "--out", str(out), "--quiet", "--set", "seeds=1"]) == 0
    capsys.readouterr()
    assert main(["status", str(out)]) == 0
    assert f"{out}: done, 4 of 4 runs\n" in capsys.readouterr().out
    (out / FILE).unlink()
    assert status(out) == [f"{out}: 3 runs are there, and nobody is writing there"]
    with pytest.raises(InputError, match="does not exist"):
        status(tmp_path / "nowhere")


def test_a_run_whose_folder_was_removed_is_not_done(tmp_path):
    keep(tmp_path, LOG.replace(": 10 runs", ": 3 runs"))
    assert status(tmp_path)[0].startswith(f"{tmp_path}: done, 3 of 3 runs")
    shutil.rmtree(tmp_path / "34")
    assert status(tmp_path)[0].startswith(f"{tmp_path}: stopped after 2 of 3 runs")
    (tmp_path / "tuning" / "34").mkdir(parents=True)
    assert status(tmp_path)[0].startswith(f"{tmp_path}: done, 3 of 3 runs")


def test_status_of_several_experiments_has_a_line_for_each(tmp_path, capsys):
    for name, runs in {"one": 10, "two": 4}.items():
        keep(tmp_path / name, LOG.replace(": 10 runs", f": {runs} runs"))
    (tmp_path / "other").mkdir()
    assert main(["status", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/{name}: stopped after 3 of {runs} runs, 1 of them not to their end (see run.log); "
        "the same command goes on from there"
        for name, runs in (("one", 10), ("two", 4))
    ]


@pytest.mark.parametrize(
    ("many", "worth", "fit", "processors", "hired"),
    [
        (1e9, 1e9, 8, 2, []),  # short by any measure
        (0, 1e9, 8, 2, [8]),  # long by the number of wake-ups
        (1e9, 0.0, 8, 2, [7]),  # long as the first run has shown
        (0, 0.0, 1, 2, []),  # no room in memory for a second one
        (0, 0.0, 8, 1, []),  # one processor
    ],
)
def test_processes_are_started_where_work_takes_longer(tmp_path, monkeypatch, many, worth, fit, processors, hired):
    met = []

    def work(self, experiment, queue, **on):
        met.append(len(queue))
        yield from ((rank, RunOutcome("id", "complete")) for rank in range(len(queue)))

    monkeypatch.setattr(OwnProcesses, "work", work)
    monkeypatch.setattr(InProcess, "work", lambda *a, **k: iter([(0, RunOutcome("id", "complete", seconds=1.0))]))
    monkeypatch.setattr(worker_pool, "MANY", many)
    monkeypatch.setattr(worker_pool, "WORTH", worth)
    monkeypatch.setattr(worker_pool, "processes_of", lambda _: processors)
    monkeypatch.setattr(Experiment, "processes_that_fit", lambda *_: fit)
    experiment = Experiment(load({**TUNED, "tune": None, "seeds": 4}), tmp_path / "out")
    queue = plan(experiment, list(experiment.runs()))
    with start_workers("auto") as workers:
        assert sorted(rank for rank, _ in workers.work(experiment, queue)) == list(range(len(queue)))
        assert workers.processes() == 1 or hired
    assert met == hired


def test_a_limit_on_memory_limits_processes(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10 * 2**30)
    scenario = load(TUNED).scenario
    free = memory.processes_that_fit(scenario, None, load(TUNED).code.protocol)
    assert free == pytest.approx(0.9 * 10 * 2**30 / memory.PROCESS_BYTES, abs=1), "small worlds"
    scenario = load({**TUNED, "limits": {"memory": "4 GiB"}}).scenario
    assert memory.processes_that_fit(scenario, None, load(TUNED).code.protocol) == 2


ONE, OTHER, THIRD = ("cd", "near"), ("cd", "far"), ("admm", "far")


def total(bounds):
    low, high = bounds
    assert low == pytest.approx(high)
    return low


def test_what_is_left_is_told_from_runs_of_the_point_then_of_the_protocol_then_of_all():
    left = TimeLeft({ONE: 3, OTHER: 2, THIRD: 1})
    assert left.seconds() is None
    left.ended(ONE, 2.0)
    assert total(left.seconds()) == pytest.approx(2 * 2 + 2 * 2 + 2)
    left.ended(OTHER, 10.0)
    assert total(left.seconds()) == pytest.approx(2 * 2 + 10 + 6)
    left.ended(THIRD, 100.0)
    assert total(left.seconds()) == pytest.approx(2 * 2 + 10)
    for key in (ONE, ONE, OTHER):
        left.ended(key, 1.0)
    assert total(left.seconds()) == 0


def test_a_grid_point_without_runs_takes_between_as_long_and_in_proportion_to_its_work():
    left = TimeLeft({ONE: 2, OTHER: 2, THIRD: 1}, work={ONE: 10.0, OTHER: 40.0, THIRD: 100.0})
    left.ended(ONE, 2.0)
    assert left.seconds() == pytest.approx((2 + 2 * 2 + 2, 2 + 2 * 8 + 20))
    left.ended(OTHER, 5.0)
    assert left.seconds() == pytest.approx((2 + 5 + 3.5, 2 + 5 + 3.5 * 100 / 25)), "the mean of the two points"


@pytest.mark.parametrize(("fixed", "each"), [(1.0, 0.0), (0.0, 0.1), (1.0, 0.1), (0.05, 0.02)])
@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
def test_times_that_are_a_line_over_work_are_within_the_bounds_throughout(fixed, each, order):
    points = [("cd", size) for size in range(10, 240, 10)][::order]
    seconds = {key: fixed + each * key[1] for key in points}
    left = TimeLeft(dict.fromkeys(points, 2), work={key: float(key[1]) for key in points})
    rest = 2 * sum(seconds.values())
    for key in points:
        for _ in range(2):
            left.ended(key, seconds[key])
            rest -= seconds[key]
            low, high = left.seconds()
            assert low - 1e-9 <= rest <= high + 1e-9


def test_runs_that_go_on_side_by_side_are_taken_away_by_their_own_work():
    points = [("cd", size) for size in (10, 20, 30, 40)]
    left = TimeLeft(dict.fromkeys(points, 1), work={key: float(key[1]) for key in points})
    assert left.seconds_after(3.0, begun=points[:2], share=0.5) == pytest.approx((3 + 2 * 3, 3 + 70 * 0.2))
    for key in points[:2]:
        left.ended(key, 0.2 * key[1])
    assert total(left.seconds_after(1.5, begun=points[2:3], share=0.25)) == pytest.approx(4.5 + 8.0)


def test_runs_that_are_there_take_no_time():
    left = TimeLeft({ONE: 5})
    left.ended(ONE, None)
    assert left.seconds() is None
    assert left.seconds_after(3.0) is None
    assert total(left.seconds_after(3.0, begun=[ONE], share=0.5)) == pytest.approx(3.0 + 3 * 6.0), "its own pace"
    left.ended(ONE, 2.0)
    assert total(left.seconds()) == pytest.approx(6)
    assert total(left.seconds_after(1.5)) == pytest.approx(4.5)
    assert total(left.seconds_after(100.0)) == pytest.approx(4.2), "a tenth of the run that goes on is still to come"
    for _ in range(2):
        left.ended(ONE, None)
    assert total(left.seconds()) == pytest.approx(2)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(1e-4, 1e5) | st.none()), max_size=30),
    st.integers(1, 8),
    st.floats(0, 1e6),
)
@settings(max_examples=200, deadline=None)
def test_what_is_told_is_a_time(ended, processes, gone):
    keys = [("p", place) for place in range(6)]
    left = TimeLeft(dict.fromkeys(keys, 10), processes)
    for place, seconds in ended:
        left.ended(keys[place], seconds)
        if left.seconds() is None:
            continue
        now, later = left.seconds(), left.seconds_after(gone)
        for low, high in (now, later):
            assert 0 <= low <= high * (1 + 1e-9) < np.inf
            assert range_in_words((low, high))
        assert all(np.array(later) <= now)


TEXT = """\
schema: 1
scenario: little
seeds: 2
task: {kind: mean_estimation, agents: 4}
topology: {kind: complete}
clock: {kind: poisson}
network: {latency: {kind: constant, value: 0}}
protocols: {alone: {kind: local}}
stop: {time: 2}
record: {every: 1, metrics: [mse]}
"""
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (INFO|WARNING) ")


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "little.yaml"
    path.write_text(TEXT)
    return path


def test_every_run_has_a_line_and_is_there_the_next_time(scenario, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["run", str(scenario), "--out", str(out), "--quiet"]) == 0
    assert "complete in" not in capsys.readouterr().out
    first = (out / FILE).read_text().splitlines()
    assert all(LINE.match(line) for line in first)
    assert sum("complete in" in line for line in first) == 2
    assert main(["run", str(scenario), "--out", str(out), "--quiet", "--verbose"]) == 0
    assert capsys.readouterr().out.count("there already") == 2
    assert len((out / FILE).read_text().splitlines()) == 2 * len(first)
    assert not LOGGER.handlers


def test_a_log_that_cannot_be_written_stops_nothing(scenario, tmp_path):
    out = tmp_path / "out"
    assert main(["run", str(scenario), "--out", str(out), "--quiet"]) == 0
    (out / FILE).unlink()
    (out / FILE).mkdir()
    assert main(["run", str(scenario), "--out", str(out), "--quiet", "--set", "stop.time=3"]) == 0
    assert (out / MARKER).exists()
