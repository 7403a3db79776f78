"""A short look at a run: what it takes, extrapolated from its beginning."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .experiment import Experiment, Run
from .storage.files import json_text, parquet
from .world import World

FOLDER_BYTES = 8_000
"""Of a run's folder, besides its trace and manifest."""
AGENT_BYTES = 100
"""Of an agent's rows in a run's folder."""

Enough = Callable[[World], bool]


class _Enough(Exception):
    """The probe has seen enough."""


@dataclass(frozen=True)
class Cost:
    """What one run takes.

    Parameters
    ----------
    seconds, data_seconds : float
        Processor time of the run itself, and of making its data and graph, which runs may share.
    activations, rows, disk, memory : float
        Steps of all agents, rows of the trace, bytes written, bytes held.
    """

    seconds: float
    data_seconds: float
    activations: float
    rows: float
    disk: float
    memory: float

    def as_array(self) -> NDArray[np.float64]:
        """(6,) the numbers, in the order of the fields."""
        return np.array([getattr(self, field.name) for field in fields(self)], dtype=np.float64)


def probe(experiment: Experiment, run: Run, enough: Enough) -> Cost:
    """The cost of a run, extrapolated from its beginning."""
    began: list[float] = []

    def look(world: World) -> None:
        began.append(time.perf_counter())
        if len(began) > 1 and enough(world):
            raise _Enough

    with threadpool_limits(1), np.errstate(over="ignore", invalid="ignore"):
        entered = time.perf_counter()
        experiment.data(run)
        data_seconds = time.perf_counter() - entered
        recorder = experiment.recorder(run, look)
        world = experiment.world(run, recorder)
        with contextlib.suppress(_Enough):
            world.run()
        ended, share = time.perf_counter(), _share_done(world)
    made = (began[0] if began else ended) - entered - data_seconds
    trace, setting = recorder.trace(), world.setting
    rows = len(trace) / share
    manifest = len(json_text(run.point.scenario.resolved()))
    per_row = len(parquet(trace)) / max(len(trace), 1)
    arrays = [block.values.nbytes for block in (*world.state.agent.values(), *world.state.edge.values())]
    arrays += [block.values.nbytes for block in world.inbox.values.values()]
    table, agents = setting.task.train, setting.graph.agents
    return Cost(
        seconds=made + (ended - entered - data_seconds - made) / share,
        data_seconds=data_seconds,
        activations=world.activations / share,
        rows=rows,
        disk=FOLDER_BYTES + manifest + AGENT_BYTES * agents + per_row * rows,
        memory=sum(arrays) + table.features.nbytes + table.labels.nbytes + 2000 * agents,
    )


def _share_done(world: World) -> float:
    stop = world.setting.stop
    shares = [
        0.0 if stop.time is None else world.now / stop.time,
        0.0 if stop.activations is None else world.activations / stop.activations,
        0.0 if stop.vectors is None else world.traffic.vectors / stop.vectors,
        0.0 if stop.updates is None else world.activations / (stop.updates * world.setting.graph.agents),
    ]
    return 1.0 if world.ended else min(1.0, max(1e-3, *shares))
