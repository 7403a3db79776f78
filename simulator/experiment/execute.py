"""One run, from its world to its result: tables, and a manifest that says what was run and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...agents.errors import Divergence, HushnetError, LimitReached, Stall, StepFailure
from ..analysis.results import RunResult
from ..contract.verdict import Verdict
from ..engine.selection import Engine, run_exactly, run_together
from ..language.fitting import naming_fields
from ..network.graphs import describe
from ..observers import needs_log
from ..recording.message_log import MessageLog
from ..recording.privacy_statement import privacy_statement
from ..recording.recorder import Recorder
from ..storage.provenance import code_version, commit, libraries
from ..world.step_form import Rewind, asked_form
from ..world.watchdog import one_thread
from ..world.world import World
from .plan import Experiment, Run
from .run_warnings import RunWarnings

FAILURES: dict[str, type[HushnetError]] = {
    "diverged": Divergence,
    "stalled": Stall,
    "broken": StepFailure,
    "limited": LimitReached,
}
"""Errors that end a run and keep what was recorded, by the status that they give it."""
TOGETHER = 50
"""Record instants at most whose models are measured at once."""


def execute(experiment: Experiment, run: Run, on_sample: Callable[[World], None] | None = None) -> RunResult:
    """Run, whatever comes of it: a run that ends in one of `FAILURES` keeps what was recorded.

    `on_sample` is called with the world at every record instant. Raises `HushnetError` if the run is not admissible or
    does not fit into this machine.
    """
    began, worked = time.perf_counter(), time.process_time()
    with naming_fields(run.protocol), one_thread(), np.errstate(all="ignore"):
        attempt, failure = _Attempt(experiment, run, on_sample), None
        try:
            run_exactly(attempt.make, attempt.engine, attempt.failed)
        except tuple(FAILURES.values()) as error:
            failure = error
        result = attempt.result(failure)
    return _timed(result, began, worked)


def execute_together(
    experiment: Experiment, runs: Sequence[Run], on_sample: Callable[[World], None] | None = None
) -> list[RunResult]:
    """Run several of one protocol side by side; each result is that of `execute`, with its part of the time of all.

    Raises `Apart` if they have to be run one by one.
    """
    began, worked = time.perf_counter(), time.process_time()
    with naming_fields(runs[0].protocol), one_thread(), np.errstate(all="ignore"):
        attempts = [_Attempt(experiment, run, on_sample) for run in runs]
        worlds = [attempt.make(None) for attempt in attempts]
        engines = [attempt.engine(world) for attempt, world in zip(attempts, worlds, strict=True)]
        run_together([engine.prepare(world) for engine, world in zip(engines, worlds, strict=True)])
        results = [attempt.result(None) for attempt in attempts]
    return [_timed(result, began, worked, part) for result, part in zip(results, parts(results), strict=True)]


def parts(results: Sequence[RunResult]) -> list[float]:
    """The part of each run's activations in those of all: of the time, where they were made side by side."""
    made = [1 + result.manifest["totals"]["activations"] for result in results]
    return [each / sum(made) for each in made]


def _timed(result: RunResult, began: float, worked: float, part: float = 1.0) -> RunResult:
    """Say how long a run took that ends now, if such a part of the time was its own."""
    seconds, totals = (time.perf_counter() - began) * part, result.manifest["totals"]
    result.manifest["timings"] = {
        "seconds": seconds,
        "cpu_seconds": (time.process_time() - worked) * part,
        "activations_per_second": totals["activations"] / max(seconds, 1e-9),
    }
    return result


def message_log(experiment: Experiment, run: Run) -> MessageLog | None:
    """Log of a run's single messages; None if the scenario asks for none, nor for observers that need it."""
    scenario, (task, graph) = run.point.scenario, experiment.data(run)
    window, whole = scenario.record.messages, needs_log(scenario.observers)
    return MessageLog(window, task.ids, graph, whole=whole) if whole or window is not None else None


class _Attempt:
    """A run with all that looks at it, made anew for every attempt."""

    world: World
    recorder: Recorder
    log: MessageLog | None
    warnings: RunWarnings

    def __init__(self, experiment: Experiment, run: Run, on_sample: Callable[[World], None] | None) -> None:
        self._experiment, self._run, self._on_sample = experiment, run, on_sample

    def make(self, again: Rewind | None) -> World:
        """The world of an attempt."""
        self.warnings = RunWarnings(self._on_sample)
        self.recorder = self._experiment.recorder(self._run, self.warnings)
        self.recorder.together = TOGETHER if again is None else 1
        self.log = message_log(self._experiment, self._run)
        self.world = self._experiment.world(self._run, self.recorder, self.log, again)
        if self.log is not None:
            self.log.begin(self.world)
        return self.world

    def failed(self, world: World) -> None:
        """Record what is still to be recorded of an attempt that has ended with an error."""
        self.recorder.catch_up(world)

    def engine(self, world: World) -> Engine:
        """The engine that the scenario asks for."""
        return self._experiment.engine_for(self._run, world)

    def result(self, failure: HushnetError | None) -> RunResult:
        """Build the result of an attempt that has ended, without its timings."""
        world, recorder, experiment, run = self.world, self.recorder, self._experiment, self._run
        ledger = world.ledger.to_frame()
        ledger["agent"] = [str(world.setting.task.ids[int(agent)]) for agent in ledger["agent"]]
        trace, agents = recorder.trace(), recorder.agents(world)
        manifest = _manifest(run, world, failure, experiment.verdict(run))
        manifest["warnings"] += recorder.warnings
        manifest["warnings"] += [f"{manifest['label']}: {warning}" for warning in self.warnings.of(world)]
        manifest["files"] = experiment.named_files(run)
        if own := recorder.shown_as():
            manifest["own_metrics"] = own
        manifest["measures"] = recorder.measures(world)
        manifest["baselines"] = recorder.baselines(world)
        checked = recorder.invariants
        manifest["invariants"] = [] if checked is None else checked.report()
        manifest["no_invariant"] = None if checked is None else checked.why_none
        extras = {} if self.log is None else self.log.tables(world)
        if world.learned is not None:
            tables, statements, warnings = world.learned.outcome(world, recorder.delta_of(world))
            extras |= tables
            manifest["warnings"] += warnings
            if manifest["privacy"] is not None:
                manifest["privacy"]["observers"] = statements
        return RunResult(manifest, trace, agents, ledger, extras=extras)


def _manifest(run: Run, world: World, failure: Exception | None, verdict: Verdict) -> dict[str, Any]:
    scenario, task = run.point.scenario, world.setting.task
    status = next((name for name, kind in FAILURES.items() if isinstance(failure, kind)), "complete")
    privacy, warnings = privacy_statement(world, verdict.verified_by)
    label = scenario.label(run.protocol)
    if verdict.unproved:
        warnings.append(f"{label}: no epsilon is verified, because {verdict.unproved}")
    warnings += [f"{label}: {warning}" for warning in verdict.warnings]
    warnings += [f"task: {doubt}" for doubt in task.notes.get("warnings", ())]
    return {
        "scenario": scenario.resolved(),
        "protocol": run.protocol,
        "label": label,
        "seed": run.seed,
        "data_seed": run.data_seed,
        "run_seed": run.run_seed,
        "grid": run.point.values,
        "status": status,
        "error": str(failure or ""),
        "ended": status if failure else world.ended,
        "limit": None if not isinstance(failure, LimitReached) else _reached(failure, world),
        "engine": world.engine,
        "form": None if world.form is None else world.form.as_dict(asked_form(scenario.engine, debug=scenario.debug)),
        "central": world.traits.central,
        "epoch": world.protocol.epoch,
        "noise": "seeded simulation noise, not a sampler for deployment",
        "task": {"name": task.name, "metric": task.metric, "dimension": task.dimension, "notes": task.notes},
        "topology": describe(world.setting.graph, world.step_tables.opening),
        "privacy": privacy and {**privacy, **verdict.evidence, "contract": verdict.text},
        "contract": verdict.as_dict(),
        "warnings": [*warnings, *world.warnings],
        "totals": _totals(world),
        "versions": libraries(scenario.task.model),
        "code": code_version(),
        "commit": commit(),
        "data": task.fingerprint,
    }


def _reached(failure: LimitReached, world: World) -> dict[str, Any]:
    """Entry of the manifest on a limit that was reached: its name and bound, and the time and events of the run."""
    return {"reached": failure.limit, "most": failure.most, "time": world.now, "events": world.events}


def _totals(world: World) -> dict[str, Any]:
    traffic = world.traffic
    return {
        "time": world.now,
        "activations": world.activations,
        "events": world.events,
        "messages": traffic.messages,
        "vectors": traffic.vectors,
        "start_vectors": traffic.start_vectors,
        "bytes": traffic.bytes.sent,
        "delivered": traffic.links.delivered,
        "lost": traffic.links.lost,
        "dropped": traffic.links.dropped,
        "in_flight": traffic.links.in_flight,
        "overtaken": traffic.overtaken,
        **world.counted,
    }
