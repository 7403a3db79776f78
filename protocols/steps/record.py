"""The record ``me`` of a step: of one agent, or of a batch of agents whose steps do not depend on each other.

What either has is listed in `hushnet.protocols.steps.names`. Of one agent, blocks are views that are written in place.
Of a batch, what a step names is gathered into arrays whose first axis is the agents or their edges, and blocks are
written back when it is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.suggestions import suggestion
from .heard_kernels import gathered, known
from .names import ACTIONS, MESSAGE
from .sources import StepSource
from .tables import StepTables

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
OF_BATCHES = {
    "where": "me.where is of batched steps; of one agent, write if",
    "here": "me.here is of batched steps; of one agent, blocks of the edge are me.BLOCK[partner]",
}
"""What records of one agent do not have, and what stands in its place."""
NO_ACTION = (
    "me.{} is of starts, of reactions, and of steps of single agents whose protocol decides; other steps assign "
    "me.message, and return true if they were an agent's last (or set decides = True)"
)


class Record:
    """What records of one agent and of a batch have in common, for operators.

    Attributes
    ----------
    tables_ : StepTables
    source_ : StepSource
    agents_ : (B,) int64
    """

    tables_: StepTables
    source_: StepSource
    agents_: Ranks
    degrees_: Ranks
    decays_: Array
    data_: tuple[Any, Array, Ranks, Ranks]
    is_batch_: bool
    messages_: Mapping[str, str]
    said_: dict[str, Array]
    blocks_: dict[str, Any]

    edge_starts_: Ranks
    agent: Any
    degree: Any
    rows: Any
    now: Any

    def _unknown(self, name: str) -> AttributeError:
        if name in self.tables_.names.messages:
            return AttributeError(f"me.{name} is assigned as a whole, and never read")
        if name in OF_BATCHES and not self.is_batch_:
            return AttributeError(OF_BATCHES[name])
        if name in ACTIONS:
            return AttributeError(NO_ACTION.format(name))
        known = self.tables_.names.all
        return AttributeError(f"an agent has no {name!r}{suggestion(name, known)} it has {', '.join(known)}")

    def _fixed_name(self, name: str) -> AttributeError:
        names = ", ".join(sorted(self.tables_.names.writable))
        return AttributeError(f"me.{name} is not for a step to change; admissible: {names}")

    def matrix_(self, values: Any, width: int | None = None) -> Array:
        """(B, width) float64, contiguous, of what a step has of its agents."""
        rows = np.asarray(values, dtype=np.float64)
        if not rows.flags.carray:  # contiguous and not read-only
            rows = np.array(rows, order="C")
        if not self.is_batch_:
            rows = rows[None] if rows.ndim == 1 else rows.reshape(1, -1)
        if rows.shape != (len(self.agents_), width or rows.shape[-1]):
            wanted = f"({len(self.agents_)}, {width or 'k'})" if self.is_batch_ else f"({width or 'k'},)"
            raise ValueError(f"the shape {np.shape(values)} is not {wanted}")
        return rows

    def column_(self, values: Any) -> Array:
        """(B,) float64 of a number, or of a number for each agent."""
        return np.broadcast_to(np.asarray(values, dtype=np.float64).reshape(-1), (len(self.agents_),))

    def counts_(self, values: Any) -> Ranks:
        """(B,) int64 of a whole number, or of one for each agent."""
        given = np.asarray(values)
        if given.dtype.kind not in "iu" and not (given.dtype.kind == "f" and (given == np.floor(given)).all()):
            raise ValueError(f"a count is a whole number, and not {values!r}")
        return np.ascontiguousarray(np.broadcast_to(given.reshape(-1), (len(self.agents_),)), dtype=np.int64)

    def sized_(self, rows: Any, size: int | None) -> Any:
        """What a step is given of (B, k) values, k = 1 of which stand for one number where no size was asked for."""
        return rows if self.is_batch_ else rows[0] if size is not None else rows[0, 0]

    def given_(self, rows: Array) -> Array:
        """What a step is given of (B, width) values."""
        return rows if self.is_batch_ else rows[0]

    def _sent_kind(self, name: str) -> str:
        kind = self.messages_.get(name)
        if kind is None:
            raise AttributeError(f"nothing is sent here, so there is no me.{name}")
        return kind

    def heard_(self, kind: str) -> tuple[Any, Ranks, Ranks, Ranks, Array]:
        """What a `StepSource` has of what was heard, and (B, width) what stands for the rest."""
        tables = self.tables_
        if kind not in tables.names.heard_kinds:
            raise ValueError("nothing is heard here but what an exchange hands over")
        mirror = tables.mirrors[kind]
        if mirror is not None:
            own = self.matrix_(getattr(self, mirror)) if self.is_batch_ else self.blocks_[mirror][None]
        else:
            widths = tables.names.heard_widths[kind]
            width = int(widths[self.agents_[0]] if len(self.agents_) else widths.max(initial=0))
            own = np.zeros((len(self.agents_), width))
        return *self.source_.heard_at(kind, own.shape[1]), own

    def received_(self, kind: str) -> Array:
        """(R, width) what was heard over each edge."""
        pool, index, begins, counts, own = self.heard_(kind)
        out = np.empty((int(counts.sum()), own.shape[1]))
        self.source_.run_kernel(gathered, pool, index, begins, counts, own, out)
        return out

    def was_heard_(self, kind: str) -> NDArray[np.bool_]:
        """(R,) whether anything was heard over each edge."""
        _, index, begins, counts = self.source_.heard_at(kind, 0)
        out = np.empty(int(counts.sum()), dtype=bool)
        self.source_.run_kernel(known, index, begins, counts, out)
        return out

    def is_new_(self, kind: str) -> NDArray[np.bool_]:
        """(R,) whether what was heard over each edge was not at the agent's last step."""
        if not self.tables_.protocol.asks_what_is_new:
            raise AttributeError("me.is_new is there for protocols that say asks_what_is_new = True")
        return self.source_.is_new(kind)

    def age_(self, kind: str) -> Array:
        """(R,) time since what was heard over each edge was sent; infinite where nothing was."""
        return np.repeat(np.reshape(self.now, -1), self.degrees_) - self.source_.sent_at(kind)

    def of_heard_(self, what: str, kind: str) -> Any:
        """One of `hushnet.protocols.steps.names.HEARD`."""
        if what == "heard":
            return self.received_(kind)
        found = {"was_heard": self.was_heard_, "is_new": self.is_new_, "age": self.age_}[what](kind)
        return found[:, None] if self.is_batch_ else found


class One(Record):
    """One agent after the other at its step; assignment writes into its blocks in place.

    The same record serves all agents, so that little is moved between two steps: blocks are views, and all else that
    depends on the agent is found when it is named. Numbers are NumPy's: beyond their range they become infinite, where
    Python's would raise.

    Parameters
    ----------
    tables : StepTables
    source : StepSource
    """

    def __init__(self, tables: StepTables, source: StepSource) -> None:
        put, names = self.__dict__, tables.names
        put.update(tables_=tables, source_=source, is_batch_=False, found_=[])
        for name, value in names.parameters.items():
            put[name] = np.float64(value) if isinstance(value, float) else value
        put.update({name: fixed(array) for name, array in names.run.items()})

    def begin_(self, agent: int, messages: Mapping[str, str], updates: int, tick: int, now: float) -> None:
        """Begin a step of an agent that may send messages, by name and kind."""
        put, tables = self.__dict__, self.tables_
        for name in self.found_:
            del put[name]
        self.found_.clear()
        put["agent"], put["agents_"] = agent, tables.ranks[agent : agent + 1]
        put["blocks_"] = blocks = {name: views[agent] for name, views in tables.views.items()}
        for name in tables.vectors:
            put[name] = blocks[name]
        put["messages_"], put["said_"] = messages, {}
        put["updates"], put["tick"], put["now"] = updates, tick, now

    def __getattr__(self, name: str) -> Any:
        """A block of one number, or whatever a step names for the first time."""
        block = self.blocks_.get(name)
        if block is not None:
            return block[0] if name in self.tables_.state.agent else block
        load = self.tables_.loaders_of_one.get(name)
        if load is None:
            raise self._unknown(name)
        found = self.__dict__[name] = load(self)
        self.found_.append(name)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Write into a block, or say what is to be sent."""
        block = self.blocks_.get(name)
        if block is not None:
            if block is not value:
                fill(name, block, value)
        elif name == MESSAGE or name in self.tables_.names.messages:
            self.said_[name] = self._copied(name, value)
        else:
            raise self._fixed_name(name)

    def _copied(self, name: str, value: Any) -> Array:
        """A copy of what is assigned to a message."""
        kind, names = self._sent_kind(name), self.tables_.names
        width = self.tables_.widths[kind][self.agent]
        if width == 0 and names.is_partial(kind):
            raise ValueError(names.unsent(kind))
        message = np.empty((self.degree, width) if names.layout.messages[kind].addressed else width)
        fill(name, message, value)
        return message


def fixed(array: Any) -> Any:
    """A number, or an array that nobody writes."""
    if np.ndim(array) == 0:
        return np.float64(array)
    view = array.view()
    view.flags.writeable = False
    return view


class Batch(Record):
    """Agents that make one step each at once: (B, ...) of agents, (R, ...) of their edges in order.

    Blocks that a step names are copies, which are written back when it is over; all else is read-only.

    Parameters
    ----------
    tables : StepTables
    source : StepSource
    agents : (B,) int64
        Whose blocks have equal widths.
    messages : mapping of str to str
        What may be sent, by name and kind.
    passing : mapping of str to (B,) array
        ``updates``, ``tick`` and ``now``; in an exchange, the ``edge`` over which each agent meets a neighbour.
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
            raise self._unknown(name)
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
        """What each agent has of the edge over which it meets a neighbour."""
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
        elif name == MESSAGE or name in self.tables_.names.messages:
            self.said_[name] = self._copied(name, value)
        else:
            raise self._fixed_name(name)

    def _copied(self, name: str, value: Any) -> Array:
        kind, names = self._sent_kind(name), self.tables_.names
        width = int(names.sent_widths[kind][self.agents_[0]])
        if width == 0 and names.is_partial(kind):
            raise ValueError(names.unsent(kind))
        addressed = names.layout.messages[kind].addressed
        return broadcast(name, value, (int(self.degrees_.sum()) if addressed else len(self.agents_), width))

    def _unknown(self, name: str) -> AttributeError:
        if name in ("features", "labels", "data"):
            return AttributeError(
                f"a batch has no {name!r}, for agents have different numbers of rows; operators read them, and so do "
                "steps of single agents"
            )
        return super()._unknown(name)

    def where(self, mask: Any) -> BatchPart:
        """The same record for some of the agents: what is assigned there is written for them alone.

        Parameters
        ----------
        mask : (B, 1) bool
        """
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

    Parameters
    ----------
    whole : Batch
    rows : (B',) int64
        Places of the agents in the batch, ascending.
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

    def here_(self) -> Any:
        """What each agent has of the edge over which it meets a neighbour."""
        return MeetingPart(self.whole_.here, self.rows_)

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
    """What each agent of a batch has of the edge over which it meets a neighbour: ``me.here``; copies, to be read.

    Parameters
    ----------
    me : Batch
    edges : (B,) int64
        Directed edges.

    Attributes
    ----------
    blocks_ : dict of str to (B, width) array
        What was assigned to blocks that the batch does not have of all edges.
    """

    def __init__(self, me: Batch, edges: Ranks) -> None:
        self.__dict__.update(_me=me, edges_=edges, blocks_={})

    def __getattr__(self, name: str) -> Any:
        """A block, a constant or the weight of the edge."""
        me, tables = self._me, self._me.tables_
        if name in tables.state.edge:
            if name in self.blocks_:
                found = self.blocks_[name].view()
            elif name in me.blocks_:
                found = me.blocks_[name][me.partner_]
            else:
                found = tables.state.edge[name].taken(self.edges_)
            found.flags.writeable = False
            return found
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
        given = broadcast(f"here.{name}", value, (len(self.edges_), blocks[name].width_of(self.edges_)))
        if name in me.blocks_:
            me.blocks_[name][me.partner_] = given
        else:
            self.blocks_[name] = given


class MeetingPart:
    """`Meeting` of some of the agents.

    Parameters
    ----------
    whole : Meeting
    rows : (B',) int64
        Places of the agents in the batch.
    """

    def __init__(self, whole: Meeting, rows: Ranks) -> None:
        self.__dict__.update(_whole=whole, _rows=rows)

    def __getattr__(self, name: str) -> Any:
        """The agents' part of a block, of a constant or of the weight of the edge."""
        found = getattr(self._whole, name)[self._rows]
        found.flags.writeable = False
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value in the place of the agents' part of a block of the edge."""
        changed = np.array(getattr(self._whole, name))
        changed[self._rows] = broadcast(f"here.{name}", value, (len(self._rows), changed.shape[1]))
        setattr(self._whole, name, changed)


def fill(name: str, out: Array, value: Any) -> None:
    """Write what is assigned to a field, if it is real numbers: NumPy would take None for NaN, and text for numbers.

    Raises
    ------
    TypeError
        If it is anything else.
    ValueError
        If it does not fit.
    """
    kind = (value if isinstance(value, np.ndarray) else np.asarray(value)).dtype
    if kind.kind not in "biuf":
        what = f"an array of {kind}" if isinstance(value, np.ndarray) else f"{type(value).__name__}"
        raise TypeError(f"me.{name} takes real numbers, not {what}")
    try:
        out[:] = value
    except ValueError:
        raise ValueError(f"me.{name} is {np.shape(out)} here, and was given {np.shape(value)}") from None


def broadcast(name: str, value: Any, shape: tuple[int, int]) -> Array:
    """A copy of a value in a shape, if it fits (`fill`)."""
    out = np.empty(shape)
    fill(name, out, value)
    return out


def column(values: Array) -> Array:
    """Numbers as a column; rows as they are."""
    return values[:, None] if values.ndim == 1 else values


def segments(begins: Ranks, counts: Ranks) -> Ranks:
    """The places of segments that begin somewhere and have so many each, one after the other."""
    ends = np.cumsum(counts)
    return np.repeat(begins - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)
