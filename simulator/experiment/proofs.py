"""The privacy contract of users' own protocols: done once for each set of parameters, kept beside the results.

What was found is kept under the id of the run that the own world is taken from, which stands for the plug-in's sources,
all that they import, parameters, data, seed and versions: whoever changes one of them is judged anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from ...agents.errors import HushnetError
from ..contract.verdict import SHIPPED, Verdict, judged
from ..engine.selection import Engine, engine_for
from ..network.setting import Setting
from ..storage.files import put_bound, read_bound
from ..storage.user_code import source_hash
from ..world.watchers import Watch
from ..world.world import World
from .plan import NOT_ASKED, Experiment, PlannedRun, Run
from .workers import Workers


def prove(
    experiment: Experiment,
    queue: Sequence[PlannedRun],
    workers: Workers,
    on_check: Callable[[Run], None] | None = None,
) -> None:
    """Find out about the contract of every protocol that is to be run, and let the experiment know.

    Parameters
    ----------
    experiment : Experiment
    queue : sequence of PlannedRun
        The first run with each protocol and each set of parameters is the own world.
    workers : Workers
        Who executes the runs: what kills a process there shall not kill this one here.
    on_check : callable, optional
        Told of every run whose protocol is about to be checked.
    """
    for planned in queue:
        key = planned.run.contract_key
        if key not in experiment.verdicts:
            experiment.verdicts[key] = _verdict(experiment, planned, workers, on_check)


def judge(experiment: Experiment, run: Run) -> Verdict:
    """Replay the protocol of a run in small worlds and in the run's own."""
    scenario = run.point.scenario
    parameters = scenario.protocols[run.protocol]
    protocol = experiment.loaded.code.protocol(parameters.kind)

    def make(setting: Setting, watch: Watch) -> tuple[World, Engine]:
        world = World(setting, protocol, parameters, watch=watch)
        return world, engine_for(scenario.engine, world, debug=scenario.debug)

    try:
        engine = "event" if scenario.debug else scenario.engine
        return judged(protocol, parameters, experiment.setting(run), make, engine)
    except HushnetError as error:  # the run itself will say so
        return Verdict("unchecked", str(error))


def _verdict(
    experiment: Experiment, planned: PlannedRun, workers: Workers, on_check: Callable[[Run], None] | None
) -> Verdict:
    run = planned.run
    protocol = experiment.loaded.code.protocol(run.point.scenario.protocols[run.protocol].kind)
    if source_hash([protocol]) is None:
        return SHIPPED
    of = experiment.run_id(run)
    file = experiment.folder / ".cache" / f"contract-{of}.json"
    known = _load(file, of)
    if known is not None:
        return known
    if not experiment.contract:
        return NOT_ASKED
    if on_check:
        on_check(run)
    verdict = workers.judge(experiment, planned)
    if verdict.status == "unchecked":
        return verdict
    with contextlib.suppress(OSError):  # a disk that is full is told of where it costs results
        put_bound(verdict.as_dict(), of, file, within=experiment.folder)
    return verdict


def _load(file: Path, of: str) -> Verdict | None:
    try:
        found = read_bound(file, of)
        return None if found is None else Verdict.from_dict(found)
    except (ValueError, KeyError, TypeError):
        return None
