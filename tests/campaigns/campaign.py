"""What campaigns have in common: numbered cases, each from its own seed, a limit of processor time, and an account."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hushnet.simulator.cli import UNFORESEEN, main

PROCESSOR_SECONDS = 10
MOST_LINES = 22
CODES = {0, 2, 4, 5}
"""Exit codes of commands that ended as they should."""


class Hang(BaseException):
    """A command took too much processor time, or waited."""


def _hang(*_: object) -> None:
    raise Hang


def command(arguments: list[str], *, seconds: int = PROCESSOR_SECONDS) -> tuple[int, str, list[str]]:
    """Run a command in this process; its exit code, its last words, and what is wrong with how it ended."""
    out, err = io.StringIO(), io.StringIO()
    before = {kind: signal.signal(kind, _hang) for kind in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(60 * seconds)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    except Hang:
        return -1, "", ["hangs"]
    except BaseException as error:
        return -1, "", [f"raises {type(error).__name__}: {str(error)[:200]}"]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for kind, handler in before.items():
            signal.signal(kind, handler)
    said = err.getvalue().strip()
    wrong = []
    if code == UNFORESEEN:
        wrong.append(f"was not foreseen: {said[-300:]}")
    elif code not in CODES:
        wrong.append(f"ends with code {code}: {said[-200:]}")
    if "Traceback" in out.getvalue() + said:
        wrong.append("shows a traceback")
    if code and not said:
        wrong.append("says nothing")
    if len(said.splitlines()) > MOST_LINES or len(said) > 60_000:
        wrong.append(f"says too much: {len(said.splitlines())} lines, {len(said)} characters")
    return code, said, wrong


def campaign(
    name: str,
    attempt: Callable[[random.Random, Path, bool], tuple[str, list[str]]],
    *,
    cases: int,
) -> int:
    """Run a campaign from the command line and print its account.

    Parameters
    ----------
    name : str
    attempt : callable
        Makes a case from its own randomness in a folder of its own, loud or not; what class of outcome it had, and what
        was wrong.
    cases : int
        How many by default.

    Returns
    -------
    int
        Exit code, 1 if something was wrong.
    """
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--replay", type=int, help="only the case of this number, and show it")
    options = parser.parse_args()
    numbers = range(options.cases) if options.replay is None else [options.replay]
    outcomes: Counter[str] = Counter()
    failures = 0
    os.environ.pop("HUSHNET_DEBUG", None)
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            tempfile.tempdir = folder
            try:
                rng = random.Random(f"{options.seed}-{number}")
                outcome, wrong = attempt(rng, Path(folder), options.replay is not None)
            finally:
                tempfile.tempdir = None
        outcomes[outcome] += 1
        failures += bool(wrong)
        for what in wrong:
            print(f"case {number}: {what}", flush=True)
    print(f"{name}: seed {options.seed}, {len(numbers)} attempts, {failures} failures; {dict(outcomes)}", flush=True)
    return int(failures > 0)


def exit_with(code: int) -> None:
    """End the process with an exit code."""
    sys.exit(code)
