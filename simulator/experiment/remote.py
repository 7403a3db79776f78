"""Work of another process, here or on another machine: runs, and the check of a privacy contract."""

from __future__ import annotations

import faulthandler
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from socket import gethostname
from typing import Any

import cloudpickle

from ...agents.authors import complain_plainly, contained
from ...agents.errors import InputError, Interruption
from ...protocols import catalog
from ...protocols.user_files import is_file
from ..contract.verdict import Verdict
from ..language.checking import Code, nets_of
from ..storage.provenance import code_version, libraries
from ..world.world import World
from .contract_replays import judge
from .plan import Experiment, PlannedRun
from .run_once import RunOutcome
from .stacks import run_stack

CHECK_INTERVAL = 1.0
"""Seconds between two looks at whether anybody still waits for the result."""

_one_at_a_time = threading.Lock()
"""Threads of one worker would share its limits on BLAS threads and its data."""


class Abandoned(Interruption):
    """Nobody waits for this run any more; no failure of its own, so that nothing catches it by the way."""


@dataclass(frozen=True)
class WorkerContext:
    """An experiment as it is sent to workers."""

    experiment: bytes
    """Pickled; users' own classes travel with it where a worker could not import them."""
    files: tuple[str, ...]
    """Users' files with protocols that are to be imported before, as scenarios name them."""
    nets: tuple[str, ...]
    """Nets of users' files, likewise."""
    base: Path
    """Folder that these are relative to."""
    folder: Path
    """There as long as somebody waits; whoever is at a run has a file there, which stays if it dies."""
    versions: tuple[tuple[str, str], ...]
    """Of hushnet and libraries, which a worker has to have: they decide the runs' ids and numbers."""


def context_of(experiment: Experiment, queue: Sequence[PlannedRun], folder: Path) -> WorkerContext:
    """Pack an experiment for workers."""
    elsewhere = experiment.elsewhere()
    kinds = {p.kind for one in queue for p in one.run.point.scenario.protocols.values()}
    files = tuple(sorted(filter(is_file, kinds)))
    nets = tuple(sorted({net for one in queue for net in nets_of(one.run.point.scenario)}))
    return WorkerContext(pack(elsewhere), files, nets, elsewhere.loaded.base, folder, _versions())


def pack(content: object) -> bytes:
    """Pickle, with the classes and functions that another process cannot import."""
    return cloudpickle.dumps(content)


def work(context: WorkerContext, packed: bytes) -> list[RunOutcome]:
    """Execute a stack of runs, packed; there are no outcomes if nobody waits for them any more.

    Raises a `HushnetError` that says why no further run makes sense.
    """
    complain_plainly()
    with _one_at_a_time, contained():
        experiment, stack, looked = _opened(context), _loaded(packed), [time.perf_counter()]

        def check_waiting(_: World) -> None:
            if time.perf_counter() - looked[0] > CHECK_INTERVAL:
                looked[0] = time.perf_counter()
                if not context.folder.is_dir():
                    raise Abandoned

        try:
            with _at(context.folder / stack[0].name):
                return run_stack(experiment, stack, check_waiting)
        except Abandoned:
            return []


def judge_there(context: WorkerContext, packed: bytes) -> Verdict:
    """Verdict on the privacy contract of a packed run's protocol; raises as `work`."""
    complain_plainly()
    with _one_at_a_time, contained():
        return judge(_opened(context), _loaded(packed).run)


@contextmanager
def _at(words: Path) -> Iterator[None]:
    """Be at a run: a process that is killed inside leaves a file, with where it was if it could say so."""
    enabled = faulthandler.is_enabled()
    with words.open("wb") as stream:
        faulthandler.enable(stream)
        try:
            yield
        finally:
            faulthandler.disable()
            if enabled:
                faulthandler.enable()
            words.unlink(missing_ok=True)


def _versions() -> tuple[tuple[str, str], ...]:
    return ("hushnet", code_version()), *libraries().items()


@lru_cache(maxsize=1)
def _opened(context: WorkerContext) -> Experiment:
    """The experiment, with the data that it holds; refused where its runs would not be recognised, or not found."""
    own = dict(_versions())
    different = [f"{name} {own[name]} for {version}" for name, version in context.versions if own[name] != version]
    if different:
        raise InputError(f"the worker on {gethostname()} has {', '.join(different)}; install the same versions there")
    if not context.folder.is_dir():
        raise InputError(
            f"{context.folder.parent} is not the same folder on {gethostname()}, where a worker runs; choose one that "
            "all machines share with --out"
        )
    for spec in context.files:
        catalog.resolve(spec, trust_code=True, base=context.base)
    for net in context.nets:
        Code(context.base, trust_code=True).net(net)
    return _loaded(context.experiment)


def _loaded(packed: bytes) -> Any:
    try:
        return pickle.loads(packed)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"a worker on {gethostname()} cannot import what the experiment is made of ({error}); put your classes and "
            "functions into a file that the scenario names, or into an installed package"
        ) from error
