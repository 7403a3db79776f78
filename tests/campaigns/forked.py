"""``hushnet`` commands in processes of their own that need not import everything anew.

A server has imported what a command imports, and nothing else has happened in it; every command is a fork of it, in a
session of its own, with its own exit code. Workers of ``--jobs 2`` are started as ever (``spawn``), or forked from a
process that has imported the same (``forkserver``): their code is the same, only imports are saved.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.metadata
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
QUIET = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA")}
SILENT = {"PYTHONWARNINGS": "ignore:'hushnet.simulator.cli' found in sys.modules"}
"""What Python says where workers are forked from a process that has imported their main module."""
FROM_A_FORK = "HUSHNET_CAMPAIGN_WORKERS"
"""Variable that names how a command's workers start."""


@dataclass(frozen=True)
class Ended:
    """How a command ended; a code below zero is the signal that ended it."""

    code: int
    out: str
    said: str


class Server:
    """A process that forks commands, one at a time.

    Parameters
    ----------
    folder : Path
        For its own files; made.
    warm : sequence of str
        Arguments of a command that imports what later ones need; run once in a fork.
    environment : mapping of str, optional
        Variables on top of this process's.
    python : str, optional
        The interpreter.
    """

    def __init__(
        self,
        folder: Path,
        warm: Sequence[str],
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        self.folder = folder
        folder.mkdir()
        self._process = subprocess.Popen(
            [python, "-P", str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, **QUIET, **SILENT, **(environment or {})},
        )
        self.warmed = self.run(warm)
        self.source: str = self._ask({"know": True})["source"]

    def run(
        self, arguments: Sequence[str], cwd: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Ended:
        """Run a command to its end."""
        self.start(arguments, cwd, environment)
        return self.end()

    def start(
        self, arguments: Sequence[str], cwd: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> int:
        """Start a command; its process id."""
        files = {name: str(self.folder / name) for name in ("out", "said")}
        given = {"arguments": [*map(str, arguments)], "cwd": str(cwd or self.folder), **files}
        return self._ask({**given, "environment": dict(environment or {})})["pid"]

    def end(self) -> Ended:
        """Wait until it has ended."""
        answer = self._heard()
        texts = ((self.folder / name).read_text(errors="replace") for name in ("out", "said"))
        return Ended(answer["code"], *texts)

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, what: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self._heard()

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server has ended with code {self._process.wait()}")
        return json.loads(line)


def serve() -> None:
    """Do what is asked for on standard input, line by line; answers go to standard output."""
    answers = os.fdopen(os.dup(1), "w")
    importlib.import_module("hushnet.simulator.console")
    modules = Path("modules.json")

    def answer(**what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    for line in sys.stdin:
        asked = json.loads(line)
        if "know" in asked:
            _import(json.loads(modules.read_text()))
            _ask_once()
            _ready_to_fork_workers(json.loads(modules.read_text()))
            answer(source=importlib.import_module("hushnet.simulator").__file__)
            continue
        pid = os.fork()
        if pid == 0:
            _command(asked, None if modules.exists() else modules.resolve())
        answer(pid=pid)
        _, status = os.waitpid(pid, 0)
        answer(code=os.waitstatus_to_exitcode(status))


def _command(asked: Mapping[str, Any], modules: Path | None) -> None:
    """Be the command that was asked for."""
    code = 70
    try:
        os.setsid()
        os.chdir(asked["cwd"])
        os.environ.update(asked["environment"])
        _as_the_environment_has_it()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for handle, name in ((1, "out"), (2, "said")):
            os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), handle)
        from hushnet.agents.authors import complain_plainly
        from hushnet.simulator import cli
        from hushnet.simulator.cli import __main__ as started

        sys.modules["__main__"] = started  # as python -m hushnet.simulator.cli has it, and processes that it starts
        complain_plainly()
        code = cli.main(asked["arguments"])
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, ValueError):  # a plug-in may have closed it
                stream.flush()
        if modules is not None:
            modules.write_text(json.dumps([name for name in sys.modules if not name.startswith("__")]))
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _as_the_environment_has_it() -> None:
    """Have workers started as the environment says."""
    from hushnet.simulator.experiment import processes

    processes.CONTEXT = multiprocessing.get_context(os.environ.get(FROM_A_FORK, "spawn"))


def _import(names: Sequence[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _ask_once() -> None:
    """Remember what is the same for every command."""
    importlib.metadata.entry_points = cache(importlib.metadata.entry_points)
    gc.freeze()


def _ready_to_fork_workers(names: Sequence[str]) -> None:
    """Start the process that workers are forked from, with everything imported.

    At once, before anybody watches: it belongs to no command, and nor does the one that keeps semaphores' names.
    """
    own: Any = forkserver._forkserver  # pyright: ignore[reportAttributeAccessIssue]
    own.set_forkserver_preload([name for name in names if name in sys.modules])
    own.ensure_running()
    own.ensure_running = lambda: None  # a fork would look for it among its own children


if __name__ == "__main__":
    serve()
