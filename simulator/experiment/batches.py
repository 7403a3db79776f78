"""What a worker process does: a batch of runs, as far as it comes in the time that it is given."""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from socket import gethostname
from typing import Any

import cloudpickle

from ...agents.authors import complain_plainly, contained
from ...agents.errors import HushnetError, InputError
from ...agents.files import read_bytes
from ...protocols import catalog
from ...protocols.user_files import is_file
from ..contract.repeats import last_words
from ..contract.verdict import Verdict
from ..storage.provenance import code_version, libraries
from .heartbeat import Abandoned, Heartbeat
from .plan import Experiment, PlannedRun
from .proofs import judge
from .run_once import FAILED, RunOutcome, keep_failure, run_once
from .stacks import MOST_RUNS, run_stack, stack_of

SECONDS = 2.0
"""How long a worker goes on with a batch: far longer than it takes to send one, far shorter than an experiment."""
MOST_DEATHS = 3
"""A run during which this many workers died is not tried again."""

_one_at_a_time = threading.Lock()
"""Threads of one worker would share its limits on BLAS threads and its data."""


@dataclass(frozen=True)
class WorkerContext:
    """What every worker needs to know of an experiment.

    Parameters
    ----------
    experiment : bytes
        Pickled; users' own classes travel with it where a worker could not import them.
    files : tuple of str
        Users' files that are to be imported before, as scenarios name them.
    base : Path
        Folder that these are relative to.
    heartbeat : Path
    code : str
    libraries : tuple of (str, str)
        Versions that a worker has to have: they decide the runs' ids and numbers.
    """

    experiment: bytes
    files: tuple[str, ...]
    base: Path
    heartbeat: Path
    code: str
    libraries: tuple[tuple[str, str], ...]


def post(experiment: Experiment, queue: Sequence[PlannedRun], heartbeat: Path) -> WorkerContext:
    """Pack an experiment for workers."""
    elsewhere = experiment.elsewhere()
    kinds = {p.kind for one in queue for p in one.run.point.scenario.protocols.values()}
    return WorkerContext(
        pack(elsewhere),
        tuple(sorted(filter(is_file, kinds))),
        elsewhere.loaded.base,
        heartbeat,
        code_version(),
        tuple(libraries().items()),
    )


def pack(content: object) -> bytes:
    """Pickle, with the classes and functions that another process cannot import."""
    return cloudpickle.dumps(content)


def work(post: WorkerContext, packed: bytes, seconds: float) -> tuple[list[RunOutcome], HushnetError | None]:
    """Execute runs in order until time is up, but one at least.

    Parameters
    ----------
    post : WorkerContext
    packed : bytes
        Some of the queue, packed.
    seconds : float
        After these no further run is begun.

    Returns
    -------
    outcomes : list of RunOutcome
        For the first of the runs.
    error : HushnetError or None
        Why no further run makes sense.
    """
    outcomes: list[RunOutcome] = []
    complain_plainly()
    with _one_at_a_time, contained():
        began = time.perf_counter()
        try:
            _check(post)
            experiment = _unpacked(post)
            heartbeat = Heartbeat(post.heartbeat)
            some = _loaded(packed)
            while len(outcomes) < len(some):
                outcomes += _tried(experiment, some[len(outcomes) :], heartbeat)
                if time.perf_counter() - began > seconds:
                    break
        except HushnetError as error:
            return outcomes, error
        except Abandoned:
            return outcomes, None
    return outcomes, None


def judge_there(post: WorkerContext, packed: bytes) -> tuple[Verdict | None, HushnetError | None]:
    """What the privacy contract of a run's protocol comes to, or why nobody can say here.

    Parameters
    ----------
    post : WorkerContext
    packed : bytes
        The run, packed.
    """
    complain_plainly()
    with _one_at_a_time, contained():
        try:
            _check(post)
            return judge(_unpacked(post), _loaded(packed).run), None
        except HushnetError as error:
            return None, error


def _tried(experiment: Experiment, some: Sequence[PlannedRun], heartbeat: Heartbeat) -> list[RunOutcome]:
    """What becomes of the first of some runs, and of those that are made side by side with it."""
    stack = some[: stack_of(experiment, some[:MOST_RUNS])]
    if len(stack) > 1 and not any(heartbeat.deaths(planned.name) for planned in stack):
        with ExitStack() as marks:
            for planned in stack:
                marks.enter_context(heartbeat.at(planned.name))
            made = run_stack(experiment, stack, heartbeat.check_alive)
        if made is not None:
            return made
    return [_tried_alone(experiment, some[0], heartbeat)]


def _tried_alone(experiment: Experiment, planned: PlannedRun, heartbeat: Heartbeat) -> RunOutcome:
    deaths = heartbeat.deaths(planned.name)
    kind = planned.run.point.scenario.protocols[planned.run.protocol].kind
    if deaths >= (1 if kind in experiment.deadly else MOST_DEATHS):
        return quarantined(experiment, planned, deaths, heartbeat)
    with heartbeat.at(planned.name):
        return run_once(experiment, planned, heartbeat.check_alive)


def quarantined(experiment: Experiment, planned: PlannedRun, deaths: int, heartbeat: Heartbeat) -> RunOutcome:
    """The answer about a run that is not tried again because workers die of it."""
    path = heartbeat.words(planned.name)
    said = read_bytes(path).decode(errors="replace") if path.exists() else ""
    times = f"killed its worker {deaths} time{'' if deaths == 1 else 's'}"
    why = last_words(said) if said else "a crash in compiled code, or too little memory"
    error = f"{times} ({why})"
    keep_failure(experiment, planned, f"{error}\n\n{said}")
    return RunOutcome(None, FAILED, error=error)


def _check(post: WorkerContext) -> None:
    """Refuse to make runs that the other side would not recognise, or not find."""
    own = {"hushnet": code_version(), **libraries()}
    wanted = {"hushnet": post.code, **dict(post.libraries)}
    different = [f"{name} {own[name]} for {version}" for name, version in wanted.items() if own[name] != version]
    if different:
        raise InputError(f"the worker on {gethostname()} has {', '.join(different)}; install the same versions there")
    if not post.heartbeat.is_dir():
        raise InputError(
            f"{post.heartbeat.parent} is not the same folder on {gethostname()}, where a worker runs; choose one that "
            "all machines share with --out"
        )


@cache
def _imported(files: tuple[str, ...], base: Path) -> None:
    for spec in files:
        catalog.resolve(spec, trust_code=True, base=base)


_latest: deque[tuple[WorkerContext, Experiment]] = deque(maxlen=1)
"""The experiment of the batch before, with the data that it holds."""


def _unpacked(post: WorkerContext) -> Experiment:
    if not _latest or _latest[0][0] != post:
        _imported(post.files, post.base)
        _latest.append((post, _loaded(post.experiment)))
    return _latest[0][1]


def _loaded(packed: bytes) -> Any:
    try:
        return pickle.loads(packed)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"a worker on {gethostname()} cannot import what the experiment is made of ({error}); put your classes and "
            "functions into a file that the scenario names, or into an installed package"
        ) from error
