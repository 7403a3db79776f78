"""The record ``me`` of a step that is made for many agents at once, and its parts.

What a step names is gathered into arrays whose first axis is the agents or their edges, and blocks are written back
when it is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernels import table_starts
from .record import Record, broadcast, column, segments
from .step_tables import StepSource, StepTables

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


class Batch(Record):
    """Agents that make one step each at once: (B, ...) of agents, (R, ...) of their edges in order.

    Their blocks have equal widths. Those that a step names are copies, which are written back when it is over; all else
    is read-only. Messages may be sent by name and kind; what passes are (B,) ``updates``, ``tick`` and ``now``, and in
    an exchange the ``edge`` over which each agent meets a neighbour.
    """

    def __init__(
        self, tables: StepTables, source: StepSource, agents: Ranks, messages: Mapping[str, str], passing: Any
    ) -> None:
        self.__dict__.update(
            tables_=tables,
            source_=source,
            agents_=agents,
            is_batch_=True,
            messages_=messages,
            passing_=passing,
            said_={},
            blocks_={},
        )

    def __getattr__(self, name: str) -> Any:
        """Whatever a step names for the first time."""
        load = self.tables_.loaders.get(name)
        if load is None:
            raise AttributeError(self._unknown(name))
        found = self.__dict__[name] = load(self)
        if isinstance(found, np.ndarray) and name not in self.blocks_ and not name.endswith("_"):
            found.flags.writeable = False
        return found

    def block_(self, name: str) -> Array:
        """A copy of a block of the agents."""
        found = self.blocks_[name] = self.tables_.state.agent[name].taken(self.agents_)
        return found

    def edge_block_(self, name: str) -> Array:
        """A copy of a block of the agents' edges."""
        found = self.blocks_[name] = self.tables_.state.edge[name].taken(self.edges_)
        here = self.__dict__.get("here")
        if here is not None and name in here.blocks_:
            found[self.partner_] = here.blocks_.pop(name)
        return found

    def here_(self) -> Meeting:
        """Record of the edge over which each agent meets a neighbour."""
        return Meeting(self, self.passing_["edge"])

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of a block, or say what is to be sent."""
        state = self.tables_.state
        if name in state.agent or name in state.edge:
            if value is self.blocks_.get(name):
                return
            of_agents = name in state.agent
            block, owners = (state.agent[name], self.agents_) if of_agents else (state.edge[name], self.edges_)
            shape = (len(owners), block.width_of(owners))
            self.__dict__[name] = self.blocks_[name] = broadcast(name, value, shape)
            here = self.__dict__.get("here")
            if here is not None and not of_agents:
                here.blocks_.pop(name, None)
            return
        kind, names = self.messages_.get(name), self.tables_.names
        if kind is None:
            raise self._unsendable(name)
        width = int(names.sent_widths[kind][self.agents_[0]])
        if width == 0 and names.is_partial(kind):
            raise ValueError(names.unsent(kind))
        count = int(self.degrees_.sum()) if kind in self.tables_.addressed else len(self.agents_)
        self.said_[name] = broadcast(name, value, (count, width), state.precision)

    def _unknown(self, name: str) -> str:
        if name in ("features", "labels", "data"):
            return (
                f"a batch has no {name!r}, for agents have different numbers of rows; operators read them, and so do "
                "steps of single agents"
            )
        return super()._unknown(name)

    def where(self, mask: Any) -> BatchPart:
        """The same record for agents in a (B, 1) mask: what is assigned there is written for them alone."""
        given, count = np.reshape(mask, -1), len(self.agents_)
        if given.size not in (1, count):
            raise ValueError(f"me.where takes a mask of {count} agents, and not one of shape {np.shape(mask)}")
        return self.part_(np.flatnonzero(np.broadcast_to(given, count)))

    def part_(self, rows: Ranks) -> BatchPart:
        """Some of the agents, by their places."""
        return BatchPart(self, rows)

    def write_back_(self) -> None:
        """Write the blocks that the step has named."""
        state = self.tables_.state
        for name, values in self.blocks_.items():
            if name in state.agent:
                state.agent[name].put(self.agents_, values)
            else:
                state.edge[name].put(self.edges_, values)
        here = self.__dict__.get("here")
        if here is not None:
            for name, values in here.blocks_.items():
                state.edge[name].put(here.edges_, values)


class BatchPart(Batch):
    """Some agents of a batch, at the same step; what is assigned takes its place in the batch at once.

    Their places in the batch, (B',) `rows`, ascend.
    """

    def __init__(self, whole: Batch, rows: Ranks) -> None:
        passing = {name: whole.passing_[name][rows] for name in ("updates", "tick", "now")}
        super().__init__(whole.tables_, whole.source_.part(rows), whole.agents_[rows], {}, passing)
        self.__dict__.update(whole_=whole, rows_=rows)

    @property
    def edge_rows_(self) -> Ranks:
        """(R',) places of the agents' edges among those of the batch."""
        return segments(self.whole_.edge_starts_[self.rows_], self.degrees_)

    def part_(self, rows: Ranks) -> BatchPart:
        """Some of these agents, by their places, as a part of the whole batch."""
        return BatchPart(self.whole_, self.rows_[rows])

    def __getattr__(self, name: str) -> Any:
        """Whatever a step names for the first time, and blocks as they are now."""
        state = self.tables_.state
        if name not in state.agent and name not in state.edge:
            return super().__getattr__(name)
        found = getattr(self.whole_, name)[self.rows_ if name in state.agent else self.edge_rows_]
        found.flags.writeable = False
        return found

    def here_(self) -> Meeting:
        """Record of the edge over which each agent meets a neighbour."""
        return self.whole_.here.part_(self.rows_)

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of the agents' part of a block."""
        state = self.tables_.state
        if name not in state.agent and name not in state.edge:
            raise AttributeError(
                f"me.{name} is not for a part of the agents to change: assign it for all of them, by np.where"
            )
        rows, block = self.rows_ if name in state.agent else self.edge_rows_, getattr(self.whole_, name)
        block[rows] = broadcast(name, value, (len(rows), block.shape[1]))


class Meeting:
    """Record ``me.here`` of the edge over which each agent of a batch meets a neighbour; values are read-only copies.

    It has values assigned to blocks that the batch does not hold for all edges, and the places in the batch of the
    agents that it is about, where these are a part of it.
    """

    def __init__(self, me: Batch, edges: Ranks) -> None:
        self.__dict__.update(_me=me, edges_=edges, blocks_={}, rows_=slice(None))

    def part_(self, rows: Ranks) -> Meeting:
        """Return the record for some of the agents, by their places; what is assigned there is written for them."""
        part = Meeting(self._me, self.edges_)
        part.__dict__.update(blocks_=self.blocks_, rows_=rows)
        return part

    def __getattr__(self, name: str) -> Any:
        """A block, a constant or the weight of the edge."""
        found = self._whole(name)[self.rows_]
        found.flags.writeable = False
        return found

    def _whole(self, name: str) -> Array:
        """What the whole batch has under a name."""
        me, tables = self._me, self._me.tables_
        if name in tables.state.edge:
            if name in self.blocks_:
                return self.blocks_[name]
            return me.blocks_[name][me.partner_] if name in me.blocks_ else tables.state.edge[name].taken(self.edges_)
        if name in tables.names.per_edge:
            return column(tables.names.per_edge[name][self.edges_])
        if name == "weight":
            return tables.graph.weights[self.edges_][:, None]
        raise AttributeError(f"an edge has no {name!r}; it has {', '.join(tables.state.edge)} and weight")

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of a block of the edge."""
        me, blocks = self._me, self._me.tables_.state.edge
        if name not in blocks:
            raise AttributeError(f"me.here.{name} is not for a step to change; admissible: {', '.join(blocks)}")
        edges = self.edges_[self.rows_]
        given = broadcast(f"here.{name}", value, (len(edges), blocks[name].width_of(edges)))
        if len(edges) < len(self.edges_):
            whole = np.array(self._whole(name))
            whole[self.rows_] = given
            given = whole
        if name in me.blocks_:
            me.blocks_[name][me.partner_] = given
        else:
            self.blocks_[name] = given


class Sample:
    """Rows that were drawn for each agent of a batch, of which it has the record.

    The (K,) ranks are among each agent's own rows, one agent after the other; (B + 1,) starts say where each agent's
    begin.
    """

    def __init__(self, ranks: Ranks, starts: Ranks, me: Record) -> None:
        self.ranks, self.starts, self.me = ranks, starts, me

    def of(self, me: Record) -> tuple[Ranks, Ranks]:
        """Ranks and where each agent's begin, for these agents or some of them."""
        if me is self.me:
            return self.ranks, self.starts
        (whole, drawn), (other, rows) = _places_of(self.me), _places_of(me)
        if other is not whole or not np.isin(rows, drawn).all():
            raise ValueError("these rows were drawn by another step, or not for all of these agents")
        places = np.searchsorted(drawn, rows)
        counts = np.diff(self.starts)[places]
        return self.ranks[segments(self.starts[:-1][places], counts)], table_starts(counts)


def _places_of(me: Record) -> tuple[Record, Ranks]:
    """The batch that some agents belong to, and their places in it."""
    return (me.whole_, me.rows_) if isinstance(me, BatchPart) else (me, np.arange(len(me.agents_)))


def ranks_of(me: Record, rows: Any) -> tuple[Ranks, Ranks]:
    """Ranks of rows from the first, and where each agent's begin; raises `IndexError` if an agent has no such row."""
    if isinstance(rows, Sample):
        return rows.of(me)
    given, count = np.asarray(rows), me.rows
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise IndexError(f"rows are named by a vector of integers, and not by {given.dtype} of shape {given.shape}")
    if given.size and not (-count <= given.min() and given.max() < count):
        raise IndexError(f"the agent has {count} rows, and there is none of rank {given[~_within(given, count)][0]}")
    return np.ascontiguousarray(np.where(given < 0, given + count, given), dtype=np.int64), np.array([0, len(given)])


def _within(ranks: Any, count: int) -> Any:
    return (ranks >= -count) & (ranks < count)
