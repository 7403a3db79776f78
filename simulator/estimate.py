"""What a scenario will need, before it is run: time, memory and disk, measured on a short trial."""

from __future__ import annotations

import contextlib
import math
import time
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from .graphs import describe, graph_line
from .world import World

if TYPE_CHECKING:
    from rich.console import Console

    from .experiment import Experiment

TRIAL_SECONDS = 1.0
BYTES_PER_ROW = 12.0
"""Compressed size of one row of a trace, on the high side."""


class _Enough(Exception):
    """The trial has lasted long enough."""


def print_estimate(experiment: Experiment, console: Console) -> None:
    """Print what would be run and an estimate of its time, memory and disk."""
    runs = list(experiment.runs())
    first = runs[0]
    task, graph = experiment.data(first)
    scenario = experiment.loaded.scenario
    seconds = rows = 0.0
    memory = 0
    for key in scenario.protocols:
        own = [run for run in runs if run.protocol == key]
        one, samples, size = trial(experiment, own[0])
        seconds += one * len(own)
        rows += samples * len(own)
        memory = max(memory, size)
    lines = [
        f"{scenario.scenario}: {len(runs)} runs of {len(scenario.protocols)} protocols; nothing was run or written",
        f"task: {task.name}, {task.agents} agents, dimension {task.dimension}, {len(task.train.labels)} training rows",
        graph_line(describe(graph)),
        f"time: about {_duration(seconds)}; memory: about {memory / 2**20:.0f} MiB a run; "
        f"disk: about {rows * BYTES_PER_ROW / 2**20:.1f} MiB",
    ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def trial(experiment: Experiment, run: Any) -> tuple[float, float, int]:
    """Seconds, trace rows and bytes of a run, extrapolated from its first second."""
    began: list[float] = []

    def enough(_: World) -> None:
        if not began:
            began.append(time.perf_counter())
        elif time.perf_counter() - began[0] > TRIAL_SECONDS:
            raise _Enough

    with threadpool_limits(1):
        recorder = experiment.recorder(run, enough)
        world = experiment.world(run, recorder)
        with contextlib.suppress(_Enough):
            world.run()
        share = _share_done(world)
        rows = len(recorder.trace())
    elapsed = time.perf_counter() - began[0] if began else 0.0
    arrays = [block.values.nbytes for block in (*world.state.agent.values(), *world.state.edge.values())]
    arrays += [block.values.nbytes for block in world.inbox.values.values()]
    table = world.setting.task.train
    size = sum(arrays) + table.features.nbytes + table.labels.nbytes + 2000 * world.setting.graph.agents
    return elapsed / share, rows / share, size


def _share_done(world: World) -> float:
    stop = world.setting.stop
    shares = [
        0.0 if stop.time is None else world.now / stop.time,
        0.0 if stop.activations is None else world.activations / stop.activations,
        0.0 if stop.vectors is None else world.traffic.vectors / stop.vectors,
        0.0 if stop.updates is None else world.activations / (stop.updates * world.setting.graph.agents),
    ]
    return 1.0 if world.ended else min(1.0, max(1e-3, *shares))


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
