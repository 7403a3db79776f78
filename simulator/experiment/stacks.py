"""Runs of one protocol that are made side by side: which of a queue, and what comes of them.

Whatever comes in the way of a stack, its runs are made one by one, and are the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ...agents.authors import contained
from ...agents.compilation import seconds_spent
from ...agents.errors import INTERRUPTED
from ...protocols.user_files import is_file
from ..world.world import World
from .execute import execute_together, parts
from .plan import Experiment, PlannedRun
from .run_once import RunOutcome, is_there, keep, run_once

MOST_AGENTS = 2500
"""Agents of all runs of a stack at most: wider batches gain little, and what they read does not stay near."""
MOST_WAKE_UPS = 2e6
"""Expected wake-ups of a stack at most: a process that is killed loses no more than they take, a minute or so."""
MOST_RUNS = 100
MOST_BYTES = 2**27
"""Bytes of a stack's data at most, of which it has a copy of its own."""


def in_stacks(experiment: Experiment, queue: Sequence[PlannedRun]) -> list[list[int]]:
    """The ranks of a queue, those of runs that are made side by side together, as many as there is room for."""
    stacks: list[list[int]] = []
    latest: dict[str, tuple[list[int], float]] = {}
    shares: dict[tuple[str, str], float] = {}
    for rank, planned in enumerate(queue):
        kind = _alike(experiment, planned)
        if kind is None:
            stacks.append([rank])
            continue
        place = kind, planned.run.data_key[0]
        if place not in shares:
            shares[place] = _share(experiment, planned)
        stack, taken = latest.get(kind, ([], 1.0))
        if taken + shares[place] > 1 + 1e-9:
            stack, taken = [], 0.0
            stacks.append(stack)
        stack.append(rank)
        latest[kind] = stack, taken + shares[place]
    return stacks


def _share(experiment: Experiment, planned: PlannedRun) -> float:
    """The part of the room of a stack that a run takes."""
    stop, (task, _) = planned.run.point.scenario.stop.time, experiment.data(planned.run)
    size = task.train.features.nbytes + task.test.features.nbytes
    wake_ups = task.agents * (stop or 1.0)
    return max(1 / MOST_RUNS, task.agents / MOST_AGENTS, wake_ups / MOST_WAKE_UPS, size / MOST_BYTES)


def run_stack(
    experiment: Experiment, stack: Sequence[PlannedRun], on_sample: Callable[[World], None] | None = None
) -> list[RunOutcome]:
    """Make runs, side by side if there are several and nothing speaks against it, and keep them."""
    alone = len(stack) == 1 or _alike(experiment, stack[0]) in experiment.unstackable
    made = None if alone else _side_by_side(experiment, stack, on_sample)
    return [run_once(experiment, planned, on_sample) for planned in stack] if made is None else made


def _side_by_side(
    experiment: Experiment, stack: Sequence[PlannedRun], on_sample: Callable[[World], None] | None
) -> list[RunOutcome] | None:
    """Make runs side by side and keep them; None, and nothing is kept, if they have to be made one by one."""
    ids = [experiment.run_id(planned.run) for planned in stack]
    todo = [k for k, planned in enumerate(stack) if not is_there(experiment, planned.run, ids[k])]
    began, worked, outcomes = time.perf_counter(), time.process_time(), dict[int, RunOutcome]()
    compiled = seconds_spent()
    if len(todo) > 1:
        try:
            with contained() as left:
                results = execute_together(experiment, [stack[k].run for k in todo], on_sample)
        except INTERRUPTED:
            raise
        except BaseException:  # whatever it is, the run that it is of says so when it is made by itself
            experiment.unstackable.add(_alike(experiment, stack[0]) or "")
            return None
        if left:  # threads that live on
            return None
        keep(experiment, {ids[k]: (stack[k].run, result) for k, result in zip(todo, results, strict=True)})
        taken = time.perf_counter() - began, time.process_time() - worked, seconds_spent() - compiled
        for k, result, part in zip(todo, results, parts(results), strict=True):
            own, manifest = [seconds * part for seconds in taken], result.manifest
            outcomes[k] = RunOutcome(ids[k], manifest["status"], False, manifest["error"], *own)
    return [outcomes.get(k) or run_once(experiment, planned, on_sample) for k, planned in enumerate(stack)]


def _alike(experiment: Experiment, planned: PlannedRun) -> str | None:
    """Text that runs of a stack have in common; None for a run that is made by itself."""
    run, scenario = planned.run, planned.run.point.scenario
    parameters, record, stop = scenario.protocols[run.protocol], scenario.record, scenario.stop
    if experiment.engine_name(run) == "event" or not _is_proved(experiment, planned):
        return None
    own = any(map(is_file, record.metrics or ()))  # may remember what they have seen
    if own or experiment.metrics or record.activations or record.messages is not None or scenario.observers is not None:
        return None
    if [*stop.model_dump(exclude_none=True)] != ["time"]:
        return None
    return repr((run.protocol, parameters, stop, record, scenario.limits, scenario.network.start, scenario.engine))


def _is_proved(experiment: Experiment, planned: PlannedRun) -> bool:
    """Say if a protocol's steps were seen to give the same bits in batches of any agents."""
    verdict = experiment.verdict(planned.run)
    return verdict.status == "shipped" or (verdict.status in ("passed", "elsewhere") and not verdict.warnings)
