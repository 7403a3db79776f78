"""A run made again from its manifest: the same bytes, and what happened in between.

The rerun is told from what was recorded by one thing, a notebook of single events, which changes nothing. So its trace
has to be the file that the manifest names, byte by byte; or every row of that file, where another version of hushnet or
of its libraries wrote the same rows as other bytes. Where it is neither, nothing is shown.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.errors import AuditFailure, InputError
from ...agents.graph import Graph
from ...agents.tasks.task import Task
from ..contract.verdict import Verdict
from ..engine.selection import run_exactly
from ..experiment import FAILURES, Experiment, Run
from ..experiment.sources import FOLDER, brought, kept_files
from ..language.fitting import naming_fields
from ..language.loading import LoadedScenario, load, of_one_point
from ..language.message_window import MessageWindow
from ..observers import needs_log
from ..recording.message_log import MessageLog
from ..recording.recorder import Recorder
from ..storage.dataset import Entry
from ..storage.files import Frame, checksum, json_text, parquet, read_arrow, write_text
from ..storage.provenance import code_version
from ..storage.run_folder import TRACE_SCHEMA
from ..world.step_form import Rewind
from ..world.watchdog import one_thread
from ..world.world import World
from .difference import first_difference

MOST_LOOKS = 240
"""Instants at which models are looked at."""


@dataclass
class Rerun:
    """A run as it went."""

    entry: Entry
    """The run as it was saved."""
    task: Task
    graph: Graph
    events: Frame
    """Messages, steps and absences of the window; see `hushnet.simulator.recording.message_log.MessageLog.table`."""
    trace: Frame
    """What was recorded, equal to what was saved."""
    private: bool
    """Whether noise protects what it sends; its models are then not looked at."""
    window: tuple[float, float]
    """First and last instant of the events."""
    shown: NDArray[np.bool_] | None = None
    """(n,) bool, optional: Agents that the events are among; None for all."""
    looks: list[tuple[float, NDArray[np.float64]]] = field(default_factory=list)
    """list of (float, (n, p) array): Models at record instants; empty of private runs."""


def rerun(
    results: Path,
    entry: Entry,
    window: tuple[float, float],
    *,
    agents: int | None = None,
    data_dir: Path | None = None,
    trust_code: bool = False,
) -> Rerun:
    """Make a run of ``results/<scenario>`` again, where nothing is written, and see to it that it is the same.

    Events within a window of time are kept, and perhaps only those among so many agents: the first and those nearest to
    it. Raises `AuditFailure` if the trace is neither what the manifest's checksum stands for nor equal to it row by
    row, and `InputError` if the run cannot be made here: data or code are missing, or code that is not trusted.
    """
    manifest = entry.manifest
    with _loaded(results, manifest, trust_code) as loaded:
        experiment = Experiment(loaded, Path(tempfile.gettempdir()) / "hushnet-replay", data_dir)
        run = _planned(experiment, manifest)
        if manifest.get("contract"):
            experiment.verdicts[run.contract_key] = Verdict.from_dict(manifest["contract"])
        with naming_fields(run.protocol), one_thread(), np.errstate(all="ignore"):
            return _made(experiment, run, entry, window, agents)


def _made(experiment: Experiment, run: Run, entry: Entry, window: tuple[float, float], agents: int | None) -> Rerun:
    task, graph = experiment.data(run)
    looks: list[tuple[float, NDArray[np.float64]]] = []
    private = bool(entry.manifest.get("privacy"))

    def look(world: World) -> None:
        nonlocal private
        private = private or bool(world.private)
        models = None if private else world.protocol.models(world.state)
        if models is not None:
            looks.append((world.now, np.array(models, dtype=np.float64)))

    wanted = MessageWindow(agents=max(min(agents or task.agents, task.agents), 2), between=list(window))
    whole = needs_log(run.point.scenario.observers)
    made: list[tuple[World, Recorder, MessageLog]] = []

    def make(again: Rewind | None) -> World:
        looks.clear()
        recorder, log = experiment.recorder(run, look), MessageLog(wanted, task.ids, graph, whole=whole)
        made.append((experiment.world(run, recorder, log, again), recorder, log))
        return made[-1][0]

    try:
        run_exactly(make, lambda world: experiment.engine_for(run, world))
    except tuple(FAILURES.values()):
        pass  # it ended so when it was recorded, too, or its trace differs
    world, recorder, log = made[-1]
    trace = recorder.trace()
    _compare(trace, entry)
    kept = [] if private else looks[:: max(1, -(-len(looks) // MOST_LOOKS))]
    return Rerun(
        entry, task, graph, log.table(world), trace, private, window, None if log.shown.all() else log.shown, kept
    )


def _compare(trace: Frame, entry: Entry) -> None:
    expected = entry.checksums.get("trace.parquet")
    if checksum(parquet(trace, TRACE_SCHEMA)) == expected:
        return
    try:
        saved = read_arrow(entry.folder / "trace.parquet", expected).to_pandas()
    except InputError as error:
        differs = f"the saved one cannot be read ({error})"
    else:
        differs = first_difference(saved, trace)
        if not differs:
            return  # the same rows, which another version wrote as other bytes
        differs = f"the first difference: {differs}"
    made_by, here = entry.manifest.get("code"), code_version()
    why = (
        f"it was made by {made_by}, and this is {here}; take that version"
        if made_by != here
        else "its files are not what this scenario, seed and code give"
    )
    raise AuditFailure(
        f"{entry.folder}: made again, the run has another trace than trace.parquet, so nothing is shown: {why}; "
        f"{differs}"
    )


def _planned(experiment: Experiment, manifest: dict[str, Any]) -> Run:
    wanted = tuple(manifest[name] for name in ("protocol", "data_seed", "run_seed"))
    for run in experiment.runs():
        if (run.protocol, run.data_seed, run.run_seed) == wanted:
            return run
    raise AuditFailure(
        f"protocol {wanted[0]}, seeds {wanted[1]} and {wanted[2]}: the manifest's scenario has no such run"
    )


@contextmanager
def _loaded(results: Path, manifest: dict[str, Any], trust_code: bool) -> Iterator[LoadedScenario]:
    """The scenario of one grid point as the manifest has it, beside the code and files that it was made from."""
    with tempfile.TemporaryDirectory() as folder:
        origin, copy = results / FOLDER, Path(folder) / "origin"
        copy.mkdir()
        for name, content in kept_files(origin).items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(content)
        file = copy / "of-the-manifest.yaml"
        write_text(json_text(brought(origin, of_one_point(manifest["scenario"]))), file)
        try:
            yield load(file, trust_code=trust_code)
        except InputError as error:
            said = re.sub(rf"{re.escape(str(file))}(:\d+)?", f"{results}: scenario of the run", str(error))
            raise InputError(said.replace(str(copy), str(origin))) from error
