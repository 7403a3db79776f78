"""The tables of a run: of deliveries and clocks, as one argument of compiled functions.

Things of one kind are records of a structured array, and ``versions.tick[row]`` is a field of one of them. A function
that takes the tables must not allocate: it is compiled with ``_nrt=False``, without which numba would count references
to each array at every access.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import Block
from ...agents.graph import Graph
from ...agents.inbox import Inbox
from ...protocols.base import Layout
from ..network.clocks import RECORDED
from ..network.distributions import CompiledDistributions
from ..network.network import Network
from ..network.setting import Stop
from . import tallies
from .effects import NOTE_COLUMNS

(
    DELAY_CODE,
    DELAY_FIRST,
    DELAY_SECOND,
    LOSS_CHANCE,
    MEAN_GOOD,
    MEAN_BAD,
    LOSS_GOOD,
    LOSS_BAD,
    BANDWIDTH,
    UPLINK,
    DOWNLINK,
    CHANGING,
    MOST_ACTIVATIONS,
    MOST_VECTORS,
    MOST_UPDATES,
    EVENTS_BEFORE_POLL,
    PLANNED,
    CLOCK_CODE,
    JITTER,
    RANDOM_PHASE,
    RECORD_EVERY,
    FIRST_NOTED,
    LAST_NOTED_AT,
    LOST_DELAY,
    CONSTANTS,
) = range(25)
"""Places in `RunTables.constants`: code and two parameters of the delay; loss probability, or the mean durations and
loss probabilities of a link's states (0 if it has none); bytes per time unit (or infinite) of links, and of each
agent's uplink and downlink; whether the graph changes; limits of activations, vectors (infinite: none) and an agent's
updates (-1: none); events up to which windows may go on before somebody looks at the run's limits; whether steps are
planned, so that rows that nothing refers to are kept until those that read them are made, and vectors are not copied
into the inbox; the clocks' code and jitter, and whether their first phase is random; activations between two records
(0: none); first and last time of steps, and of copies under way, that are noted; the delay that was drawn for the last
copy that was lost."""

_WHOLE, _REAL, _BOOL = np.int64, np.float64, np.bool_
VERSION = np.dtype(
    [
        ("sent_at", _REAL),
        ("order", _WHOLE),
        ("tick", _WHOLE),
        ("bytes", _WHOLE),
        ("references", _WHOLE),
        ("free", _WHOLE),
    ]
)
"""A message that was sent: when, its order of sending, its sender's tick, its bytes, and by how many it is referred to.
``free`` is apart from the others: the k-th is the k-th row that nobody refers to, as many as are free."""
COPY = np.dtype(
    [("arrival", _REAL), ("version", _WHOLE), ("following", _WHOLE), ("rank", _WHOLE), ("free", _WHOLE)],
)
"""A copy under way: when it arrives, its version (-1 - version until its turn on a shared downlink is known, and it
arrives there), the copy to its slot that was sent before it (-1: none), and its
order of sending; ``free`` as of versions."""
SLOT = np.dtype(
    [
        ("known", _WHOLE),
        ("first_node", _WHOLE),
        ("heard_sent_at", _REAL),
        ("heard_order", _WHOLE),
        ("heard_tick", _WHOLE),
    ]
)
"""What is known of a kind over a directed edge: the version (-1: none), the newest copy under way (-1: none), and what
the inbox says of the version."""
AGENT = np.dtype(
    [
        ("ticks", _WHOLE),
        ("updates", _WHOLE),
        ("charged", _WHOLE),
        ("paid", _WHOLE),
        ("joins", _REAL),
        ("leaves", _REAL),
        ("gone_from", _REAL),
        ("interval", _REAL),
        ("uplink_free", _REAL),
        ("downlink_free", _REAL),
        ("numbers", np.uint64),
        ("was_up", _BOOL),
        ("silent", _BOOL),
        ("alone", _BOOL),
        ("watched", _BOOL),
    ],
    align=True,
)
"""An agent: its last tick, completed steps and charged messages; the last version without noise that it was charged for
(-1: none); when it joins and leaves, and from when on it is down for good; its clock's mean interval; from when on its
uplink and downlink are free; its stable number; whether it was up before the first of its changes, takes no further
step, has a process of its own for the end of its clock, and is one whose steps and copies are noted."""
DUE = np.dtype([("time", _REAL), ("rank", _WHOLE), ("load", _WHOLE)])
"""Something to come (`hushnet.simulator.rules.heap`): when, its rank then (of a wake-up, the agent), and what."""
LINK = np.dtype([("period", _WHOLE), ("good", _WHOLE), ("until", _REAL)])
"""The state of a link that is good and bad in turn: its period (0: not begun), whether it is good, and until when."""
COMPUTING = np.dtype(
    [("begun", _WHOLE), ("order", _WHOLE), ("since", _REAL), ("until", _REAL), ("spent", _REAL)],
)
"""An agent's steps that take time: how many have begun; messages of the run before the last one, its begin and its end;
and the time that those before it took."""
NOTHING_HEARD = np.array([(-1, -1, -np.inf, -1, -2)], dtype=SLOT)


class RunTables(NamedTuple):
    """All tables of deliveries and clocks; structured ones are `numpy.recarray`.

    Attributes
    ----------
    counts : (COUNTERS,) int64
    constants : (CONSTANTS,) float64
    key : (2,) uint64
    offsets, heads, reverse
        The graph.
    link_delays : (E,) float64
        Delays per link, or empty.
    links : (E,) LINK
        Or empty.
    pool : (R, width) float64
        Vectors of the versions.
    versions : (R,) VERSION
    nodes : (N,) COPY
    slots : (kinds E,) SLOT
        That of kind k on edge e is k E + e.
    agents : (n,) AGENT
    wakes : (n + 1,) DUE
    awaited : (S + 1,) int64
        Room for the slots of an agent for which copies are under way; S is the most slots that an agent has.
    receivers : (D,) uint64
        Room for the stable numbers of those who are sent a message; D is the largest degree.
    copy_draws : (3, D) float64
        Room for the uniforms of its copies, see `hushnet.simulator.rules.delivery.draw_copies`.
    values, places
        The vectors of the inbox, and where that of each slot is; both are empty while nobody reads copies.
    changes : (n, C) float64
        Times at which an agent comes up or goes down in turn; infinite from the last one on.
    recorded, recorded_offsets
        Recorded times of the clocks.
    latest : (kinds n,) int64
        Last version of a kind that each agent has sent to all (-1: none), kind after kind.
    note_times : (L, 2) float64
    notes : (L, NOTE_COLUMNS) int64
        See `hushnet.simulator.tables.effects`.
    opened : (E,) bool
        Over which directed edges messages go, at present where the graph changes; empty where over all.
    withheld : (kinds n,) bool
        By kind, agents whose last message nobody was sent, because all edges were closed.
    computing : (n,) COMPUTING
        Empty, as the following ones, where no step takes time.
    step_times, step_offsets
        Times of each agent's successive steps, repeated after the last one.
    held : (kinds E,) int64
        By slot, the version that was known when the step began that its agent is computing (-1: none).
    """

    counts: Any
    constants: Any
    key: Any
    offsets: Any
    heads: Any
    reverse: Any
    link_delays: Any
    links: Any
    pool: Any
    versions: Any
    nodes: Any
    slots: Any
    agents: Any
    wakes: Any
    awaited: Any
    receivers: Any
    copy_draws: Any
    values: Any
    places: Any
    changes: Any
    recorded: Any
    recorded_offsets: Any
    latest: Any
    note_times: Any
    notes: Any
    opened: Any
    withheld: Any
    computing: Any
    step_times: Any
    step_offsets: Any
    held: Any


LINE = 64
"""Bytes that a processor fetches together."""


def zeros(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Zeros that begin where a line of memory does: rows of a few numbers then lie in as few lines as they can."""
    dtype = np.dtype(dtype)
    size = math.prod(np.atleast_1d(shape).tolist()) * dtype.itemsize
    block = np.zeros(size + LINE, dtype=np.uint8)
    first = -block.ctypes.data % LINE
    made = block[first : first + size].view(dtype).reshape(shape)
    return made if dtype.names is None else made.view(np.recarray)


def extended(array: NDArray[Any], more: int) -> NDArray[Any]:
    """An array with room for so many more entries."""
    made = zeros((len(array) + more, *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made


class TableInbox(Inbox):
    """Inboxes whose arrays are slices of one array for all kinds, in the order of the slots.

    Vectors are in the tables, once for all who have heard them. Copies of them, one for every slot, are only made where
    somebody reads them: steps in Python, observers, tests.

    Attributes
    ----------
    refresh : callable or None
        Brings the vectors up to date when somebody asks for them.
    """

    def __init__(self, graph: Graph, layout: Layout) -> None:
        self.refresh: Callable[[], None] | None = None
        super().__init__(graph, {kind: spec.width for kind, spec in layout.messages.items()})
        edges, kinds = len(graph.heads), list(layout.messages)
        self.slots = zeros(edges * len(kinds), SLOT)
        self.slots[:] = NOTHING_HEARD
        for rank, kind in enumerate(kinds):
            own = self.slots[rank * edges : (rank + 1) * edges]
            self.sent_at[kind], self.order[kind] = own["heard_sent_at"], own["heard_order"]
            self.tick[kind] = own["heard_tick"]

    @property
    def values(self) -> dict[str, Block]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Per kind, the newest vector of every slot; zeros until something was heard."""
        if self.refresh is not None:
            self.refresh()
        return self._copies[0]

    @property
    def flat_values(self) -> NDArray[np.float64]:
        """The vectors of all slots, one after the other."""
        return self._copies[1]

    @property
    def places(self) -> NDArray[np.int64]:
        """(slots + 1,) where the vector of each slot begins, and where the last one ends."""
        return self._copies[2]

    @cached_property
    def _copies(self) -> tuple[dict[str, Block], NDArray[np.float64], NDArray[np.int64]]:
        blocks = {kind: Block(self._edges, width) for kind, width in self._widths.items()}
        starts = np.cumsum([0, *(len(block.values) for block in blocks.values())])
        values = np.zeros(int(starts[-1]))
        for block, start, end in zip(blocks.values(), starts[:-1], starts[1:], strict=True):
            block.values = values[start:end]
        parts = [block.offsets[:-1] + start for block, start in zip(blocks.values(), starts[:-1], strict=True)]
        return blocks, values, np.concatenate([*parts, starts[-1:]]).astype(np.int64)


def make_run_tables(
    graph: Graph,
    layout: Layout,
    inbox: TableInbox,
    network: Network,
    forms: CompiledDistributions | None,
    changing: bool,
) -> RunTables:
    """The tables of a run, of agents that have sent and heard nothing yet.

    Parameters
    ----------
    graph, layout, inbox, network
    forms : CompiledDistributions or None
        Of the network; none where every delay and loss is asked of it.
    changing : bool
        Whether the graph changes.
    """
    agents, edges, kinds = graph.agents, len(graph.heads), len(layout.messages)
    widths = [int(np.max(spec.width, initial=1)) for spec in layout.messages.values()]
    degree = int(np.max(np.diff(graph.offsets), initial=0))
    most, rows, nodes, width = degree * kinds, 4 * agents + 64, edges + 64, max(widths, default=1)
    given, constants = network.parameters, np.zeros(CONSTANTS)
    rates = given.bandwidth, given.uplink, given.downlink
    constants[[BANDWIDTH, UPLINK, DOWNLINK]] = [rate or math.inf for rate in rates]
    constants[CHANGING] = changing
    if forms is not None:
        constants[[DELAY_CODE, DELAY_FIRST, DELAY_SECOND]] = forms.distribution
        constants[[MEAN_GOOD, MEAN_BAD, LOSS_GOOD, LOSS_BAD, LOSS_CHANCE]] = *forms.bursts, forms.chance
    constants[MOST_UPDATES] = -1.0
    constants[[MOST_ACTIVATIONS, MOST_VECTORS]] = math.inf
    fixed = network.link_delays(graph.tails, graph.heads)
    run = RunTables(
        counts=np.zeros(tallies.COUNTERS, dtype=np.int64),
        constants=constants,
        key=np.array(network.draws.key, dtype=np.uint64),
        offsets=graph.offsets,
        heads=graph.heads,
        reverse=graph.reverse,
        link_delays=np.empty(0) if fixed is None else fixed,
        links=zeros(edges if constants[MEAN_BAD] > 0 else 0, LINK),
        pool=zeros((rows, width), np.float64),
        versions=zeros(rows, VERSION),
        nodes=zeros(nodes, COPY),
        slots=inbox.slots,
        agents=zeros(agents, AGENT),
        wakes=zeros(agents + 1, DUE),
        awaited=np.zeros(most + 1, dtype=np.int64),
        receivers=np.zeros(degree, dtype=np.uint64),
        copy_draws=np.zeros((3, degree)),
        values=np.empty(0),
        places=np.empty(0, dtype=np.int64),
        changes=np.empty((agents, 0)),
        recorded=np.empty(0),
        recorded_offsets=np.empty(0, dtype=np.int64),
        latest=np.full(agents * max(1, kinds), -1),
        note_times=np.zeros((0, 2)),
        notes=np.zeros((0, NOTE_COLUMNS), dtype=np.int64),
        opened=graph.opened.copy() if graph.directed or changing else np.empty(0, dtype=np.bool_),
        withheld=np.zeros(agents * kinds, dtype=np.bool_),
        computing=zeros(0, COMPUTING),
        step_times=np.empty(0),
        step_offsets=np.empty(0, dtype=np.int64),
        held=np.empty(0, dtype=np.int64),
    )
    run.versions.free[:], run.nodes.free[:] = np.arange(rows), np.arange(nodes)
    run.wakes.time[:] = math.inf
    own = run.agents
    own.ticks[:] = own.paid[:] = -1
    own.leaves[:] = own.gone_from[:] = math.inf
    own.was_up[:], own.interval[:], own.numbers[:] = True, 1.0, network.numbers
    run.counts[tallies.FREE_ROWS], run.counts[tallies.FREE_NODES] = rows, nodes
    return run


def with_limits(
    run: RunTables, stop: Stop, forms: CompiledDistributions | None, *, record: int, compiled: bool
) -> RunTables:
    """The tables of a run with its clocks, limits and record instants, which compiled windows have to know."""
    run.constants[PLANNED] = float(compiled)
    run.constants[MOST_ACTIVATIONS] = math.inf if stop.activations is None else stop.activations
    run.constants[MOST_VECTORS] = math.inf if stop.vectors is None else stop.vectors
    run.constants[MOST_UPDATES] = -1.0 if stop.updates is None else stop.updates
    run.constants[RECORD_EVERY] = record
    if forms is None:
        return run
    clock = forms.clock
    run.constants[[CLOCK_CODE, JITTER, RANDOM_PHASE]] = clock.code, clock.jitter, clock.random_phase
    run.agents.interval[:] = clock.means
    if clock.code == RECORDED:
        times, offsets = _in_a_row(clock.times)
        return run._replace(recorded=times, recorded_offsets=offsets)
    return run


def with_step_times(run: RunTables, times: Sequence[Sequence[float]], *, holds: bool) -> RunTables:
    """The tables of a run whose steps take these times, by agent; each may hold what its agent knew at its begin."""
    own, (flat, offsets) = zeros(len(times), COMPUTING), _in_a_row(times)
    held = np.full(len(run.slots) if holds else 0, -1)
    return run._replace(computing=own, step_times=flat, step_offsets=offsets, held=held)


def _in_a_row(times: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The times of all agents, one agent's after the other's, and where each begins."""
    rows = [np.array(own, dtype=np.float64) for own in times]
    return np.concatenate(rows), np.cumsum([0, *map(len, rows)]).astype(np.int64)


def with_copies(run: RunTables, inbox: TableInbox) -> RunTables:
    """The tables of a run that can copy vectors into the inbox."""
    return run._replace(values=inbox.flat_values, places=inbox.places)


def with_capacity(run: RunTables, rows: int, nodes: int) -> RunTables:
    """Tables into which so many more versions and copies under way fit."""
    counts = run.counts
    if counts[tallies.FREE_ROWS] < rows:
        old = len(run.pool)
        more = max(rows, old // 2)
        run = run._replace(pool=extended(run.pool, more), versions=extended(run.versions, more))
        _add_free(run.versions.free, int(counts[tallies.FREE_ROWS]), old)
        counts[tallies.FREE_ROWS] += more
    if counts[tallies.FREE_NODES] < nodes:
        old = len(run.nodes)
        more = max(nodes, old)
        run = run._replace(nodes=extended(run.nodes, more))
        _add_free(run.nodes.free, int(counts[tallies.FREE_NODES]), old)
        counts[tallies.FREE_NODES] += more
    return run


def _add_free(free: Any, count: int, old: int) -> None:
    """Add the records from ``old`` on to the free ones, of which there were so many."""
    free[count : count + len(free) - old] = np.arange(old, len(free))


@final
class PlainTables:
    """Views of tables for rules in plain Python, made anew for arrays that were replaced.

    Elements of NumPy's arrays are NumPy's numbers, with which Python computes several times slower than with its own.
    A rule takes an element of a table of several columns as ``table[row][column]``.
    """

    def __init__(self) -> None:
        self._seen: Any = None
        self._views: Any = None

    def __call__(self, tables: Any) -> Any:
        """The same tables, a named tuple of arrays, as views of the same memory."""
        if self._seen is not tables:
            old = zip(tables, self._seen, self._views, strict=True) if self._seen is not None else ()
            views = [view if array is seen else _view(array) for array, seen, view in old]
            self._views = tables._make(views or map(_view, tables))
            self._seen = tables
        return self._views


def _view(array: NDArray[Any]) -> memoryview | TableRows | Fields:
    if array.dtype.names is not None:
        return Fields(array)
    return array.data if array.ndim == 1 else TableRows(array)


@final
class Fields:
    """The fields of a table of records, as attributes."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._length = len(array)
        for name in array.dtype.names or ():
            setattr(self, name, np.asarray(array[name]).data)

    def __len__(self) -> int:
        """Count the records of the table."""
        return self._length


@final
class TableRows(dict[int, memoryview]):
    """The rows of a table; the view of one is made when it is first asked for."""

    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__()
        self._array = array

    def __missing__(self, row: int) -> memoryview:
        """The view of a row that nobody has asked for yet."""
        made = self[row] = self._array[row].data
        return made

    def __len__(self) -> int:
        """Count the rows of the table."""
        return len(self._array)
