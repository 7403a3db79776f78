"""Problem that a protocol solves: the task and the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..agents.graph import Graph
from ..agents.tasks.task import Task


@dataclass(frozen=True)
class Problem:
    """Task, graph and further inputs that a protocol may read while it prepares its public constants."""

    task: Task
    """Only its public parts (dimension, bounds, sizes) may enter a constant without being listed in
    `Protocol.assumed_public`."""
    graph: Graph
    oracle: Callable[[int], NDArray[np.int64]] | None = None
    """``oracle(updates)`` gives the (n, updates) places of every agent's first wake-ups among all of these, for
    protocols that pretend to know the schedule in advance; None where absences make this impossible."""
    stream: Callable[[str, int], np.random.Generator] | None = None
    """``stream(purpose, agent)`` gives an agent's random stream before time 0, for what agents prepare together; None
    where nothing is run."""
    assumed: Callable[[str, Any], Any] = lambda _name, value: value
    """``assumed(name, value)`` gives a constant that comes from agents' records and is treated as public; its name has
    to be among `Protocol.assumed_public`. It is ``value``, except where a run is led along one on neighbouring data:
    these share such constants, and all others have to do without agents' records."""
