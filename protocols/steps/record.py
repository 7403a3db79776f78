"""The record ``me`` of a step: of one agent, or of a batch of agents whose steps do not depend on each other.

What either has is listed in `hushnet.protocols.steps.step_names`. Of one agent, blocks are views that are written in
place. Of a batch, what a step names is gathered into arrays whose first axis is the agents or their edges, and blocks
are written back when it is over. Of blocks in float32, either has copies in float64: what a step computes is rounded
once, when it is kept or sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import override

from ...agents.blocks import real, rounded
from ...agents.suggestions import suggestion
from .kernels import gathered, known
from .step_names import ACTIONS, MESSAGE
from .step_tables import StepSource, StepTables

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
REAL = np.dtype(np.float64)
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
    """Base of the records of one agent and of a batch of (B,) agents, as operators use them."""

    tables_: StepTables
    source_: StepSource
    agents_: Ranks
    degrees_: Any
    decays_: Any
    data_: Any
    is_batch_: bool
    messages_: Mapping[str, str]
    said_: dict[str, Array]
    blocks_: dict[str, Any]

    edge_starts_: Ranks
    agent: Any
    degree: Any
    rows: Any
    now: Any

    def _unknown(self, name: str) -> str:
        """Message about a name that a step has asked for, and its record does not have."""
        if name in self.tables_.names.messages:
            return f"me.{name} is assigned as a whole, and never read"
        if name in OF_BATCHES and not self.is_batch_:
            return OF_BATCHES[name]
        if name in ACTIONS:
            return NO_ACTION.format(name)
        known = self.tables_.names.all
        return f"an agent has no {name!r}{suggestion(name, known)} it has {', '.join(known)}"

    def _unsendable(self, name: str) -> AttributeError:
        """Return the error about what is assigned to a name that is neither a block nor a message of this step."""
        names = self.tables_.names
        if name == MESSAGE or name in names.messages:
            return AttributeError(f"nothing is sent here, so there is no me.{name}")
        admissible = ", ".join(sorted(names.writable))
        return AttributeError(f"me.{name} is not for a step to change; admissible: {admissible}")

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
        return np.array(np.broadcast_to(np.asarray(values, dtype=np.float64).reshape(-1), (len(self.agents_),)))

    def counts_(self, values: Any) -> Ranks:
        """(B,) int64 of a whole number, or of one for each agent."""
        given = np.asarray(values)
        if given.dtype.kind not in "iu" and not (given.dtype.kind == "f" and (given == np.floor(given)).all()):
            raise ValueError(f"a count is a whole number, and not {values!r}")
        return np.array(np.broadcast_to(given.reshape(-1), (len(self.agents_),)), dtype=np.int64)

    def sized_(self, rows: Any, size: int | None) -> Any:
        """Return (B, k) draws in the shape that a step gets: of one agent (k,), or a number if it asked for no size."""
        return rows if self.is_batch_ else rows[0] if size is not None else rows[0, 0]

    def given_(self, rows: Array) -> Array:
        """Return (B, width) values in the shape that a step gets: of one agent (width,)."""
        return rows if self.is_batch_ else rows[0]

    def heard_(self, kind: str) -> tuple[Any, Ranks, Ranks, Array]:
        """Return received vectors as `StepSource.heard_at` does, and (B, width) values that replace missing ones."""
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
        pool, index, begins = self.source_.heard_at(kind, own.shape[1])
        return pool, index, begins, own if tables.exact else np.asarray(own, dtype=pool.dtype)

    def received_(self, kind: str) -> Array:
        """(R, width) what was heard over each edge."""
        pool, index, begins, own = self.heard_(kind)
        out = np.empty((int(self.degrees_.sum()), own.shape[1]))
        self.source_.forms[gathered](pool, index, begins, self.degrees_, own, out)
        return out

    def was_heard_(self, kind: str) -> NDArray[np.bool_]:
        """(R,) whether anything was heard over each edge."""
        _, index, begins = self.source_.heard_at(kind, 0)
        out = np.empty(int(self.degrees_.sum()), dtype=bool)
        self.source_.forms[known](index, begins, self.degrees_, out)
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
        """One of `hushnet.protocols.steps.step_names.HEARD`."""
        if what == "heard":
            return self.received_(kind)
        found = {"was_heard": self.was_heard_, "is_new": self.is_new_, "age": self.age_}[what](kind)
        return found[:, None] if self.is_batch_ else found


class One(Record):
    """One agent after the other at its step; assignment writes into its blocks in place.

    The same record serves all agents, so that little is moved between two steps: blocks are views, and all else that
    depends on the agent is found when it is named. Numbers are NumPy's: beyond their range they become infinite, where
    Python's would raise.
    """

    def __init__(self, tables: StepTables, source: StepSource) -> None:
        put, names = self.__dict__, tables.names
        put.update(tables_=tables, source_=source, is_batch_=False, found_=[], blocks_={})
        put.update(agents_=np.zeros(1, dtype=np.int64))  # of whatever agent's turn it is
        for name, value in names.parameters.items():
            put[name] = np.float64(value) if isinstance(value, float) else value
        put.update({name: fixed(array) for name, array in names.run.items()})

    def begin_(self, agent: int, messages: Mapping[str, str], updates: int, tick: int, now: float) -> None:
        """Begin a step of an agent that may send messages, by name and kind."""
        put, tables = self.__dict__, self.tables_
        if self.found_:
            for name in self.found_:
                del put[name]
            self.found_.clear()
        put.update(tables.own.get(agent) or tables.own_of(agent))
        self.agents_[0] = agent
        put["messages_"], put["said_"] = messages, {}
        put["updates"], put["tick"], put["now"] = updates, tick, now
        if not tables.exact:
            put["blocks_"] = blocks = {name: widened(view) for name, view in self.blocks_.items()}
            put.update((name, block) for name, block in blocks.items() if name not in tables.numbers)

    def close_(self, *, changed: bool = True) -> None:
        """End a step that had float64 copies of blocks in float32: round into these what it may have changed."""
        if self.tables_.exact:
            return
        own = self.tables_.own[self.agent]
        for name, kept in own["blocks_"].items() if changed else ():
            given = self.blocks_[name]
            for mine, theirs in zip(kept, given, strict=True) if isinstance(kept, list) else [(kept, given)]:
                mine[...] = rounded(theirs, mine.dtype)
        self.__dict__.update(own)

    @cached_property
    def data_(self) -> tuple[Any, Array, Ranks, Ranks]:
        """Packed rows, and whose of them are the agent's (`StepSource.rows`)."""
        return self.source_.rows(self.agents_)

    @override
    def matrix_(self, values: Any, width: int | None = None) -> Array:
        if type(values) is np.ndarray and values.dtype is REAL and values.shape == (width,) and values.flags.carray:
            return values[None]
        return super().matrix_(values, width)

    unknown_ = Record._unknown  # what is said of the AttributeError, which Python raises

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: Any) -> None:
        """Write into a block, or say what is to be sent."""
        block = self.blocks_.get(name)
        if block is not None:
            if block is not value:
                fill(name, block, value)
            return
        kind, tables = self.messages_.get(name), self.tables_
        if kind is None:
            raise self._unsendable(name)
        widths, apart = tables.sent[kind]
        width = widths[self.agent]
        if width == 0 and tables.names.is_partial(kind):
            raise ValueError(tables.names.unsent(kind))
        message = np.empty((self.degree, width) if apart else width, tables.precision)
        fill(name, message, value)
        self.said_[name] = message


def fixed(array: Any) -> Any:
    """A number, or an array that nobody writes."""
    if np.ndim(array) == 0:
        return np.float64(array)
    view = array.view()
    view.flags.writeable = False
    return view


def fill(name: str, out: Array, value: Any) -> None:
    """Write what is assigned to a field, if it is real numbers: NumPy would take None for NaN, and text for numbers.

    Raises `TypeError` if it is anything else, and `ValueError` if it does not fit.
    """
    if type(value) is not np.ndarray or value.dtype is not REAL:
        kind = (value if isinstance(value, np.ndarray) else np.asarray(value)).dtype
        if kind.kind not in "biuf":
            what = f"an array of {kind}" if isinstance(value, np.ndarray) else f"{type(value).__name__}"
            raise TypeError(f"me.{name} takes real numbers, not {what}")
    try:
        out[...] = value
    except ValueError:
        raise ValueError(f"me.{name} is {np.shape(out)} here, and was given {np.shape(value)}") from None


def widened(view: Any) -> Any:
    """A float64 copy of what an agent has in a block in float32; one of each edge where they differ in width."""
    return [real(one) for one in view] if isinstance(view, list) else real(view)


def broadcast(name: str, value: Any, shape: tuple[int, int], precision: DTypeLike = np.float64) -> Array:
    """A copy of a value in a shape, if it fits (`fill`)."""
    out = np.empty(shape, precision)
    fill(name, out, value)
    return out


def column(values: Array) -> Array:
    """Numbers as a column; rows as they are."""
    return values[:, None] if values.ndim == 1 else values


def segments(begins: Ranks, counts: Ranks) -> Ranks:
    """The places of segments that begin somewhere and have so many each, one after the other."""
    ends = np.cumsum(counts)
    return np.repeat(begins - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def loaders_of(tables: StepTables) -> dict[str, Callable[[Any], Any]]:
    """Return the loaders by which a batch finds the values that a step may name, by name."""
    names, state, graph = tables.names, tables.state, tables.graph
    found: dict[str, Callable[[Any], Any]] = {
        "degrees_": lambda me: graph.degrees.take(me.agents_),
        "decays_": lambda me: tables.decays.take(me.agents_),
        "data_": lambda me: me.source_.rows(me.agents_),
        "edges_": lambda me: segments(graph.offsets[me.agents_], me.degrees_),
        "edge_starts_": lambda me: np.concatenate([[0], np.cumsum(me.degrees_)]),
        "partner_": lambda me: me.edge_starts_[:-1] + me.passing_["edge"] - graph.offsets[me.agents_],
        "here": lambda me: me.here_(),
        "updates": lambda me: me.passing_["updates"][:, None],
        "tick": lambda me: me.passing_["tick"][:, None],
        "round": lambda me: me.passing_["updates"][:, None] + 1,
        "now": lambda me: me.passing_["now"][:, None],
        "degree": lambda me: me.degrees_[:, None],
        "rows": lambda me: tables.counts[me.agents_][:, None],
        "regularisation": lambda me: tables.task.regularisation[me.agents_][:, None],
        "neighbours": lambda me: graph.heads[me.edges_][:, None],
        "weights": lambda me: graph.weights[me.edges_][:, None],
        "is_open": lambda me: tables.open_edges(me.agents_, me.passing_["tick"], me.passing_["now"])[:, None],
        "agent": lambda me: me.agents_[:, None],
        "role": lambda me: names.roles[me.agents_][:, None],
    }
    if "step" in tables.protocol.step_functions:
        del found["here"], found["partner_"]
    given = {name: np.float64(one) if isinstance(one, float) else one for name, one in names.parameters.items()}
    given |= {name: fixed(array) for name, array in names.run.items()}
    found |= {name: (lambda _, it=one: it) for name, one in given.items()}
    found |= {name: (lambda me, of=one: column(of.take(me.agents_, 0))) for name, one in names.per_agent.items()}
    found |= {name: (lambda me, of=one: column(of.take(me.edges_, 0))) for name, one in names.per_edge.items()}
    found |= {name: (lambda me, one=one: me.of_heard_(*one)) for name, one in names.heard.items()}
    found |= {name: (lambda me, of=name: me.block_(of)) for name in state.agent}
    found |= {name: (lambda me, of=name: me.edge_block_(of)) for name in state.edge}
    return found


def _found(name: str, load: Callable[[One], Any], me: One) -> Any:
    """What a step names for the first time, and is to be forgotten when the next one begins."""
    found = load(me)
    me.found_.append(name)
    return found


def records_of(tables: StepTables, *kinds: type[One]) -> dict[type, type]:
    """Return classes of records of one agent which have, beside its vectors, all that a step may name."""
    names, graph = tables.names, tables.graph
    found: dict[str, Callable[[One], Any]] = {
        "round": lambda me: me.updates + 1,
        "rows": lambda me: int(tables.counts[me.agent]),
        "regularisation": lambda me: np.float64(tables.task.regularisation[me.agent]),
        "weights": lambda me: fixed(graph.weights[graph.edges_of(me.agent)]),
        "role": lambda me: str(names.roles[me.agent]),
        "is_open": lambda me: fixed(tables.open_edges(np.array([me.agent]), np.array([me.tick]), np.array([me.now]))),
        "data": lambda me: me.source_.shard(me.agent),
        "features": lambda me: me.source_.shard(me.agent).read_only.features,
        "labels": lambda me: me.source_.shard(me.agent).read_only.labels,
    }
    found |= {name: (lambda me, of=one: fixed(of[me.agent])) for name, one in names.per_agent.items()}
    found |= {name: (lambda me, of=one: fixed(of[graph.edges_of(me.agent)])) for name, one in names.per_edge.items()}
    found |= {name: (lambda me, one=one: fixed(me.of_heard_(*one))) for name, one in names.heard.items()}
    numbers = {name: property(lambda me, of=name: me.blocks_[of][0]) for name in tables.numbers}
    named = {name: cached_property(partial(_found, name, load)) for name, load in found.items()} | numbers
    return {kind: type(kind.__name__, (kind,), named) for kind in (One, *kinds)}
