"""Check that a protocol does the same in every process: short runs in a small world, compared step by step.

The second run is made in a fresh process, where Python hashes texts otherwise and memory lies elsewhere, and once more
here, where what the first has left behind may show. What differs only on other data, after the small world's end, in
batches of steps, or with little probability is not found: two texts in a set come in the same order half of the time.

A protocol that ends the fresh process has ended no other; the caller decides in which process its runs are made.
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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2s
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

from typing_extensions import override

from ...agents.authors import class_place, contained, last_place, place_of
from ...agents.errors import INTERRUPTED, Undeclared, words_of
from ...agents.input_files import read_bytes
from ...protocols import catalog
from ...protocols.base import Peer, Protocol, ProtocolParameters
from ...protocols.steps.single_steps import function_in
from ..engine.selection import Engine, EventEngine
from ..network.setting import Setting
from ..world.watchdog import one_thread
from ..world.watchers import Phase, Watch
from ..world.world import World
from .bench import admitted_world
from .small_worlds import small_worlds
from .transcript import Recording

SECONDS = 10.0
"""Processor time of a run at most."""
MOST_SAID = 2**16
"""Bytes of what a process has written last that are looked at."""
FAILED = "failure"
"""Phase of what stands after the last step of a run that has raised an error."""

RepeatedStep = tuple[Any, float, str, str]
"""Agent, time and phase of a step, and a digest of all that it has left behind."""


@dataclass(frozen=True)
class Repeated:
    """Result of comparing a protocol's runs in two processes."""

    status: Literal["same", "differs", "undeclared", "deadly", "unknown"]
    said: str = ""
    """One sentence: the first difference, what a step does that is not declared, or the last output of a process that
    has ended."""


class Digests(Recording):
    """A watch that notes every step as a digest of the agent's blocks and of what it sends."""

    def __init__(self, names: Sequence[int | str]) -> None:
        super().__init__(names)
        self.digests: list[RepeatedStep] = []

    @override
    def stepped(self, phase: Phase, me: Peer) -> None:
        found = blake2s(repr(me.silent_).encode(), digest_size=8)
        said = [(f"{sent.kind} {sent.to}", sent.vector) for sent in me.sent_]
        for name, vector in [*me.named_vectors_(), *said]:
            found.update(f"{name} {vector.shape}".encode() + vector.tobytes())
        self.digests.append((self.agent(me.agent), me.now, phase, found.hexdigest()))


def one_run(protocol: type[Protocol], parameters: ProtocolParameters) -> list[RepeatedStep]:
    """The steps of a protocol in a small world, until it fails or the world ends.

    Raises `InputError` if no small world admits the protocol, and `Undeclared` if a step does something else than is
    declared.
    """

    def make(setting: Setting, watch: Watch) -> tuple[World, Engine]:
        return admitted_world(setting, protocol, parameters, watch=watch), EventEngine()

    (_, settings) = next(small_worlds(make, parameters))
    setting = replace(settings[0], limits=replace(settings[0].limits, seconds=SECONDS))
    watch = Digests(setting.task.ids)
    try:
        with contained(), one_thread():
            world, engine = make(setting, watch)
            engine.run(world)
    except (Undeclared, *INTERRUPTED):
        raise
    except BaseException as error:  # that it fails is found where its runs are made
        watch.digests.append(("", 0.0, FAILED, type(error).__name__))
    return watch.digests


_known: WeakKeyDictionary[type[Protocol], Repeated] = WeakKeyDictionary()


def repeated(protocol: type[Protocol], parameters: ProtocolParameters, files: Sequence[str], base: Path) -> Repeated:
    """Make a short run of a protocol in a fresh process and two here, once for each protocol, and compare them.

    The fresh process first imports users' `files`, relative to `base`, as scenarios name them.
    """
    if protocol not in _known:
        _known[protocol] = _compared(protocol, parameters, files, base)
    return _known[protocol]


def _compared(protocol: type[Protocol], parameters: ProtocolParameters, files: Sequence[str], base: Path) -> Repeated:
    try:
        there = _elsewhere(protocol, parameters, files, base)
        if isinstance(there, Repeated):
            return there
        first, second = (one_run(protocol, parameters) for _ in range(2))
    except INTERRUPTED:
        raise
    except BaseException as error:  # whatever prevents it is no reason to make no runs
        return Repeated("unknown", words_of(error))
    runs = list(zip_longest(first, there, second))
    rank = next((rank for rank, steps in enumerate(runs) if len(set(steps)) > 1), None)
    if rank is None:
        return Repeated("same")
    here, elsewhere, _ = runs[rank]
    if elsewhere is not None and elsewhere[2] == FAILED and (here is None or here[2] != FAILED):
        return Repeated("unknown")  # for want of a terminal, or of a debugger
    where, when = class_place(protocol), ""
    for agent, now, phase, _ in [step for step in runs[rank] if step is not None and step[2] != FAILED][:1]:
        function = function_in(protocol, phase)
        where = where if function is None else place_of(function)
        when = f" first at {agent}, time {now:.6g}"
    return Repeated("differs", f"{where}: not deterministic: two runs with the same seed differ{when}")


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
        status, found = json.loads(read_bytes(kept))
    return Repeated(status, found) if isinstance(found, str) else [(*step,) for step in found]


DUMPED = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in ', re.MULTILINE)
"""A line of what `faulthandler` writes."""


def last_words(said: str, code: int | None = None) -> str:
    """Return one sentence from the output of a process that has ended: the author's line, and why it ended."""
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
        found: Any = "same", one_run(protocol, parameters)
    except Undeclared as error:
        found = "undeclared", words_of(error)
    except BaseException as error:
        found = "unknown", words_of(error)
    Path(kept).write_text(json.dumps(found))
    os._exit(0)


if __name__ == "__main__":
    main()
