"""Make sure that all runs of an experiment are there: the one entry, whoever executes them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...agents.errors import HushnetError, InputError, RunFailure
from ..analysis.results import Collection, load_all
from ..language.loading import locate
from ..limits.rehearsal import rehearse, shown
from ..storage.store import Store
from ..world.world import World
from .contract_replays import prove
from .execute import FAILURES
from .notebook import shown_progress
from .options import RunOptions
from .plan import SHORT, Experiment, PlannedRun, Run, plan, wake_ups
from .preflight import preflight
from .run_once import FAILED, RunOutcome, failure_file, is_there
from .sources import keep_sources
from .tuning import choose, trial_experiment
from .worker_pool import InProcess, start_workers
from .workers import Workers

FEW = 50
"""Runs that no other process is started for, where all of an experiment's are short."""
INDEXED_EVERY, SHARE = 10.0, 0.02
"""Seconds after which whoever reads results while runs go on finds more of them in order, or more, so that writing
them down takes at most that share of the time."""


def run(source: Path | str | Mapping[str, Any], options: RunOptions | None = None, **changes: Any) -> Collection:
    """Run what is not there yet of a scenario's runs, and return all of them as they are on disk.

    Changes are fields of `RunOptions` that differ from it. Raises as `hushnet.simulator.run`, which wraps what this
    returns.
    """
    options = replace(options or RunOptions(), **changes)
    loaded = options.load(source)
    experiment = options.experiment(loaded)
    with start_workers(options.jobs, options.scheduler) as workers:
        failures = perform(experiment, workers=workers, **shown_progress(experiment, workers))
    if failures:
        raise failures[0]
    return load_all(experiment.folder)


def perform(
    experiment: Experiment,
    *,
    workers: Workers | None = None,
    on_start: Callable[[Run], None] | None = None,
    on_run: Callable[[Run, RunOutcome], None] | None = None,
    on_sample: Callable[[World], None] | None = None,
    on_check: Callable[[Run], None] | None = None,
    on_advice: Callable[[str], None] | None = None,
) -> list[HushnetError]:
    """Run everything that is not there yet, save each run when it ends, and index what belongs to the experiment.

    Where the scenario asks for tuning, that comes first, and the experiment's scenario is then the tuned one. Workers,
    from `start_workers`, can perform several experiments; by default this process does. `on_run` is told what became of
    every run, `on_check` of a run in whose world the privacy contract of its protocol is about to be checked, and
    `on_advice` each sentence of `preflight` about what nothing forbids; only where this process executes runs is
    `on_start` told of each before it begins, and `on_sample` called with the world at every record instant.

    Returns an error for every run that ended in one of `FAILURES` or failed, in the experiment's order. Raises
    `InputError` or `OutOfResources` if runs are not admissible, or do not fit into this machine, before any run starts
    as far as data and graph tell; those that were complete are kept. A `KeyboardInterrupt` says how many runs are known
    to be there.
    """
    if not _index_of(Store(experiment.folder)).items() >= shown(experiment.loaded.scenario).items():
        try:
            rehearse(experiment.loaded)
        except InputError as error:
            raise InputError(locate(error, experiment.loaded)) from error
    store = Store(experiment.folder).claimed()
    experiment.token = store.token
    if trial_experiment(experiment) is not None:
        assert experiment.loaded.scenario.tune is not None
        tuned = frozenset(path.partition(".")[0] for path in experiment.loaded.scenario.tune.over)
        preflight(experiment, plan(experiment, experiment.runs()), but=tuned)
        on = {"on_start": on_start, "on_run": on_run, "on_sample": on_sample}
        experiment.loaded = choose(experiment, partial(perform, workers=workers, **on))
    runs = list(experiment.runs())
    queue = plan(experiment, runs)
    outcomes: dict[int, RunOutcome] = {}
    with store.locked(), ExitStack() as closing_at_end:
        store.sweep()
        store.forget_failures()
        for sentence in preflight(experiment, queue):
            if on_advice:
                on_advice(sentence)
        keep_sources(experiment)
        executors = workers or closing_at_end.enter_context(InProcess())
        try:
            prove(experiment, queue, executors, on_check)
            who = InProcess() if _is_short(experiment, queue) else executors
            work = who.work(experiment, queue, on_start=on_start, on_sample=on_sample)
            due = -math.inf
            with closing(work):
                for rank, outcome in work:
                    outcomes[rank] = outcome
                    if (began := time.monotonic()) > due:
                        _write_index(store, experiment, runs, queue, outcomes)
                        due = time.monotonic() + max(INDEXED_EVERY, (time.monotonic() - began) / SHARE)
                    for repeated, place in enumerate(queue[rank].places):
                        if on_run:
                            on_run(runs[place], replace(outcome, there=outcome.there or repeated > 0))
        except InputError as error:
            raise InputError(locate(error, experiment.loaded)) from error
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(_so_far(queue, outcomes, len(runs))) from stop
        finally:
            _write_index(store, experiment, runs, queue, outcomes)
        store.sweep()
        store.consolidate()
    return [_failure(experiment, queue[rank], a) for rank, a in sorted(outcomes.items()) if a.status != "complete"]


def _is_short(experiment: Experiment, queue: list[PlannedRun]) -> bool:
    """Say if the runs to come take less than starting processes; never with a user's code, which may end its own."""
    if experiment.metrics or any(experiment.source(planned.run) is not None for planned in queue):
        return False
    to_run, expected = 0, 0.0
    for planned in queue:
        if not is_there(experiment, planned.run, experiment.run_id(planned.run)):
            to_run, expected = to_run + 1, expected + wake_ups(planned.run.point.scenario)
            if to_run == FEW or expected > SHORT:
                return False
    return True


def _so_far(queue: list[PlannedRun], outcomes: Mapping[int, RunOutcome], runs: int) -> str:
    there = sum(len(queue[rank].places) for rank, outcome in outcomes.items() if outcome.status != FAILED)
    return f"interrupted; run the same command again to go on: at least {there} of {runs} runs are there"


def _failure(experiment: Experiment, planned: PlannedRun, outcome: RunOutcome) -> HushnetError:
    sentence = f"{experiment.loaded.scenario.scenario}: {planned.run.place}: {outcome.error}"
    if outcome.status == FAILED:
        return RunFailure(f"{sentence}; see {failure_file(experiment, planned)}")
    return FAILURES[outcome.status](sentence)


def _index_of(store: Store) -> dict[str, Any]:
    with suppress(InputError):
        return store.index()
    return {}


def _write_index(
    store: Store,
    experiment: Experiment,
    runs: list[Run],
    queue: list[PlannedRun],
    outcomes: Mapping[int, RunOutcome],
) -> None:
    """Index the runs that are there, in the experiment's order, whatever the order in which they ended."""
    if not outcomes:
        return
    scenario = experiment.loaded.scenario
    ended = sorted((place, rank) for rank in outcomes for place in queue[rank].places)
    there = [(place, str(outcomes[rank].run_id)) for place, rank in ended if outcomes[rank].status != FAILED]
    failed = [(place, rank) for place, rank in ended if outcomes[rank].status == FAILED]
    store.write_index(
        scenario=scenario.scenario,
        runs=[run_id for _, run_id in there],
        grids=[runs[place].point.values for place, _ in there],
        planned=len(runs),
        **shown(scenario),
        tuning=experiment.loaded.tuning,
        failed=[
            {
                "protocol": runs[place].protocol,
                "seed": runs[place].seed,
                "grid": runs[place].point.values,
                "error": outcomes[rank].error,
                "details": failure_file(experiment, queue[rank]).relative_to(store.root).as_posix(),
            }
            for place, rank in failed
        ],
    )
