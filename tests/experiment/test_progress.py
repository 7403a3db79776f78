"""A run says in a line of 80 columns how far it is, and tells whoever asks from outside."""

from __future__ import annotations

import io
import os
import re
import socket
from datetime import UTC, datetime, timedelta

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.cli import main
from hushnet.simulator.console.log import FILE
from hushnet.simulator.console.progress import perform_visibly
from hushnet.simulator.console.status import status
from hushnet.simulator.experiment import Experiment, InProcess, RunOutcome, start_workers, worker_pool
from hushnet.simulator.experiment.plan import plan
from hushnet.simulator.experiment.processes import OwnProcesses
from hushnet.simulator.experiment.tuning import trial_experiment
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits import memory
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
    (tmp_path / FILE).write_text(LOG)
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
