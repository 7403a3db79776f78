"""Who sent what when: a few agents' messages, steps and absences over a short window, for teaching and debugging.

The log looks on while the event engine tells of single events, and changes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..agents.errors import InputError
from ..agents.graph import Graph
from ..agents.inbox import Message
from .attendance import attendance
from .language.message_window import DELIVERED, DROPPED, LOST, OVERTAKEN, UNDER_WAY, MessageWindow

if TYPE_CHECKING:
    from ..agents.agent import Agent
    from .storage.files import Frame
    from .world import World

COLUMNS = ("what", "agent", "other", "kind", "start", "end", "fate", "bytes")


class MessageLog:
    """Observer of a world that keeps what a window asks for.

    Parameters
    ----------
    window : MessageWindow
    names : sequence of int or str
        The task's agents.
    graph : Graph

    Raises
    ------
    InputError
        If the window names an agent that there is not.
    """

    def __init__(self, window: MessageWindow, names: Sequence[int | str], graph: Graph) -> None:
        self.first, self.last = window.between
        self._names = [str(name) for name in names]
        self._agents = frozenset(_indices(window.agents, self._names, graph))
        self._steps: list[tuple[int, float]] = []
        self._messages: dict[tuple[int, int], tuple[Message, float, str]] = {}

    def woke(self, world: World, agent: Agent) -> None:
        """See `hushnet.simulator.watchers.Observer`."""
        if self.first <= world.now <= self.last and agent.index in self._agents:
            self._steps.append((agent.index, world.now))

    def sent(self, world: World, message: Message, delay: float, lost: bool) -> None:
        """See `hushnet.simulator.watchers.Observer`."""
        due = world.now if lost else world.now + delay
        if world.now <= self.last and due >= self.first and {message.sender, message.receiver} <= self._agents:
            end, fate = (math.nan, LOST) if lost else (due, UNDER_WAY)
            self._messages[message.order, message.edge] = (message, end, fate)

    def arrived(self, world: World, message: Message, up: bool, newest: bool) -> None:
        """See `hushnet.simulator.watchers.Observer`."""
        key = (message.order, message.edge)
        if key in self._messages:
            fate = DROPPED if not up else DELIVERED if newest else OVERTAKEN
            self._messages[key] = (message, world.now, fate)

    def table(self, world: World) -> Frame:
        """The log as rows in order of time.

        Parameters
        ----------
        world : World
            At its end.

        Returns
        -------
        DataFrame
            ``what`` (message, step or absence), ``agent`` (sender, or whose step or absence it is), ``other``
            (receiver), ``kind`` (of message), ``start`` and ``end`` in time units (``end`` is NaN for a lost message
            and infinite where nobody knows), ``fate`` and ``bytes``.
        """
        name = self._names
        rows: list[tuple[Any, ...]] = [("step", name[a], "", "", time, time, "", 0) for a, time in self._steps]
        for message, end, fate in self._messages.values():
            people = (name[message.sender], name[message.receiver])
            rows.append(("message", *people, message.kind, message.sent_at, end, fate, message.size))
        for agent in sorted(self._agents):
            rows += [("absence", name[agent], "", "", *absent, "", 0) for absent in self._absences(world, agent)]
        rows.sort(key=lambda row: (row[4], row[0], name.index(row[1]), row[2]))
        return pd.DataFrame(rows, columns=pd.Index(COLUMNS))

    def _absences(self, world: World, agent: int) -> list[tuple[float, float]]:
        """Stretches of the window in which an agent was down, or had not joined, or had left."""
        joins, leaves, timelines = attendance(world.setting, world.numbers.tolist())
        here, found, since = timelines[agent], [], 0.0
        up = next(here)[1]
        for time, now_up in here:
            if not up:
                found.append((since, time))
            up, since = now_up, time
            if time > self.last:
                break
        if not up:
            found.append((since, math.inf))
        found += [(0.0, joins[agent])] if joins[agent] > 0 else []
        found += [(leaves[agent], math.inf)] if leaves[agent] < math.inf else []
        return _merged([(max(a, self.first), min(b, self.last)) for a, b in found])


def _merged(stretches: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Stretches without overlaps, in order; empty ones left out."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(stretches):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _indices(wanted: int | list[int | str], names: list[str], graph: Graph) -> list[int]:
    if isinstance(wanted, int):
        return _nearest(graph, wanted)
    for rank, name in enumerate(wanted):
        if str(name) not in names:
            field = ("record", "messages", "agents", rank)
            raise InputError(f"there is no agent {name!r}; agents are called {_few(names)}", field=field)
    return [names.index(str(name)) for name in wanted]


def _nearest(graph: Graph, count: int) -> list[int]:
    """The first agent and those nearest to it, by breadth; further ones in order where the graph ends."""
    found, queue = [0], deque([0])
    while queue and len(found) < count:
        for neighbour in graph.heads[graph.edges_of(queue.popleft())].tolist():
            if neighbour not in found and len(found) < count:
                found.append(neighbour)
                queue.append(neighbour)
    rest = np.setdiff1d(np.arange(graph.agents), found).tolist()
    return [*found, *rest[: count - len(found)]]


def _few(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:3])}, ..., {names[-1]}"
