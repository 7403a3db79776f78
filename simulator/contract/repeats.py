"""Whether a protocol does the same in every process: one short run in a small world, made twice, step by step.

The second run is made in a fresh process, where Python hashes texts otherwise and memory lies elsewhere, and once more
here, where what the first has left behind may show. What differs only on other data, after the small world's end, in
batches of steps, or with little probability is not found: two texts in a set come in the same order half of the time.

A protocol that ends the fresh process has ended no other; where its runs are to be made is for others to decide.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from hashlib import blake2s
from pathlib import Path
from types import FrameType
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...agents.authors import class_place, contained, is_authors, last_place, place
from ...agents.errors import INTERRUPTED, words_of
from ...agents.files import read_bytes
from ...protocols import catalog
from ...protocols.base import Peer, Protocol, ProtocolParameters
from ...protocols.privacy.mechanisms import AgentStream, Implied, LogJacobian, Release, Solve
from ..engine.selection import Engine, EventEngine
from ..network.setting import Setting
from ..world.machine import one_thread
from ..world.watchers import Phase, Watch
from ..world.world import World
from .small_settings import admitted_world
from .small_worlds import small_worlds

SECONDS = 10.0
"""Processor time of a run at most."""
MOST_LINES = 50_000
"""Lines of a run that are looked at one by one."""
MOST_SAID = 2**16
"""Bytes of what a process has written last that are looked at."""
MOST_NESTED = 3
FAILED = "failure"
"""Phase of what stands after the last step of a run that has raised an error."""

Line = tuple[str, int, str]
"""A file, a line that was run there, and a digest of the variables after it."""


@dataclass(frozen=True)
class Repeated:
    """What came of the runs.

    Parameters
    ----------
    status : {"same", "differs", "deadly", "unknown"}
    said : str
        In one sentence: where they differ, or what the process said last that has ended.
    """

    status: Literal["same", "differs", "deadly", "unknown"]
    said: str = ""


@dataclass
class RepeatedStep:
    """A step as it was noted."""

    agent: Any
    now: float
    phase: str
    digest: str
    lines: list[Line]


@dataclass
class Steps:
    """A watch that notes every step's outcome, and the lines of the author's that were run for it."""

    names: Sequence[int | str] = ()
    steps: list[RepeatedStep] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    count: int = 0

    def assumed(self, name: str, value: Any) -> Any:
        """Leave constants as they are."""
        return value

    def stream(self, stream: np.random.Generator, purpose: str, agent: int) -> np.random.Generator:
        """Give the stream that an agent is given where nobody watches."""
        return AgentStream(stream)

    def noisy(self, release: Release, exact: NDArray[np.float64], noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Leave noise as it is."""
        return noisy

    def solved(
        self,
        release: Release,
        solution: NDArray[np.float64],
        noise: NDArray[np.float64],
        implied: Implied,
        log_jacobian: LogJacobian,
        solve: Solve | None,
    ) -> NDArray[np.float64]:
        """Leave a minimiser as it is."""
        return solution

    def stepped(self, phase: Phase, me: Peer) -> None:
        """Note a step."""
        parts = [list(me.named_vectors_()), [[sent.kind, sent.to, sent.vector] for sent in me.sent_], me.silent_]
        self.steps.append(RepeatedStep(self.names[me.agent], me.now, phase, digest(parts), self.lines))
        self.lines = []

    def line(self, frame: FrameType, number: int, given: Any) -> None:
        """Note a line that was run, and what it has returned if it did."""
        if self.count < MOST_LINES:
            self.count += 1
            known = digest([{name: value for name, value in frame.f_locals.items() if name != "me"}, given])
            me = vars(frame.f_locals["me"]) if "me" in frame.f_locals else {}
            own = [me.get(name) for name in ("blocks_", "said_")]
            self.lines.append((frame.f_code.co_filename, number, known + digest(own)))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Note lines meanwhile."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        if not is_authors(frame.f_code.co_filename):
            return None
        last = frame.f_lineno

        def run(frame: FrameType, event: str, given: Any) -> Any:
            nonlocal last
            if event in ("line", "return"):
                self.line(frame, last, given)
                last = frame.f_lineno
            return run

        return run


def digest(value: Any) -> str:
    """A short hash of numbers, texts and arrays, alone or in lists, tuples and mappings; other things are alike."""
    found = blake2s(digest_size=8)
    _add(found, value, 0)
    return found.hexdigest()


def _add(found: Any, value: Any, depth: int) -> None:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        found.update(f"{value.shape}".encode() + value.tobytes())
    elif isinstance(value, bool | int | float | complex | str | bytes | np.generic | None):
        found.update(f"{type(value).__name__} {value!r}".encode(errors="backslashreplace"))
    elif isinstance(value, dict) and depth < MOST_NESTED:
        for key, one in list(value.items()):
            _add(found, key, depth + 1)
            _add(found, one, depth + 1)
    elif isinstance(value, list | tuple) and depth < MOST_NESTED:
        for one in value:
            _add(found, one, depth + 1)
    else:
        found.update(type(value).__name__.encode())


def one_run(protocol: type[Protocol], parameters: ProtocolParameters, *, reading: bool) -> list[RepeatedStep]:
    """The steps of a protocol in a small world, until it fails or the world ends.

    Raises
    ------
    InputError
        If no small world admits the protocol.
    """

    def make(setting: Setting, watch: Watch) -> tuple[World, Engine]:
        return admitted_world(setting, protocol, parameters, watch=watch), EventEngine()

    (_, settings) = next(small_worlds(make, parameters))
    setting = replace(settings[0], limits=replace(settings[0].limits, seconds=SECONDS))
    steps = Steps(setting.task.ids)
    try:
        with contained(), one_thread(), steps.reading() if reading else nullcontext():
            world, engine = make(setting, steps)
            engine.run(world)
    except INTERRUPTED:
        raise
    except BaseException as error:  # that it fails is found where its runs are made
        steps.steps.append(RepeatedStep("", 0.0, FAILED, type(error).__name__, []))
    return steps.steps


_known: WeakKeyDictionary[type[Protocol], Repeated] = WeakKeyDictionary()


def repeated(protocol: type[Protocol], parameters: ProtocolParameters, files: Sequence[str], base: Path) -> Repeated:
    """Make a short run of a protocol in a fresh process and two here, once for each protocol, and compare them.

    Parameters
    ----------
    protocol : type of Protocol
    parameters : ProtocolParameters
    files : sequence of str
        Users' files that the fresh process is to import first, as scenarios name them.
    base : Path
        Folder that these are relative to.
    """
    if protocol not in _known:
        _known[protocol] = _compared(protocol, parameters, files, base)
    return _known[protocol]


def _compared(protocol: type[Protocol], parameters: ProtocolParameters, files: Sequence[str], base: Path) -> Repeated:
    try:
        there = _elsewhere(protocol, parameters, files, base)
        if isinstance(there, Repeated):
            return there
        first = one_run(protocol, parameters, reading=False)
        second = one_run(protocol, parameters, reading=True)
    except INTERRUPTED:
        raise
    except BaseException as error:  # whatever prevents it is no reason to make no runs
        return Repeated("unknown", words_of(error))
    rank = min((_parting(first, others) for others in (there, second)), key=lambda at: (at is None, at))
    if rank is None:
        return Repeated("same")
    steps = [run[rank] for run in (first, there, second) if rank < len(run)]
    if FAILED in {step.phase for step in there[rank : rank + 1]} - {step.phase for step in first[rank : rank + 1]}:
        return Repeated("unknown")  # for want of a terminal, or of a debugger
    at = next((step for step in steps if step.phase != FAILED), None)
    when = f" first at agent {at.agent!r}, time {at.now:.6g}" if at else ""
    where = _line(there, second, rank) or class_place(protocol)
    return Repeated("differs", f"{where}: not deterministic: two runs with the same seed differ{when}")


def _parting(one: list[RepeatedStep], other: list[RepeatedStep]) -> int | None:
    """The first step at which two runs differ; None if there is none."""
    for rank, (a, b) in enumerate(zip(one, other, strict=False)):
        if (a.agent, a.now, a.phase, a.digest) != (b.agent, b.now, b.phase, b.digest):
            return rank
    return None if len(one) == len(other) else min(len(one), len(other))


def _line(one: list[RepeatedStep], other: list[RepeatedStep], rank: int) -> str:
    """The first line of the author's after which two runs of a step differ; empty if none does."""
    if rank < min(len(one), len(other)):
        for a, b in zip(one[rank].lines, other[rank].lines, strict=False):
            if a != b:
                return place(*a[:2])
    return ""


def _elsewhere(
    protocol: type[Protocol], parameters: ProtocolParameters, files: Sequence[str], base: Path
) -> list[RepeatedStep] | Repeated:
    """The run in a fresh process; what came of that where there is none to compare."""
    import cloudpickle

    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "steps.json"
        given = pickle.dumps((sys.path, tuple(files), base, str(kept), cloudpickle.dumps((protocol, parameters))))
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        with tempfile.TemporaryFile() as stream:
            ended = subprocess.run(
                [sys.executable, "-m", __name__],
                input=given,
                stdout=subprocess.DEVNULL,
                stderr=stream,
                env={**os.environ, **threads, "PYTHONHASHSEED": seed, "PYTHONBREAKPOINT": "0"},
                check=False,
            )
            stream.seek(max(stream.seek(0, os.SEEK_END) - MOST_SAID, 0))
            said = stream.read().decode(errors="replace")
        if not kept.exists():
            return Repeated("deadly", last_words(said, ended.returncode))
        found = json.loads(read_bytes(kept))
    if isinstance(found, str):
        return Repeated("unknown", found)
    return [RepeatedStep(*step[:4], lines=[(file, line, after) for file, line, after in step[4]]) for step in found]


DUMPED = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in ', re.MULTILINE)
"""A line of what `faulthandler` writes."""


def last_words(said: str, code: int | None = None) -> str:
    """What a process has written before it ended, in a sentence: the author's line, and why."""
    _, fatal, dump = said.rpartition("Fatal Python error: ")
    current = dump.partition("Current thread")[2] or dump
    lines = [(found["file"], int(found["line"])) for found in DUMPED.finditer(current)]
    where = last_place(reversed(lines)) if fatal else ""
    why = f"Fatal Python error: {dump.splitlines()[0]}" if fatal else ""
    if not why:
        signal = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}" if code is not None else ""
        why = f"its process ended without a word{f' ({signal})' if signal else ''}"
    return f"{where}: {why}" if where else why


def main() -> None:
    """Make the run that standard input asks for, keep its steps, and leave whatever else is going on."""
    faulthandler.enable()
    path, files, base, kept, packed = pickle.loads(sys.stdin.buffer.read())
    sys.path[:] = path
    try:
        for spec in files:
            catalog.resolve(spec, trust_code=True, base=base)
        protocol, parameters = pickle.loads(packed)
        found: Any = [
            [step.agent, step.now, step.phase, step.digest, step.lines]
            for step in one_run(protocol, parameters, reading=True)
        ]
    except BaseException as error:
        found = words_of(error)
    Path(kept).write_text(json.dumps(found))
    os._exit(0)


if __name__ == "__main__":
    main()
