"""The tables of a run: of deliveries and clocks, as one argument of compiled functions.

Things of one kind are records of a structured array, and ``versions.tick[row]`` is a field of one of them. A function
that takes the tables must not allocate: it is compiled with ``_nrt=False``, without which numba would count references
to each array at every access.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

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
planned, so that rows that nothing refers to are kept until those that read them are made; the clocks' code and jitter,
and whether their first phase is random; activations between two records (0: none); first and last time of steps, and of
copies under way, that are noted; the delay that was drawn for the last copy that was lost."""

_WHOLE, _HALF, _SHORT, _REAL, _BOOL = np.int64, np.int32, np.int16, np.float64, np.bool_
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
NOTE = np.dtype(
    [
        ("time", _REAL),
        ("delay", _REAL),
        ("arrived", _REAL),
        ("order", _WHOLE),
        ("bytes", _WHOLE),
        ("tick", _HALF),
        ("place", _HALF),
        ("kind", _HALF),
        ("row", _HALF),
        ("following", _HALF),
        ("what", _SHORT),
        ("fate", _SHORT),
    ]
)
"""What is noted (`hushnet.simulator.tables.effects`). Of a copy: when it is sent, its delay, even if it is lost, and
when it arrived (infinite: not yet); its order of sending, its sender's tick and its bytes; the receiver's directed edge
to the sender; its kind by number, beyond all kinds of the protocol for a copy without numbers, and -1 - number for an
acknowledgement of that kind; its version (-1: no numbers); the copy under way that was noted on its edge after it (-1:
none); and its fate. Of a step: whose it is in place of an edge, its tick, and the order of the last message before it;
if it took time, its delay is how long ago it began, and its bytes the order of the last message before that. Of an
arrival that is told of: when it was, order and edge of its copy, and its fate."""
NOTED = np.dtype([("first", _WHOLE), ("last", _WHOLE)])
"""Notes of the first and the last copy under way over a directed edge (-1: none)."""
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
    changes : (n, C) float64
        Times at which an agent comes up or goes down in turn; infinite from the last one on.
    recorded, recorded_offsets
        Recorded times of the clocks.
    latest : (kinds n,) int64
        Last version of a kind that each agent has sent to all (-1: none), kind after kind.
    notes : (L,) NOTE
    noted : (E,) NOTED
        Empty where nobody keeps notes.
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
    versions: Any
    nodes: Any
    slots: Any
    agents: Any
    wakes: Any
    awaited: Any
    receivers: Any
    copy_draws: Any
    changes: Any
    recorded: Any
    recorded_offsets: Any
    latest: Any
    notes: Any
    noted: Any
    opened: Any
    withheld: Any
    computing: Any
    step_times: Any
    step_offsets: Any
    held: Any


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
