"""Runs in processes of their own: the same bytes, and what fails costs nothing else."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask.config
import psutil
import pytest
from distributed import LocalCluster, Security
from hushnet.agents.errors import InputError, RunFailure
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.experiment import Experiment, Workers, perform, start_workers
from hushnet.simulator.language.loading import load

from .sweep import content, strays, write


@pytest.fixture(scope="module")
def workers():
    """Two processes for all tests of this file."""
    with start_workers(2) as hired:
        yield hired


def experiment(folder: Path, out: str, **fields: object) -> Experiment:
    return Experiment(load(write(folder, **fields), trust_code=True), folder / out)


def check_same_bytes(folder: Path, workers: Workers) -> None:
    assert perform(experiment(folder, "alone")) == []
    assert perform(experiment(folder, "together"), workers=workers) == []
    expected = content(folder / "alone")
    assert len([name for name in expected if name.endswith("trace.parquet")]) == 4 + 4 * 2 + len(["dataset"])
    assert content(folder / "together") == expected
    assert strays(folder / "together") == set()


def test_two_processes_leave_the_same_bytes_as_this_one(workers, tmp_path):
    check_same_bytes(tmp_path, workers)


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_a_cluster_that_exists_leaves_the_same_bytes(tmp_path, scheme):
    """Its workers are threads here; that they are elsewhere makes no difference to what is sent."""
    security = Security.temporary()
    client = {"ca-file": security.tls_ca_file, "client.cert": security.tls_client_cert}
    files = {
        f"distributed.comm.tls.{name}": text for name, text in {**client, "client.key": security.tls_client_key}.items()
    }
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol=f"{scheme}://",
        host="127.0.0.1",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        security=security if scheme == "tls" else None,
    ) as cluster:
        assert cluster.scheduler_address.startswith(f"{scheme}://")
        with dask.config.set(files), start_workers(scheduler=cluster.scheduler_address) as existing:
            check_same_bytes(tmp_path, existing)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_fails_is_named_with_its_traceback_and_stops_no_other(workers, tmp_path, jobs):
    given = experiment(tmp_path, "out", fails=True)
    failures = perform(given, workers=workers if jobs == 2 else None)
    assert [type(failure) for failure in failures] == [RunFailure] * 2
    said, _, file = str(failures[0]).partition("; see ")
    assert "small: protocol own, seed 0, network.loss = 0.0: own.py:26, `raise ZeroDivisionError(" in said
    assert said.endswith("`: ZeroDivisionError: a mistake of the user's")
    details = Path(file)
    assert "own.py" in details.read_text()
    assert "Traceback" in details.read_text()
    index = json.loads((tmp_path / "out/index.json").read_text())
    assert [(failed["protocol"], failed["seed"], failed["grid"]) for failed in index["failed"]] == [
        ("own", 0, {"network.loss": loss}) for loss in (0.0, 0.3)
    ]
    assert len(load_all(tmp_path / "out").runs) == len(index["runs"]) == 14

    given = experiment(tmp_path, "out")
    assert perform(given, workers=workers if jobs == 2 else None) == []
    assert not (tmp_path / "out/failures").exists()


def test_a_run_that_kills_its_workers_is_named_and_the_others_go_on(workers, tmp_path):
    path = write(tmp_path, kills=True)
    killing = Experiment(load(path, overrides=["sweep={}"], trust_code=True), tmp_path / "out")
    failures = perform(killing, workers=workers)
    assert [str(failure).partition(" (")[0] for failure in failures] == [
        "small: protocol own, seed 0: killed its worker 3 times"
    ]
    there = load_all(tmp_path / "out")
    assert [(manifest["protocol"], manifest["seed"]) for manifest in there.manifests] == [
        (protocol, seed) for seed in range(4) for protocol in ("local", "own") if (protocol, seed) != ("own", 0)
    ]
    assert strays(tmp_path / "out") == set()


def test_bad_input_in_a_process_has_its_line_in_the_scenario(workers, tmp_path):
    path = write(tmp_path)
    path.write_text(path.read_text().replace("{kind: local}", "{kind: coordinate_descent, confidence: [1.0, 2.0]}"))
    with pytest.raises(InputError, match=r"small\.yaml:8: protocols.local.confidence"):
        perform(Experiment(load(path, trust_code=True), tmp_path / "out"), workers=workers)


def test_a_scheduler_that_is_not_there_is_one_sentence(tmp_path, capsys):
    arguments = ["run", str(write(tmp_path)), "--trust-code", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--scheduler", "nonsense://here"]) == 2
    assert "--scheduler nonsense://here: cannot be reached" in capsys.readouterr().err


def connections(process: psutil.Process) -> list[Any]:
    """The internet sockets of a process; none if it has ended, as killed workers of other tests may at any time."""
    with suppress(psutil.NoSuchProcess):
        return process.net_connections("inet")
    return []


def test_processes_have_no_sockets_by_which_others_could_reach_them(workers, tmp_path):
    assert perform(experiment(tmp_path, "out"), workers=workers) == []
    ours = psutil.Process()
    found = {process.pid: connections(process) for process in (ours, *ours.children(recursive=True))}
    assert len(found) > 2, "some of ours"
    assert [socket for sockets in found.values() for socket in sockets] == []
