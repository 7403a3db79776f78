"""Snapshot of a run, which a metric of a user's own reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import State
from ...agents.graph import Graph
from ...agents.tasks.task import Task


@dataclass(frozen=True)
class Snapshot:
    """Snapshot of a run, for a metric to read; every array is read-only.

    It has the time ``now`` in expected wake-ups of a rate-1 agent, steps of all agents so far as ``activations``, (n,
    p) float64 ``models`` or None, copies of all blocks as ``state``, and in ``honest``, (n,) bool, which agents send
    what their protocol has them send.
    """

    now: float
    activations: int
    models: NDArray[np.float64] | None
    task: Task
    graph: Graph
    state: State
    honest: NDArray[np.bool_]


OwnMetric = Callable[[Snapshot], float | Mapping[str, float]]
"""A user's own metric: one number, or numbers by statistic."""
