"""What campaigns have in common: numbered cases, each from its own seed, a limit of processor time, and an account."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from hushnet.simulator.cli import UNFORESEEN, main

PROCESSOR_SECONDS = 10
MOST_LINES = 22
CODES = {0, 2, 4, 5}
"""Exit codes of commands that ended as they should."""
MOST_MEMORY = 2 << 30
BATCH, WARM = 250, 100
PATIENCE = 600
"""Seconds that a command may wait, and looks a second apart at which a case's process is asleep, before it is ended.
However busy a machine is, a process that wants to go on is not asleep; processor time is watched from inside."""
BETWEEN = 60
"""Seconds between two lines that say how far a campaign is."""

Case = tuple[int, str, list[str]]
"""Number of a case, its class of outcome, and what was wrong."""
Attempt = Callable[[Any, Path, bool], tuple[str, list[str]]]
Given = Callable[[int], Any]
"""What the case of a number is made from: its own randomness, or one of a list."""

importlib.metadata.entry_points = cache(importlib.metadata.entry_points)  # which looks at every installed package


class Hang(BaseException):
    """A command took too much processor time, or waited."""


def _hang(*_: object) -> None:
    raise Hang


class _Waiting:
    """Handles SIGALRM: a command that has done nothing since the last one, and did not want to, hangs."""

    def __init__(self) -> None:
        self.before = self.now()
        signal.alarm(PATIENCE)

    def __call__(self, *_: object) -> None:
        now = self.now()
        if now[0] - self.before[0] < 1e-3 and now[1] - self.before[1] < PATIENCE / 2:
            raise Hang
        self.before = now
        signal.alarm(PATIENCE)

    @staticmethod
    def now() -> tuple[float, float]:
        """Seconds of processor time, and those that this thread was ready and another one ran in its place."""
        delays = Path("/proc/self/schedstat")
        return time.process_time(), int(delays.read_text().split()[1]) / 1e9 if delays.exists() else 0.0


def asleep(pid: int) -> bool:
    """Whether no thread of a process runs, or would if it could; always where nobody knows."""
    states = []
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            states.append(path.read_text().rpartition(")")[2].split()[0])
    return not {"R", "D"} & set(states)


def command(
    arguments: list[str], *, seconds: int = PROCESSOR_SECONDS, main: Callable[[list[str]], int] = main
) -> tuple[int, str, list[str]]:
    """Run a command in this process; its exit code, its last words, and what is wrong with how it ended."""
    out, err = io.StringIO(), io.StringIO()
    handlers = {signal.SIGPROF: _hang, signal.SIGALRM: _Waiting()}
    before = {kind: signal.signal(kind, handler) for kind, handler in handlers.items()}
    signal.setitimer(signal.ITIMER_PROF, seconds)
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
    attempt: Attempt,
    *,
    cases: int,
    listed: Callable[[], Sequence[Any]] | None = None,
    here: bool = False,
) -> int:
    """Run a campaign from the command line and print its account.

    Cases are made in batches, each in a process of its own that is forked when the parent is warm: what one of them
    leaves behind concerns no others, and a case that never comes back is ended from outside.

    Parameters
    ----------
    name : str
    attempt : callable
        Makes a case from its own randomness in a folder of its own, loud or not; what class of outcome it had, and what
        was wrong.
    cases : int
        How many by default.
    listed : callable, optional
        All cases that there are, where they can be listed: an attempt is then given one of them instead of randomness,
        in an order that the seed draws, so that the first of them, and any others, are a random sample.
    here : bool
        Whether all cases are made in this process: those whose commands are processes of their own.

    Returns
    -------
    int
        Exit code, 1 if something was wrong.
    """
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first case, or its place among those listed"
    )
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--replay", "--case", type=int, help="only the case of this number, and show it")
    options = parser.parse_args()
    numbers: Sequence[int] = range(options.first, options.first + options.cases)
    loud = options.replay is not None
    things = None if listed is None else listed()
    if things is not None:
        order = random.Random(options.seed).sample(range(len(things)), len(things))
        numbers = order[options.first : options.first + options.cases]
    if loud:
        numbers = range(options.replay, options.replay + 1)
    os.environ.pop("HUSHNET_DEBUG", None)
    outcomes: Counter[str] = Counter()
    failures, told = 0, time.monotonic()

    def given(number: int) -> Any:
        return random.Random(f"{options.seed}-{number}") if things is None else things[number]

    if len(numbers) > BATCH and not here:
        list(one_batch(attempt, given, range(-WARM, 0)))  # what children would each import and compile
    make = partial(one_batch, attempt, given, loud=loud) if loud or here else partial(forked, attempt, given)
    for made in range(0, len(numbers), BATCH):
        for number, outcome, wrong in make(numbers[made : made + BATCH]):
            outcomes[outcome] += 1
            failures += bool(wrong)
            for what in wrong:
                print(f"case {number}: {what}", flush=True)
            if time.monotonic() > told + BETWEEN:
                told = time.monotonic()
                print(f"{outcomes.total():,} of {len(numbers):,} cases, {failures} failures", flush=True)
    print(f"{name}: seed {options.seed}, {len(numbers)} attempts, {failures} failures; {dict(outcomes)}", flush=True)
    return int(failures > 0)


def one_batch(attempt: Attempt, given: Given, numbers: Iterable[int], *, loud: bool = False) -> Iterator[Case]:
    """Make cases one after the other in this process."""
    for number in numbers:
        before = peak()
        with tempfile.TemporaryDirectory() as folder:
            tempfile.tempdir = folder
            try:
                outcome, wrong = attempt(given(number), Path(folder), loud)
            finally:
                tempfile.tempdir = None
        if peak() > max(before, MOST_MEMORY):
            wrong = [*wrong, f"takes {peak() >> 20:,} MiB of memory"]
        yield number, outcome, wrong


def forked(attempt: Attempt, given: Given, numbers: Sequence[int]) -> Iterator[Case]:
    """Make cases in a child; one that does not come back, or ends the child, is a failure."""
    left = list(numbers)
    while left:
        parent, child = multiprocessing.Pipe(duplex=False)
        sys.stdout.flush()
        process = multiprocessing.get_context("fork").Process(target=_send, args=(attempt, given, left, child))
        process.start()
        child.close()
        with contextlib.suppress(EOFError):
            while left and _heard(parent, process):
                yield parent.recv()
                del left[0]
        if left:
            process.kill()
            yield left.pop(0), "lost", ["never comes back, or ends the process"]
        process.join()


def _heard(pipe: Any, process: Any) -> bool:
    """Wait until there is something in a pipe, or the process at its other end sleeps for good."""
    looks = 0
    while looks < PATIENCE:
        if pipe.poll(1.0):
            return True
        looks = looks + 1 if asleep(process.pid) else 0
    return False


def _send(attempt: Attempt, given: Given, numbers: Sequence[int], pipe: Any) -> None:
    for case in one_batch(attempt, given, numbers):
        pipe.send(case)


def peak() -> int:
    """Bytes that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def exit_with(code: int) -> None:
    """End the process with an exit code."""
    sys.exit(code)
