"""How runs are handed out, without any process, and what is done with some of them elsewhere."""

from __future__ import annotations

import pickle
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hushnet.agents.errors import OutOfResources, RunFailure
from hushnet.simulator.experiment import Experiment, dispatch, perform, remote, start_workers
from hushnet.simulator.experiment.plan import plan
from hushnet.simulator.experiment.processes import OwnProcesses
from hushnet.simulator.experiment.remote import WorkerContext, context_of, pack, work
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits import memory
from hushnet.simulator.storage.store import Store

from .sweep import content, strays, write


@pytest.fixture
def experiment(tmp_path) -> Experiment:
    made = Experiment(load(write(tmp_path), trust_code=True), tmp_path / "out")
    made.token, made.contract = Store(made.folder).claimed().token, False
    return made


class Shuffled(dispatch.Elsewhere):
    """Stands for a cluster: does what it is given in random order, in this process, and may lose its workers."""

    def __init__(self, rng, *, deadly: str = "", deaths: int = 1) -> None:
        self.rng, self.deadly, self.lost, self.given = rng, deadly, 0, 0
        self.open: list[tuple[Future[Any], WorkerContext, bytes]] = []
        type(self).deaths = deaths

    def prepare(self, experiment, queue):
        """There are workers."""

    def count(self) -> int:
        if self.open:
            self._do(*self.open.pop(self.rng.integers(len(self.open))))
        return 3

    def submit(self, function, *arguments):
        assert function is work
        self.given += 1
        self.open.append((Future(), *arguments))
        return self.open[-1][0]

    def result(self, future):
        return future.result()

    def forget(self, futures):
        assert list(futures) == []

    def _do(self, future: Future[Any], context: WorkerContext, packed: bytes) -> None:
        if self.deadly in {planned.name for planned in pickle.loads(packed)}:
            self.lost += 1
            (context.folder / self.deadly).touch()
            future.set_exception(dispatch.WorkerDied())
        else:
            future.set_result(work(context, packed))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(dispatch, "LOOK", 0.0)


def test_any_order_of_completion_leaves_the_same_bytes(experiment, tmp_path):
    assert perform(experiment) == []
    expected = content(tmp_path / "out")
    assert "dataset/trace.parquet" in expected
    for order in range(3):
        other, seen = replace(experiment, out=tmp_path / f"{order}"), []
        workers = Shuffled(np.random.default_rng(order))
        assert perform(other, workers=workers, on_run=lambda run, _, seen=seen: seen.append(run.place)) == []
        assert sorted(seen) == sorted(run.place for run in experiment.runs())
        assert content(tmp_path / f"{order}") == expected
        assert strays(tmp_path / f"{order}") == set()


@pytest.mark.parametrize(("deaths", "alone"), [(1, 3), (3, 1)])
def test_runs_that_lose_their_process_together_are_made_by_themselves_until_the_guilty_one_is_known(
    experiment, monkeypatch, deaths, alone
):
    monkeypatch.setattr(dispatch, "in_stacks", lambda experiment, queue: [[*range(len(queue))]])
    queue = plan(experiment, list(experiment.runs()))
    workers = Shuffled(np.random.default_rng(2), deadly=queue[3].name, deaths=deaths)
    failures = perform(experiment, workers=workers)
    assert [type(failure) for failure in failures] == [RunFailure]
    assert f"{queue[3].run.place}: killed its worker 3 times" in str(failures[0])
    assert workers.lost == 1 + alone
    assert len(list(experiment.folder.glob("*/manifest.json"))) == 11


def test_more_processes_than_fit_into_memory_are_refused_with_the_numbers(experiment, monkeypatch):
    needed = memory.expected_bytes(experiment.loaded.scenario, resolve=experiment.loaded.code.protocol)
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * needed)
    with pytest.raises(OutOfResources, match=r"of memory in 12 processes, and .* use fewer --jobs,"):
        perform(experiment, workers=start_workers(16))


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


def test_a_run_that_nobody_waits_for_any_more_is_given_up(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "CHECK_INTERVAL", 0.0)
    made = remote.run_stack

    def left_alone(*given):
        (tmp_path / "x").rename(tmp_path / "gone")
        return made(*given)

    monkeypatch.setattr(remote, "run_stack", left_alone)
    assert some_runs(experiment, tmp_path / "x") == []
    assert list(experiment.folder.glob("*/manifest.json")) == []


def some_runs(experiment: Experiment, there: Path, **changes: Any) -> Any:
    queue = plan(experiment, list(experiment.runs()))[:2]
    there.mkdir(exist_ok=True)
    return work(replace(context_of(experiment, queue, there), **changes), pack(queue))
