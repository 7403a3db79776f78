"""Runs in batches, without any process: what a worker does with one, and how they are handed out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import KilledWorker
from hushnet.agents.errors import InputError, OutOfResources, RunFailure
from hushnet.simulator.experiment import Experiment, batches, dispatch, hire, perform
from hushnet.simulator.experiment.batches import pack, post, work
from hushnet.simulator.experiment.cluster import ThroughClient
from hushnet.simulator.experiment.heartbeat import Heartbeat
from hushnet.simulator.experiment.plan import plan
from hushnet.simulator.experiment.processes import OwnProcesses
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits import memory
from hushnet.simulator.storage.store import Store

from .sweep import content, strays, write


@pytest.fixture
def experiment(tmp_path) -> Experiment:
    made = Experiment(load(write(tmp_path), trust_code=True), tmp_path / "out")
    made.token, made.contract = Store(made.folder).claimed().token, False
    return made


class Deferred:
    """A future whose work is done when somebody says so."""

    def __init__(self, key: int, arguments: tuple[Any, ...]) -> None:
        self.key, self.arguments, self.outcome, self.told = key, arguments, None, None

    def add_done_callback(self, told) -> None:
        self.told = told

    def result(self):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Shuffled:
    """Stands for dask's client: does what it is given in random order, in this process, and may lose its workers."""

    def __init__(self, rng, *, workers: int = 3, seconds: float = 0.0, deadly: set[str] | None = None) -> None:
        self.rng, self.workers, self.seconds, self.deadly = rng, workers, seconds, deadly or set()
        self.open: list[Deferred] = []
        self.sizes: list[int] = []
        self.lost = 0

    def nthreads(self) -> dict[int, int]:
        if self.open:
            self._do(self.open.pop(self.rng.integers(len(self.open))))
        return dict.fromkeys(range(self.workers), 1)

    def submit(self, function, told, packed, seconds, *, pure):
        assert function is work
        assert not pure, "the same batch may come again after a worker's death"
        self.open.append(Deferred(len(self.sizes), (told, packed, self.seconds)))
        self.sizes.append(len(batches.pickle.loads(packed)))
        return self.open[-1]

    def cancel(self, futures, *, force):
        assert force

    def _do(self, future: Deferred) -> None:
        names = {planned.name for planned in batches.pickle.loads(future.arguments[1])}
        if names & self.deadly:
            self.lost += 1
            future.outcome = KilledWorker("work", None, 4)
        else:
            future.outcome = work(*future.arguments)
        future.told(future)


class Pretended(dispatch.Elsewhere):
    """A cluster of one pretended client."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def hands(self, queue: Any, experiment: Any) -> Any:
        return ThroughClient(self.client)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(dispatch, "LOOK", 0.0)


@pytest.mark.parametrize("seconds", [0.0, 1000.0], ids=["one run a time", "whole batches"])
def test_any_order_of_completion_leaves_the_same_bytes(experiment, tmp_path, seconds):
    assert perform(experiment) == []
    expected = content(tmp_path / "out")
    assert "dataset/trace.parquet" in expected
    for order in range(3):
        other = replace(experiment, out=tmp_path / f"{order}")
        client = Shuffled(np.random.default_rng(order), seconds=seconds)
        seen = []
        assert perform(other, workers=Pretended(client), on_run=lambda run, _, seen=seen: seen.append(run.place)) == []
        assert sorted(seen) == sorted(run.place for run in experiment.runs())
        assert content(tmp_path / f"{order}") == expected
        assert strays(tmp_path / f"{order}") == set()


def test_what_does_not_fit_into_a_batchs_time_is_handed_out_again(experiment):
    client = Shuffled(np.random.default_rng(1), workers=1, seconds=0.0)
    perform(experiment, workers=Pretended(client))
    assert len(client.sizes) == 16, "a worker does one run a time"
    assert client.sizes[0] == 8
    assert client.sizes[-1] == 1, "what is left at the end is shared out"


def test_a_batch_that_loses_its_worker_is_split_until_the_guilty_run_is_alone(experiment):
    queue = plan(experiment, list(experiment.runs()))
    client = Shuffled(np.random.default_rng(2), seconds=1000.0, deadly={queue[5].name})
    failures = perform(experiment, workers=Pretended(client))
    assert [type(failure) for failure in failures] == [RunFailure]
    assert queue[5].run.place in str(failures[0])
    assert "killed its worker" in str(failures[0])
    assert client.lost == 2, "once in a batch, once alone"
    assert len(list(experiment.folder.glob("*/manifest.json"))) == 15


def one_batch(experiment: Experiment, begun: Heartbeat, **changes: Any) -> tuple[Any, Any]:
    queue = plan(experiment, list(experiment.runs()))[:2]
    return work(replace(post(experiment, queue, begun.folder), **changes), pack(queue), 1000.0)


@pytest.fixture
def heartbeat(experiment) -> Iterator[Heartbeat]:
    with Heartbeat.begun(experiment.folder) as begun:
        yield begun


def test_a_run_that_workers_died_of_three_times_is_not_tried_again(experiment, heartbeat):
    deadly, other = plan(experiment, list(experiment.runs()))[:2]
    (heartbeat.folder / deadly.name).write_text("+++")
    (heartbeat.folder / other.name).write_text("++")
    (quarantined, fine), error = one_batch(experiment, heartbeat)
    assert error is None
    assert (quarantined.status, quarantined.run_id) == ("failed", None)
    assert "killed its worker 3 times" in quarantined.error
    assert fine.status == "complete"
    assert [mark.name for mark in heartbeat.folder.iterdir()] == [deadly.name]


def test_a_worker_with_other_versions_is_refused(experiment, heartbeat):
    for changes in ({"code": "0.0+old"}, {"libraries": (("numpy", "1.0"),)}):
        outcomes, error = one_batch(experiment, heartbeat, **changes)
        assert outcomes == []
        assert isinstance(error, InputError)
        assert "install the same versions there" in str(error)


def test_a_worker_that_does_not_see_the_results_folder_says_so(experiment, heartbeat, tmp_path):
    outcomes, error = one_batch(experiment, heartbeat, heartbeat=tmp_path / "elsewhere" / "x")
    assert outcomes == []
    assert "choose one that all machines share" in str(error)
    assert "elsewhere" in str(error)


def test_a_run_that_nobody_waits_for_any_more_is_given_up(experiment, heartbeat, monkeypatch):
    monkeypatch.setattr("hushnet.simulator.experiment.heartbeat.CHECK_INTERVAL", 0.0)
    monkeypatch.setattr(Heartbeat, "visible", lambda _: False)
    assert one_batch(experiment, heartbeat) == ([], None)
    assert list(experiment.folder.glob("*/manifest.json")) == []


def test_more_processes_than_fit_into_memory_are_refused_with_the_numbers(experiment, monkeypatch):
    needed = memory.expected_bytes(experiment.loaded.scenario, resolve=experiment.loaded.code.protocol)
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * needed)
    with pytest.raises(OutOfResources, match=r"of memory in 16 processes, and .* use fewer --jobs,"):
        perform(experiment, workers=hire(16))


DYING = """\
import os, pathlib, sys
left = pathlib.Path(__file__).with_name("deaths")
deaths = left.read_text().splitlines()
if deaths and "spawn_main" in " ".join(sys.orig_argv):
    left.write_text("\\n".join(deaths[1:]))
    os._exit(3)
"""
"""What Python does in processes that die before they have begun, as often as a file has lines."""


@pytest.mark.parametrize("deaths", [2, 3])
def test_processes_that_die_while_they_start_are_started_again(experiment, tmp_path, monkeypatch, deaths):
    customs = tmp_path / "customs"
    customs.mkdir()
    (customs / "sitecustomize.py").write_text(DYING)
    (customs / "deaths").write_text("x\n" * deaths)
    monkeypatch.setenv("PYTHONPATH", str(customs))
    with OwnProcesses(1) as workers:
        if deaths == 2:
            assert perform(experiment, workers=workers) == []
        else:
            with pytest.raises(OutOfResources, match=r"1 processes cannot be started .*; use fewer --jobs"):
                perform(experiment, workers=workers)
    assert not (customs / "deaths").read_text()


def test_a_users_class_and_metric_travel_with_the_experiment(tmp_path):
    space: dict[str, Any] = {"__name__": "nowhere_to_be_imported"}
    exec((write(tmp_path).parent / "own.py").read_text(), space)
    loaded = load(tmp_path / "small.yaml", overrides=["protocols.own.kind=mine"], extra={"mine": space["Own"]})
    metrics = {"norm": lambda snapshot: float((snapshot.models**2).sum())}
    experiment = Experiment(loaded, tmp_path / "out", metrics=metrics)
    assert perform(experiment, workers=Pretended(Shuffled(np.random.default_rng(3)))) == []
    assert Path(tmp_path / "out/dataset/trace.parquet").is_file()
