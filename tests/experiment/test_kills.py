"""Processes that are killed or interrupted in the middle: nothing is lost, nothing is left over, and one can go on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from hushnet.simulator.experiment import run

from .sweep import content, strays, write

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
    assert int(known[1]) <= len(runs(tmp_path / "out"))
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
