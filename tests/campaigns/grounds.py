"""On what grounds a command refused: what it had in hand where the error was first raised.

A refusal that follows from a scenario alone is raised by code that is given the scenario's numbers and nothing else;
one that needs more is raised where data, a graph, a world, or a file's content are looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from hushnet.agents.graph import Graph
from hushnet.agents.input_files import open_regular
from hushnet.agents.tasks.task import Task
from hushnet.protocols.base import Problem
from hushnet.simulator.analysis.results import Collection
from hushnet.simulator.cli import entry
from hushnet.simulator.world.world import World

DRAWN = (Task, Graph, Problem, World, Collection, nx.Graph, np.ndarray, np.generic, pd.DataFrame, pd.Series)
"""What only data, files, luck or runs give."""
GATE = open_regular.__code__.co_filename
"""Where files are opened."""


@contextmanager
def noted() -> Iterator[list[BaseException]]:
    """Errors that commands inside complain about."""
    found: list[BaseException] = []
    usual = entry._complain  # pyright: ignore[reportPrivateUsage]

    def complain(message: str, code: int) -> int:
        error = sys.exc_info()[1]
        if error is not None:
            found.append(error)
        return usual(message, code)

    entry._complain = complain  # pyright: ignore[reportPrivateUsage]
    try:
        yield found
    finally:
        entry._complain = usual  # pyright: ignore[reportPrivateUsage]


def needs_what_was_drawn(error: BaseException) -> bool:
    """Whether the code that first raised an error had something in hand that the scenario alone does not give."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, OSError | UnicodeError):
        return True
    frame = _innermost(error.__traceback__)
    return frame is None or frame.f_code.co_filename == GATE or any(map(_is_drawn, frame.f_locals.values()))


def _innermost(trace: TracebackType | None) -> FrameType | None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace and trace.tb_frame


def _is_drawn(value: Any) -> bool:
    """Whether a local variable is one of `DRAWN`, or an object that holds one."""
    held = getattr(value, "__dict__", {})
    return isinstance(value, DRAWN) or (isinstance(held, dict) and any(isinstance(one, DRAWN) for one in held.values()))
