"""Runs in processes of their own: the same bytes, and what fails, is killed or interrupted costs nothing else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
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
from hushnet.simulator.experiment import Experiment, Workers, perform, run, start_workers
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


LONG = 600.0
"""Seconds after which something hangs, or outlives the process that it belongs to, on whatever machine."""


class Sweep:
    """``hushnet run`` on one or two processes, in a process group of its own."""

    def __init__(self, scenario: Path, out: Path, jobs: int = 2) -> None:
        command = [sys.executable, "-m", "hushnet.simulator.cli", "run", scenario, "--trust-code", "--quiet"]
        self.out, self.before = out, len(runs(out))
        self.process = subprocess.Popen(
            [*command, "--out", out, "--jobs", str(jobs)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def workers(self) -> list[psutil.Process]:
        """Processes that execute runs."""
        found: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # others are there though one ends meanwhile
                    if "spawn_main" in " ".join(child.cmdline()):
                        found.append(child)
        return found

    def started(self) -> bool:
        """Wait until there is another process."""
        return any(self.workers() for _ in self._while_it_runs())

    def heartbeat(self) -> bool:
        """Wait until this sweep has finished a run; False if it has ended before."""
        return any(len(runs(self.out)) > self.before for _ in self._while_it_runs())

    def _while_it_runs(self) -> Iterator[None]:
        end = time.monotonic() + LONG
        while self.process.poll() is None:
            assert time.monotonic() < end, "hangs"
            yield
            time.sleep(0.02)

    def end(self) -> tuple[int, str]:
        """Exit code and what was said."""
        _, said = self.process.communicate(timeout=LONG)
        return self.process.returncode, said


def runs(out: Path) -> list[Path]:
    return list(out.glob("[0-9a-f]*/manifest.json"))


@pytest.fixture
def scenario(tmp_path) -> Path:
    """Sixteen runs; those of the user's protocol take half a second, and can be held up."""
    return write(tmp_path, seconds=0.06, hold=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, bytes]:
    """What the same runs leave in a folder that nobody holds up."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run(write(folder, seconds=0.06, hold=True), out=folder / "out", trust_code=True)
    return content(folder / "out")


@pytest.mark.parametrize(
    ("early", "sent", "to_all"),
    [
        pytest.param(True, signal.SIGINT, True, id="a terminal's Ctrl-C while processes start"),
        pytest.param(False, signal.SIGINT, True, id="a terminal's Ctrl-C between runs"),
        pytest.param(True, signal.SIGTERM, False, id="kill while processes start"),
        pytest.param(False, signal.SIGTERM, True, id="Slurm between runs"),
    ],
)
def test_a_signal_ends_all_processes_and_says_how_to_go_on(scenario, undisturbed, tmp_path, early, sent, to_all):
    (tmp_path / "hold").touch(exist_ok=False)
    sweep = Sweep(scenario, tmp_path / "out")
    assert sweep.started() if early else sweep.heartbeat()
    workers = sweep.workers()
    assert workers
    if to_all:  # at once, as a terminal does: one after the other, a worker may be gone before its turn
        os.killpg(sweep.process.pid, sent)
    else:
        sweep.process.send_signal(sent)
    if not early and sent is signal.SIGTERM:
        sweep.process.send_signal(sent)  # as timeout does, which reaches its child alone and once more in its group
    (tmp_path / "hold").unlink()
    code, said = sweep.end()
    assert code == 128 + sent
    known = re.search(r"run the same command again to go on: at least (\d+) of 16 runs are there", said)
    assert known is not None, said
    assert int(known[1]) <= 2 * len(runs(tmp_path / "out"))  # `local` is made once for both losses
    assert "Traceback" not in said
    assert psutil.wait_procs(workers, timeout=LONG)[1] == []
    assert strays(tmp_path / "out") == set()
    if not early:
        code, said = Sweep(scenario, tmp_path / "out").end()
        assert code == 0, said
        assert content(tmp_path / "out") == undisturbed


def test_sigterm_in_the_middle_of_a_run_leaves_a_state_that_goes_on(scenario, undisturbed, tmp_path):
    (tmp_path / "hold").touch(exist_ok=False)
    sweep = Sweep(scenario, tmp_path / "out", jobs=1)
    assert sweep.heartbeat()
    sweep.process.terminate()
    code, said = sweep.end()
    assert code == 143
    assert re.fullmatch(r"interrupted; run the same command again to go on: at least \d+ of 16 runs are there\n", said)
    assert strays(tmp_path / "out") == set()
    (tmp_path / "hold").unlink()
    assert Sweep(scenario, tmp_path / "out", jobs=1).end() == (0, "")
    assert content(tmp_path / "out") == undisturbed
