"""The record ``me`` of a step: of one agent, or of a batch of agents whose steps do not depend on each other.

What either has is listed in `hushnet.protocols.steps.names`. Of one agent, blocks are views that are written in place.
Of a batch, what a step names is gathered into arrays whose first axis is the agents or their edges, and blocks are
written back when the step is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .heard_kernels import gathered
from .names import MESSAGE
from .sources import Source
from .tables import StepTables

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


class Record:
    """What records of one agent and of a batch have in common, for operators.

    Parameters
    ----------
    tables : StepTables
    source : Source
    agents : (B,) int64
    """

    _tables: StepTables
    _source: Source
    _agents: Ranks
    _is_batch: bool
    _messages: Mapping[str, str]
    _said: dict[str, Array]

    def _unknown(self, name: str) -> AttributeError:
        return AttributeError(f"an agent has no {name!r}; it has {', '.join(self._tables.names.all)}")

    def _matrix(self, values: Any, width: int | None = None) -> Array:
        """(B, width) float64, contiguous, of what a step has of its agents."""
        rows = np.ascontiguousarray(values, dtype=np.float64)
        if not rows.flags.writeable:
            rows = rows.copy()
        if not self._is_batch:
            rows = rows.reshape(1, -1)
        if rows.ndim != 2 or len(rows) != len(self._agents) or (width is not None and rows.shape[1] != width):
            wanted = f"({len(self._agents)}, {width or 'k'})" if self._is_batch else f"({width or 'k'},)"
            raise ValueError(f"the shape {np.shape(values)} is not {wanted}")
        return rows

    def _column(self, values: Any) -> Array:
        """(B,) float64 of a number, or of a number for each agent."""
        return np.broadcast_to(np.asarray(values, dtype=np.float64).reshape(-1), (len(self._agents),))

    def _given(self, rows: Array) -> Array:
        """What a step is given of (B, width) values."""
        return rows if self._is_batch else rows[0]

    def _sent_kind(self, name: str) -> str:
        kind = self._messages.get(name)
        if kind is None:
            raise AttributeError(f"nothing is sent here, so there is no me.{name}")
        return kind

    def _heard(self, kind: str) -> tuple[Any, Ranks, Ranks, Array]:
        """A pool, what of it was heard over each edge, where agents' edges begin, and what stands for the rest."""
        tables = self._tables
        widths = tables.names.heard_widths[kind]
        width = int(widths[self._agents[0]] if len(self._agents) else widths.max(initial=0))
        pool, index, starts = self._source.heard_at(kind, width)
        mirror = tables.mirror(kind)
        own = np.zeros((len(self._agents), width)) if mirror is None else self._matrix(getattr(self, mirror))
        return pool, index, starts, own

    def _received(self, kind: str) -> Array:
        """(R, width) what was heard over each edge."""
        pool, index, starts, own = self._heard(kind)
        out = np.empty((len(index), own.shape[1]))
        gathered(pool, index, starts, own, out)
        return out


class Meeting:
    """What an agent, or each agent of a batch, has of the edge over which it meets a neighbour: `Record.here`.

    Parameters
    ----------
    me : Record
    edges : (B,) int64
        Directed edges.
    places : (B,) int64
        Where they are among the edges of the batch.
    """

    def __init__(self, me: Record, edges: Ranks, places: Ranks) -> None:
        self.__dict__.update(_me=me, _edges=edges, _places=places, _named={})

    def __getattr__(self, name: str) -> Any:
        """A block, a constant or a weight of the edge."""
        me = self._me
        tables = me._tables
        if name in tables.state.edge:
            known = me._of_edges(name)
            found = tables.state.edge[name].taken(self._edges) if known is None else known[self._places]
            self._named[name] = found
        elif name in tables.names.per_edge:
            found = tables.names.per_edge[name][self._edges]
        elif name == "weight":
            found = tables.graph.weights[self._edges]
        else:
            raise AttributeError(f"an edge has no {name!r}; it has {', '.join(tables.state.edge)} and weight")
        if found.ndim == 1:
            found = found[:, None]
        self.__dict__[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of a block of the edge."""
        blocks = self._me._tables.state.edge
        if name not in blocks:
            raise AttributeError(f"me.here.{name} is not for a step to change")
        out = np.empty((len(self._edges), blocks[name].width_of(self._edges)))
        out[:] = value
        self.__dict__[name] = self._named[name] = out

    def _write_back(self) -> None:
        for name, values in self._named.items():
            self._me._tables.state.edge[name].put(self._edges, values)


class One(Record):
    """One agent at its steps, one after the other; assignment writes in place.

    What never changes, and arrays that are written in place, are plain attributes; blocks of one number are read anew.
    Numbers are NumPy's: beyond their range they become infinite, where Python's would raise.

    Parameters
    ----------
    tables : StepTables
    source : Source
    agent : int
    """

    def __init__(self, tables: StepTables, source: Source, agent: int) -> None:
        put, names, state, edges = self.__dict__, tables.names, tables.state, tables.graph.edges_of(agent)
        put.update(_tables=tables, _source=source, _agents=np.array([agent]), _is_batch=False, _messages={}, _said={})
        one = names.is_number
        blocks = {name: block[agent] for name, block in state.agent.items()}
        put["_numbers"] = {name: block for name, block in blocks.items() if one(name)}
        for name, block in state.edge.items():
            own = block.of(edges)
            blocks[name] = own[:, 0] if one(name) else cast(Any, own)
        put["_blocks"] = blocks
        put["_widths"] = {kind: names.width(kind, agent) for kind in names.kinds}
        put.update(_fixed_fields(tables, agent, edges))
        put.update({name: block for name, block in blocks.items() if name not in put["_numbers"]})

    def _begin(self, messages: Mapping[str, str], updates: int, tick: int, now: float) -> None:
        """Begin a step that may send messages, by name and kind."""
        put = self.__dict__
        put["_messages"], put["_said"] = messages, {}
        put["updates"], put["tick"], put["round"], put["now"] = updates, tick, updates + 1, now
        for name in put.pop("_passing", ()):
            del put[name]

    def __getattr__(self, name: str) -> Any:
        """A block of one number, what was heard, or the own rows."""
        block = self.__dict__["_numbers"].get(name)
        if block is not None:
            return block[0]
        names, put = self._tables.names, self.__dict__
        if name in names.heard:
            found: Any = self._received(names.heard[name])
        elif name in names.was_heard:
            kind = names.was_heard[name]
            found = self._source.heard_at(kind, 0)[1] >= 0
        elif name in ("features", "labels"):
            shard = self._source.shard(int(self._agents[0])).read_only
            put["features"], put["labels"] = shard.features, shard.labels
            return put[name]
        else:
            raise self._unknown(name)
        put[name] = found
        put.setdefault("_passing", []).append(name)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Write into a block, or say what is to be sent."""
        block = self._blocks.get(name)
        if block is not None:
            if block is not value:
                block[:] = value
        elif name == MESSAGE or name in self._tables.names.messages:
            self._said[name] = self._copied(name, value)
        else:
            raise AttributeError(f"me.{name} is not for a step to change")

    def _copied(self, name: str, value: Any) -> Array:
        """A copy of what is assigned to a message."""
        kind, names = self._sent_kind(name), self._tables.names
        width = self._widths[kind]
        if width == 0 and names.is_partial(kind):
            raise ValueError(names.unsent(kind))
        message = np.empty((self.degree, width) if names.layout.messages[kind].addressed else width)
        message[:] = value
        return message


def _fixed_fields(tables: StepTables, agent: int, edges: slice) -> dict[str, Any]:
    """What of an agent never changes."""
    names = tables.names
    return {
        **{name: np.float64(value) if isinstance(value, float) else value for name, value in names.parameters.items()},
        **{name: _fixed(array) for name, array in names.run.items()},
        **{name: _fixed(array[agent]) for name, array in names.per_agent.items()},
        **{name: _fixed(array[edges]) for name, array in names.per_edge.items()},
        "rows": int(tables.counts[agent]),
        "weights": _fixed(tables.graph.weights[edges]),
        "degree": edges.stop - edges.start,
        "regularisation": np.float64(tables.task.regularisation[agent]),
        "agent": agent,
    }


def _fixed(array: Any) -> Any:
    """A number, or an array that nobody writes."""
    if np.ndim(array) == 0:
        return np.float64(array)
    view = array.view()
    view.flags.writeable = False
    return view


class Batch(Record):
    """Agents that make one step each at once: (B, ...) of agents, (R, ...) of their edges in order.

    Parameters
    ----------
    tables : StepTables
    source : Source
    agents : (B,) int64
        Whose blocks have equal widths.
    messages : mapping of str to str
        What may be sent, by name and kind.
    passing : mapping of str to (B, 1) array
        ``updates``, ``tick``, ``round`` and ``now``.
    """

    def __init__(
        self, tables: StepTables, source: Source, agents: Ranks, messages: Mapping[str, str], passing: Mapping[str, Any]
    ) -> None:
        put = self.__dict__
        put.update(_tables=tables, _source=source, _agents=agents, _is_batch=True, _messages=messages, _said={})
        put["_gathered"] = {}
        put.update(passing)

    def __getattr__(self, name: str) -> Any:
        """Whatever a step names for the first time, gathered."""
        found = self._gather(name)
        self.__dict__[name] = found
        return found

    def _of_edges(self, name: str) -> Array | None:
        """A block of all edges, if the step has named it."""
        return self._gathered.get(name)

    def _gather(self, name: str) -> Any:
        tables, agents = self._tables, self._agents
        names = tables.names
        if name in tables.state.agent:
            found = self._gathered[name] = tables.state.agent[name].taken(agents)
        elif name in tables.state.edge:
            found = self._gathered[name] = tables.state.edge[name].taken(self._edges)
            if "here" in self.__dict__ and name in self.here._named:
                found[self._partner] = self.here._named[name]
        elif name in names.run:
            return _fixed(names.run[name])
        elif name in names.per_agent:
            found = names.per_agent[name][agents]
            found = found[:, None] if found.ndim == 1 else found
        elif name in names.per_edge:
            found = names.per_edge[name][self._edges]
            found = found[:, None] if found.ndim == 1 else found
        elif name in names.heard:
            found = self._received(names.heard[name])
        elif name in names.was_heard:
            found = self._source.heard_at(names.was_heard[name], 0)[1][:, None] >= 0
        elif name in names.parameters:
            value = names.parameters[name]
            return np.float64(value) if isinstance(value, float) else value
        else:
            found = self._own(name)
        return found

    def _own(self, name: str) -> Any:
        """What every agent has."""
        tables, agents = self._tables, self._agents
        if name == "_edges":
            first, counts = tables.graph.offsets[agents], self._degrees
            before = np.cumsum(counts) - counts
            return np.repeat(first - before, counts) + np.arange(counts.sum())
        if name == "_degrees":
            return tables.graph.degrees[agents]
        if name == "_edge_starts":
            return np.concatenate([[0], np.cumsum(self._degrees)])
        if name == "degree":
            return self._degrees[:, None]
        if name == "rows":
            return tables.counts[agents][:, None]
        if name == "regularisation":
            return tables.task.regularisation[agents][:, None]
        if name == "weights":
            return tables.graph.weights[self._edges][:, None]
        if name == "agent":
            return agents[:, None]
        raise self._unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of a block, or say what is to be sent."""
        state = self._tables.state
        if name in state.agent or name in state.edge:
            self.__dict__[name] = self._gathered[name] = self._full(name, value)
        elif name == MESSAGE or name in self._tables.names.messages:
            self._said[name] = self._copied(name, value)
        else:
            raise AttributeError(f"me.{name} is not for a step to change")

    def _full(self, name: str, value: Any) -> Array:
        """A value as wide and as long as its block."""
        if value is self._gathered.get(name):
            return value
        state = self._tables.state
        of_agents = name in state.agent
        block = state.agent[name] if of_agents else state.edge[name]
        owners = self._agents if of_agents else self._edges
        shape = (len(owners), block.width_of(owners))
        return self._broadcast(name, value, shape)

    def _copied(self, name: str, value: Any) -> Array:
        kind, names = self._sent_kind(name), self._tables.names
        width = int(names.sent_widths[kind][self._agents[0]])
        if width == 0 and names.is_partial(kind):
            raise ValueError(names.unsent(kind))
        addressed = names.layout.messages[kind].addressed
        return self._broadcast(name, value, (len(self._edges) if addressed else len(self._agents), width))

    @staticmethod
    def _broadcast(name: str, value: Any, shape: tuple[int, int]) -> Array:
        out = np.empty(shape)
        try:
            out[:] = value
        except ValueError:
            raise ValueError(f"me.{name} is {shape} here, and was given {np.shape(value)}") from None
        return out

    def where(self, mask: Any) -> Part:
        """The same record for some of the agents: what is assigned there is written for them alone.

        Parameters
        ----------
        mask : (B, 1) bool
        """
        rows = np.flatnonzero(np.broadcast_to(np.reshape(mask, -1), len(self._agents)))
        return Part(self, rows)

    def _meet(self, edges: Ranks) -> None:
        """Meet a neighbour each, over (B,) directed edges."""
        first = self._tables.graph.offsets[self._agents]
        self.__dict__["_partner"] = places = self._edge_starts[:-1] + edges - first
        self.__dict__["here"] = Meeting(self, edges, places)

    def _write_back(self) -> None:
        """Write what the step has named of blocks."""
        state = self._tables.state
        for name, values in self._gathered.items():
            if name in state.agent:
                state.agent[name].put(self._agents, values)
            else:
                state.edge[name].put(self._edges, values)
        if "here" in self.__dict__:
            self.here._write_back()


class Part(Batch):
    """Some agents of a batch, at the same step.

    Blocks that are named are copies, which nobody may write into: what is assigned takes their place in the batch.

    Parameters
    ----------
    whole : Batch
    rows : (B',) int64
        Places of the agents in the batch.
    """

    def __init__(self, whole: Batch, rows: Ranks) -> None:
        passing = {name: getattr(whole, name)[rows] for name in ("updates", "tick", "round", "now")}
        super().__init__(whole._tables, whole._source.part(rows), whole._agents[rows], {}, passing)
        self.__dict__.update(_whole=whole, _rows=rows)

    @property
    def _edge_rows(self) -> Ranks:
        """(R',) places of the agents' edges among those of the batch."""
        starts = self._whole._edge_starts[self._rows]
        before = np.cumsum(self._degrees) - self._degrees
        return np.repeat(starts - before, self._degrees) + np.arange(self._degrees.sum())

    def _gather(self, name: str) -> Any:
        state = self._tables.state
        if name in state.agent:
            found = getattr(self._whole, name)[self._rows]
        elif name in state.edge:
            found = getattr(self._whole, name)[self._edge_rows]
        else:
            return super()._gather(name)
        found.flags.writeable = False
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of the agents' part of a block."""
        state = self._tables.state
        if name not in state.agent and name not in state.edge:
            raise AttributeError(f"me.{name} is not for a part of the agents to change")
        whole = getattr(self._whole, name)
        if not whole.flags.writeable:
            setattr(self._whole, name, whole)
            whole = getattr(self._whole, name)
        whole[self._rows if name in state.agent else self._edge_rows] = value
        self.__dict__.pop(name, None)
