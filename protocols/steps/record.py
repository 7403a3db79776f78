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

from ...agents.suggestions import suggestion
from .heard_kernels import gathered
from .names import MESSAGE
from .sources import Source
from .tables import StepTables

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
OF_ONE = (
    "a batched step has no me.{}: operators read rows, and what needs them itself is of one agent, without @batched"
)
OTHERWISE: tuple[dict[str, str], dict[str, str]] = (
    {
        "where": "me.where is of batched steps; of one agent, write if",
        "here": "me.here is of batched steps; of one agent, blocks of the edge are me.BLOCK[partner]",
    },
    {name: OF_ONE.format(name) for name in ("features", "labels")},
)
"""What records of one agent, and those of a batch, do not have, and what stands in its place."""


class Record:
    """What records of one agent and of a batch have in common, for operators.

    Parameters
    ----------
    tables : StepTables
    source : Source
    agents : (B,) int64
    """

    tables_: StepTables
    source_: Source
    agents_: Ranks
    is_batch_: bool
    messages_: Mapping[str, str]
    said_: dict[str, Array]

    edge_starts_: Ranks
    degrees_: Ranks
    degree: Any
    rows: Any

    def _unknown(self, name: str) -> AttributeError:
        if name in OTHERWISE[self.is_batch_]:
            return AttributeError(OTHERWISE[self.is_batch_][name])
        known = self.tables_.names.all
        return AttributeError(f"an agent has no {name!r}{suggestion(name, known)} it has {', '.join(known)}")

    def _fixed_name(self, name: str) -> AttributeError:
        names = ", ".join(sorted(self.tables_.names.writable))
        return AttributeError(f"me.{name} is not for a step to change; admissible: {names}")

    def matrix_(self, values: Any, width: int | None = None) -> Array:
        """(B, width) float64, contiguous, of what a step has of its agents."""
        rows = np.ascontiguousarray(values, dtype=np.float64)
        if not rows.flags.writeable:
            rows = rows.copy()
        if not self.is_batch_:
            rows = rows.reshape(1, -1)
        if rows.ndim != 2 or len(rows) != len(self.agents_) or (width is not None and rows.shape[1] != width):
            wanted = f"({len(self.agents_)}, {width or 'k'})" if self.is_batch_ else f"({width or 'k'},)"
            raise ValueError(f"the shape {np.shape(values)} is not {wanted}")
        return rows

    def column_(self, values: Any) -> Array:
        """(B,) float64 of a number, or of a number for each agent."""
        return np.broadcast_to(np.asarray(values, dtype=np.float64).reshape(-1), (len(self.agents_),))

    def given_(self, rows: Array) -> Array:
        """What a step is given of (B, width) values."""
        return rows if self.is_batch_ else rows[0]

    def _sent_kind(self, name: str) -> str:
        kind = self.messages_.get(name)
        if kind is None:
            raise AttributeError(f"nothing is sent here, so there is no me.{name}")
        return kind

    def heard_(self, kind: str) -> tuple[Any, Ranks, Ranks, Array]:
        """A pool, what of it was heard over each edge, where agents' edges begin, and what stands for the rest."""
        tables = self.tables_
        widths = tables.names.heard_widths[kind]
        width = int(widths[self.agents_[0]] if len(self.agents_) else widths.max(initial=0))
        pool, index, starts = self.source_.heard_at(kind, width)
        mirror = tables.mirror(kind)
        own = np.zeros((len(self.agents_), width)) if mirror is None else self.matrix_(getattr(self, mirror))
        return pool, index, starts, own

    def received_(self, kind: str) -> Array:
        """(R, width) what was heard over each edge."""
        pool, index, starts, own = self.heard_(kind)
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
        self.__dict__.update(_me=me, edges_=edges, places_=places, named_={})

    def __getattr__(self, name: str) -> Any:
        """A block, a constant or a weight of the edge."""
        me = self._me
        tables = me.tables_
        if name in tables.state.edge:
            known = me.of_edges_(name)
            found = tables.state.edge[name].taken(self.edges_) if known is None else known[self.places_]
            self.named_[name] = found
        elif name in tables.names.per_edge:
            found = tables.names.per_edge[name][self.edges_]
        elif name == "weight":
            found = tables.graph.weights[self.edges_]
        else:
            raise AttributeError(f"an edge has no {name!r}; it has {', '.join(tables.state.edge)} and weight")
        if found.ndim == 1:
            found = found[:, None]
        self.__dict__[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of a block of the edge."""
        blocks = self._me.tables_.state.edge
        if name not in blocks:
            raise AttributeError(f"me.here.{name} is not for a step to change; admissible: {', '.join(blocks)}")
        out = np.empty((len(self.edges_), blocks[name].width_of(self.edges_)))
        out[:] = value
        self.__dict__[name] = self.named_[name] = out

    def write_back_(self) -> None:
        """Write what the step has named of blocks."""
        for name, values in self.named_.items():
            self._me.tables_.state.edge[name].put(self.edges_, values)


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
        put.update(tables_=tables, source_=source, agents_=np.array([agent]), is_batch_=False, messages_={}, said_={})
        one = names.is_number
        blocks = {name: block[agent] for name, block in state.agent.items()}
        put["numbers_"] = {name: block for name, block in blocks.items() if one(name)}
        for name, block in state.edge.items():
            own = block.of(edges)
            blocks[name] = cast(Any, own)[:, 0] if one(name) else cast(Any, own)
        put["blocks_"] = blocks
        put["widths_"] = {kind: names.width(kind, agent) for kind in names.kinds}
        put.update(_fixed_fields(tables, agent, edges))
        put.update({name: block for name, block in blocks.items() if name not in put["numbers_"]})

    def begin_(self, messages: Mapping[str, str], updates: int, tick: int, now: float) -> None:
        """Begin a step that may send messages, by name and kind."""
        put = self.__dict__
        put["messages_"], put["said_"] = messages, {}
        put["updates"], put["tick"], put["round"], put["now"] = updates, tick, updates + 1, now
        for name in put.pop("passing_", ()):
            del put[name]

    def __getattr__(self, name: str) -> Any:
        """A block of one number, what was heard, or the own rows."""
        block = self.__dict__["numbers_"].get(name)
        if block is not None:
            return block[0]
        names, put = self.tables_.names, self.__dict__
        if name in names.heard:
            found: Any = self.received_(names.heard[name])
        elif name in names.was_heard:
            kind = names.was_heard[name]
            found = self.source_.heard_at(kind, 0)[1] >= 0
        elif name in ("features", "labels"):
            shard = self.source_.shard(int(self.agents_[0])).read_only
            put["features"], put["labels"] = shard.features, shard.labels
            return put[name]
        else:
            raise self._unknown(name)
        put[name] = found
        put.setdefault("passing_", []).append(name)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Write into a block, or say what is to be sent."""
        block = self.blocks_.get(name)
        if block is not None:
            if block is not value:
                block[:] = value
        elif name == MESSAGE or name in self.tables_.names.messages:
            self.said_[name] = self._copied(name, value)
        else:
            raise self._fixed_name(name)

    def _copied(self, name: str, value: Any) -> Array:
        """A copy of what is assigned to a message."""
        kind, names = self._sent_kind(name), self.tables_.names
        width = self.widths_[kind]
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
        put.update(tables_=tables, source_=source, agents_=agents, is_batch_=True, messages_=messages, said_={})
        put["gathered_"] = {}
        put.update(passing)

    def __getattr__(self, name: str) -> Any:
        """Whatever a step names for the first time, gathered."""
        found = self._gather(name)
        self.__dict__[name] = found
        return found

    def of_edges_(self, name: str) -> Array | None:
        """A block of all edges, if the step has named it."""
        return self.gathered_.get(name)

    def _gather(self, name: str) -> Any:
        tables, agents = self.tables_, self.agents_
        names = tables.names
        if name in tables.state.agent:
            found = self.gathered_[name] = tables.state.agent[name].taken(agents)
        elif name in tables.state.edge:
            found = self.gathered_[name] = tables.state.edge[name].taken(self.edges_)
            if "here" in self.__dict__ and name in self.here.named_:
                found[self.partner_] = self.here.named_[name]
        elif name in names.run:
            return _fixed(names.run[name])
        elif name in names.per_agent:
            found = names.per_agent[name][agents]
            found = found[:, None] if found.ndim == 1 else found
        elif name in names.per_edge:
            found = names.per_edge[name][self.edges_]
            found = found[:, None] if found.ndim == 1 else found
        elif name in names.heard:
            found = self.received_(names.heard[name])
        elif name in names.was_heard:
            found = self.source_.heard_at(names.was_heard[name], 0)[1][:, None] >= 0
        elif name in names.parameters:
            value = names.parameters[name]
            return np.float64(value) if isinstance(value, float) else value
        else:
            found = self._own(name)
        return found

    def _own(self, name: str) -> Any:
        """What every agent has."""
        tables, agents = self.tables_, self.agents_
        if name == "edges_":
            first, counts = tables.graph.offsets[agents], self.degrees_
            before = np.cumsum(counts) - counts
            return np.repeat(first - before, counts) + np.arange(counts.sum())
        if name == "degrees_":
            return tables.graph.degrees[agents]
        if name == "edge_starts_":
            return np.concatenate([[0], np.cumsum(self.degrees_)])
        if name == "degree":
            return self.degrees_[:, None]
        if name == "rows":
            return tables.counts[agents][:, None]
        if name == "regularisation":
            return tables.task.regularisation[agents][:, None]
        if name == "weights":
            return tables.graph.weights[self.edges_][:, None]
        if name == "agent":
            return agents[:, None]
        raise self._unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of a block, or say what is to be sent."""
        state = self.tables_.state
        if name in state.agent or name in state.edge:
            self.__dict__[name] = self.gathered_[name] = self._full(name, value)
        elif name == MESSAGE or name in self.tables_.names.messages:
            self.said_[name] = self._copied(name, value)
        else:
            raise self._fixed_name(name)

    def _full(self, name: str, value: Any) -> Array:
        """A value as wide and as long as its block."""
        if value is self.gathered_.get(name):
            return value
        state = self.tables_.state
        of_agents = name in state.agent
        block = state.agent[name] if of_agents else state.edge[name]
        owners = self.agents_ if of_agents else self.edges_
        shape = (len(owners), block.width_of(owners))
        return self._broadcast(name, value, shape)

    def _copied(self, name: str, value: Any) -> Array:
        kind, names = self._sent_kind(name), self.tables_.names
        width = int(names.sent_widths[kind][self.agents_[0]])
        if width == 0 and names.is_partial(kind):
            raise ValueError(names.unsent(kind))
        addressed = names.layout.messages[kind].addressed
        return self._broadcast(name, value, (len(self.edges_) if addressed else len(self.agents_), width))

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
        rows = np.flatnonzero(np.broadcast_to(np.reshape(mask, -1), len(self.agents_)))
        return Part(self, rows)

    def meet_(self, edges: Ranks) -> None:
        """Meet a neighbour each, over (B,) directed edges."""
        first = self.tables_.graph.offsets[self.agents_]
        self.__dict__["partner_"] = places = self.edge_starts_[:-1] + edges - first
        self.__dict__["here"] = Meeting(self, edges, places)

    def write_back_(self) -> None:
        """Write what the step has named of blocks."""
        state = self.tables_.state
        for name, values in self.gathered_.items():
            if name in state.agent:
                state.agent[name].put(self.agents_, values)
            else:
                state.edge[name].put(self.edges_, values)
        if "here" in self.__dict__:
            self.here.write_back_()


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
        super().__init__(whole.tables_, whole.source_.part(rows), whole.agents_[rows], {}, passing)
        self.__dict__.update(whole_=whole, rows_=rows)

    @property
    def edge_rows_(self) -> Ranks:
        """(R',) places of the agents' edges among those of the batch."""
        starts = self.whole_.edge_starts_[self.rows_]
        before = np.cumsum(self.degrees_) - self.degrees_
        return np.repeat(starts - before, self.degrees_) + np.arange(self.degrees_.sum())

    def _gather(self, name: str) -> Any:
        state = self.tables_.state
        if name in state.agent:
            found = getattr(self.whole_, name)[self.rows_]
        elif name in state.edge:
            found = getattr(self.whole_, name)[self.edge_rows_]
        else:
            return super()._gather(name)
        found.flags.writeable = False
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of the agents' part of a block."""
        state = self.tables_.state
        if name not in state.agent and name not in state.edge:
            raise AttributeError(
                f"me.{name} is not for a part of the agents to change: assign it for all of them, by np.where"
            )
        whole = getattr(self.whole_, name)
        if not whole.flags.writeable:
            setattr(self.whole_, name, whole)
            whole = getattr(self.whole_, name)
        whole[self.rows_ if name in state.agent else self.edge_rows_] = value
        self.__dict__.pop(name, None)
