"""Log of messages, steps and absences: of a few agents over a short window, or of a whole run for observers.

The log looks on while engines note single events, and changes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.errors import InputError
from ...agents.graph import Graph
from ..language.message_window import FATES, MessageWindow
from ..network.churn import churn
from ..storage.files import Frame
from ..tables.effects import DEPARTED, FATE_LOST, WOKE
from ..world.notes import Notebook
from ..world.world import World

MOST_NOTES = 20_000_000
"""Notes of a whole run at most, of 64 bytes each."""
COLUMNS = ("what", "agent", "other", "kind", "start", "end", "fate", "bytes", "tick", "caller", "copy")
DRAWN = ("agent", "time", "tick", "what", "rank", "value")


@final
class MessageLog(Notebook):
    """Notebook of what a window of agents and time asks for in `table`, or of all messages and steps of the run.

    Raises `InputError` if the window names an agent that there is not; later, if a whole run has more than
    `MOST_NOTES`.
    """

    def __init__(
        self, window: MessageWindow | None, names: Sequence[int | str], graph: Graph, *, whole: bool = False
    ) -> None:
        self.first, self.last = (0.0, math.inf) if window is None else window.between
        self.between = (-math.inf, math.inf) if whole else (self.first, self.last)
        self._names, self._graph = np.array([str(name) for name in names], dtype=object), graph
        self.shown = np.zeros(len(names), dtype=bool)
        if window is not None:
            self.shown[_indices(window.agents, self._names.tolist(), graph)] = True
        self.watched = np.ones(len(names), dtype=bool) if whole else self.shown
        self._whole = whole
        self._shows, self._draws = window is not None, window is not None and window.draws
        self._drawn = [_drawn("", [], [], [], np.empty(0), np.zeros(1, dtype=np.int64))]

    def begin(self, world: World) -> None:
        """Have a run that is about to begin tell of what its steps draw, where the window asks for it."""
        if self._draws:
            world.step_tables.tell = lambda *drawn: self._drawn.append(_drawn(*drawn))

    @override
    def check_length(self, notes: int) -> None:
        if self._whole and notes > MOST_NOTES:
            raise InputError(
                f"ask for a record of all messages, and this run has more than {MOST_NOTES:,} departures and steps; "
                "use fewer agents or less time, or leave observers out",
                field=("observers",),
            )

    def tables(self, world: World) -> dict[str, Frame]:
        """All that was asked for, by the name of its file."""
        shown = {"messages": self.table(world)} if self._shows else {}
        return shown | ({"draws": self.drawn()} if self._draws else {})

    def table(self, world: World) -> Frame:
        """The log of a world at its end as rows in order of time.

        Columns are ``what`` (message, step or absence), ``agent`` (sender, or whose step or absence it is), ``other``
        (receiver), ``kind`` (of message), ``start`` and ``end`` in time units (``end`` is NaN for a lost message and
        infinite where nobody knows, as of a copy whose turn on a downlink has not come; a step reads at its start and
        sends at its end), ``fate``, ``bytes``, ``tick`` (of the clock that a step or a message belongs to; -1 of an
        absence and before the first one), ``caller`` (whose clock that is, where agents exchange in pairs: with the two
        agents and the tick it names a session), and ``copy`` (how many copies of the message stand before it: 1, 2, ...
        are repeats).
        """
        notes, shown, graph = world.transport.notes.kept(), self.shown, self._graph
        woke, sent = (notes[notes.what == what] for what in (WOKE, DEPARTED))
        woke = woke[shown[woke.place] & (woke.time >= self.first) & (woke.time <= self.last)]
        end = sent.time + (sent.delay if world.setting.network.downlink is None else math.inf)
        end = np.where(np.isfinite(sent.arrived), sent.arrived, end)
        there = np.where(sent.fate == FATE_LOST, sent.time, end) >= self.first
        there &= shown[graph.tails[sent.place]] & shown[graph.heads[sent.place]] & (sent.time <= self.last)
        end[sent.fate == FATE_LOST] = math.nan
        messages = self._message_rows(sent[there], end[there], world.transport.notes.kind_of)
        steps = _rows("step", woke.place, woke.time - woke.delay, woke.time, tick=woke.tick)
        rows = pd.concat([self._absence_rows(world), messages, steps])
        rows = rows.sort_values(["start", "what", "rank", "other", "order"], kind="stable", ignore_index=True)
        rows["agent"] = self._names[rows["rank"]]
        rows["copy"] = rows.groupby(["what", "agent", "other", "kind", "tick"]).cumcount()
        if world.traits.exchange == "pairwise":
            called = rows["what"] == "message"
            rows.loc[called, "caller"] = rows["agent"].where(rows["kind"] == "request", rows["other"])[called]
        return rows[list(COLUMNS)]

    def drawn(self) -> Frame:
        """The numbers that steps of the window's agents have drawn, in order of time, agent and drawing.

        Columns are ``agent``, ``time`` and ``tick`` of the step, ``what`` (noise, or ranks of rows), ``rank`` of the
        number among those of the agent's steps at that time, and ``value``.
        """
        rows: Frame = pd.concat(self._drawn, ignore_index=True)
        kept = self.shown[rows["agent"].to_numpy(np.int64)] & rows["time"].between(self.first, self.last).to_numpy()
        rows = rows.loc[kept].sort_values(["time", "agent", "what"], kind="stable", ignore_index=True)
        rows["rank"] = rows.groupby(["time", "agent", "what"]).cumcount()
        rows["agent"] = self._names[rows["agent"].to_numpy(np.int64)]
        return rows[list(DRAWN)]

    def _absence_rows(self, world: World) -> Frame:
        agents = np.flatnonzero(self.shown).tolist()
        found = np.array([(agent, *absent) for agent in agents for absent in self._absences(world, agent)], dtype=float)
        whose, start, end = found.reshape(-1, 3).T
        return _rows("absence", whose.astype(np.int64), start, end)

    def _message_rows(self, sent: Any, end: NDArray[np.float64], kind_of: Callable[[int], str]) -> Frame:
        """Messages of some departures, with what has become of them."""
        ranks, which = np.unique(sent.kind, return_inverse=True)
        kinds = np.array([kind_of(rank) for rank in ranks.tolist()], dtype=object)
        others = {"other": self._names[self._graph.tails[sent.place]], "kind": kinds[which]}
        others |= {"fate": np.array(FATES, dtype=object)[sent.fate], "bytes": sent.bytes}
        return _rows(
            "message", self._graph.heads[sent.place], sent.time, end, **others, order=sent.order, tick=sent.tick
        )

    def _absences(self, world: World, agent: int) -> list[tuple[float, float]]:
        """Stretches of window and run in which an agent was down, or had not joined, or had left."""
        last = min(self.last, world.now)
        joins, leaves, timelines = churn(world.setting, world.numbers.tolist())
        here, found, since = timelines[agent], [], 0.0
        up = next(here)[1]
        for time, now_up in here:
            if not up:
                found.append((since, time))
            up, since = now_up, time
            if time > last:
                break
        if not up:
            found.append((since, math.inf))
        found += [(0.0, joins[agent])] if joins[agent] > 0 else []
        found += [(leaves[agent], math.inf)] if leaves[agent] < math.inf else []
        return _merged([(max(a, self.first), min(b, last)) for a, b in found])


def _rows(what: str, rank: Any, start: Any, end: Any, **others: Any) -> Frame:
    """Rows of one sort; ``rank`` is whose they are."""
    nothing = {"other": "", "kind": "", "fate": "", "bytes": 0, "order": 0, "tick": -1, "caller": ""}
    return pd.DataFrame({"what": what, "rank": rank, "start": start, "end": end, **nothing, **others})


def _drawn(what: str, agents: Any, ticks: Any, times: Any, numbers: NDArray[Any], starts: NDArray[np.int64]) -> Frame:
    """Numbers that agents have drawn, a row each."""
    of_each = {"agent": agents, "time": times, "tick": ticks}
    repeated = {name: np.repeat(np.asarray(values), np.diff(starts)) for name, values in of_each.items()}
    return pd.DataFrame({"what": what, "value": numbers.astype(np.float64), **repeated})


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
            raise InputError(f"there is no agent {name!r}; agents are called {few(names)}", field=field)
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


def few(names: list[str]) -> str:
    """Names in a sentence; of many the first three and the last."""
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:3])}, ..., {names[-1]}"
