"""The state of rounds: what every agent waits for, what it holds of each neighbour, and what is under way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...agents.graph import Graph
from ...protocols.base import Layout, Sent
from ...protocols.schedule import RoundsSchedule
from ..network.network import Network
from ..network.randomness import QUANTUM, lasting
from ..network.setting import Setting, Stop
from .allocation import extended
from .effects import EFFECT_COLUMNS, FREE_COPIES, SHARED

(
    FREE_RECORDS,
    WAITING_AGENTS,
    ENDED_AGENTS,
    STALLED,
    DONE,
    STEPPING,
    SHOWN_MESSAGES,
    BEGUN_WITHOUT,
    REPEATED,
    COUNTS,
) = range(SHARED, SHARED + 10)
"""Places in `RoundTables.counts` after those of all tables with effects: free records; agents that wait and agents that
make no further round; whether nobody can ever go on, or everybody is done; who steps, and how many messages its inbox
shows for the first time; rounds that were begun without all that they waited for, and repeated messages."""

RESEND_AFTER, LONGEST_WAIT, HEADER, DURATIONS = range(4)
"""Places in `RoundTables.constants`: time until a message is repeated, and until an agent loses patience (both infinite
if never); bytes of a message without numbers."""

IS_UP, IS_GONE, WAITS, WAIT_NUMBER, IN_TIME, ENDED, COMPUTES, QUEUE_FIRST, QUEUE_LAST, AGENT_COLUMNS = range(10)
"""Columns of `RoundTables.agents`: up, down for good, waiting, how often it has waited; whether the round that it is in
began with all that it waited for; whether it makes no further round; whether it computes
its step; what waits until it is up, in order."""

SHOWN, LAST, FIRST_HELD, SAYING, LINK_COLUMNS = range(5)
"""Columns of `RoundTables.links`, by the receiver's slot: newest round that the inbox has shown, the neighbour's last
round (-1: not known), the rounds held beyond, and the round that is just being said (-1: none)."""

(
    ON_SLOT,
    OF_TICK,
    OF_KIND,
    VERSION,
    ATTEMPT,
    ACKNOWLEDGED,
    REFERENCES,
    TIMED,
    HELD_ORDER,
    HEAD,
    SIBLING,
    PARTS,
    HELD_PARTS,
    NEXT_HELD,
    ANSWERS,
    IS_LAST,
    RECORD_COLUMNS,
) = range(17)
"""Columns of `RoundTables.records`, one for each message of a round on one link: where it goes, its tick, kind and
version (-1: no numbers); how often it was repeated, whether the sender knows that it arrived, whether it is repeated;
order of the copy that is held (-1: none). The first message of a round on a link stands for the round: it has the
number of references to any of them, of messages, how many are held, the next round held, how many acknowledgements were
sent, and whether the sender has fallen silent; the others know it as their head, and each the one said after it."""

RECORD, COPY_ORDER, IS_ANSWER, COPY_SIZE, COPY_COLUMNS = range(5)
"""Columns of `RoundTables.copies`: the message, the order of sending, whether it is an acknowledgement, bytes."""


class RoundTables(NamedTuple):
    """All arrays of rounds; rules take them as one argument beside the `hushnet.simulator.tables.run.RunTables`.

    Attributes
    ----------
    now : (1,) float64
    counts : (COUNTS,) int64
    constants : (DURATIONS,) float64
    vectors : (kinds,) int64
        Model-sized vectors that a message of each kind counts as.
    agents : (n, AGENT_COLUMNS) int64
    links : (E, LINK_COLUMNS) int64
    records : (R, RECORD_COLUMNS) int64
        As long as anything refers to them.
    free_records : (R,) int64
    copies : (C, COPY_COLUMNS) int64
    free_copies : (C,) int64
    shown : (K, 2) int64
        Messages that the inbox of who steps shows for the first time: slot of their kind, and order of sending.
    queue : (n + R,) int64
        What waits next for an agent to come up: entry i is the end of agent i's round, n + r a repeat of record r.
    due : (F,) float64
    effects : (F, EFFECT_COLUMNS) int64
    """

    now: Any
    counts: Any
    constants: Any
    vectors: Any
    agents: Any
    links: Any
    records: Any
    free_records: Any
    copies: Any
    free_copies: Any
    shown: Any
    queue: Any
    due: Any
    effects: Any


EMPTY = "empty round"
"""Kind of the message without numbers that ends a round for a neighbour to whom the step said nothing."""


def capacity_for(graph: Graph, layout: Layout) -> int:
    """Most records, copies and notes that one event brings about."""
    return int(graph.degrees.max(initial=0)) * (len(layout.messages) + 1) + 2


def round_tables(setting: Setting, layout: Layout, network: Network, parameters: RoundsSchedule) -> RoundTables:
    """The tables of a run in rounds, before its first one."""
    graph, kinds, capacity = setting.graph, layout.messages, capacity_for(setting.graph, layout)
    agents, edges, records = graph.agents, len(graph.heads), len(graph.heads) + capacity

    def whole(*shape: int) -> NDArray[np.int64]:
        return np.zeros(shape, dtype=np.int64)

    tables = RoundTables(
        now=np.zeros(1),
        counts=whole(COUNTS),
        constants=np.array([*durations(setting, layout, network, parameters), network.size(0)]),
        vectors=np.array([layout.shares_of(kind) for kind in kinds], dtype=np.int64),
        agents=whole(agents, AGENT_COLUMNS),
        links=whole(edges, LINK_COLUMNS),
        records=whole(records, RECORD_COLUMNS),
        free_records=np.arange(records),
        copies=whole(records, COPY_COLUMNS),
        free_copies=np.arange(records),
        shown=whole(capacity, 2),
        queue=whole(agents + records),
        due=np.zeros(agents + records + capacity),
        effects=whole(agents + records + capacity, EFFECT_COLUMNS),
    )
    tables.agents[:, QUEUE_FIRST] = -1
    tables.links[:, [LAST, FIRST_HELD, SAYING]] = -1
    tables.links[~graph.opened[graph.reverse], LAST] = 0  # nothing comes this way, and nobody waits for it
    tables.counts[[FREE_RECORDS, FREE_COPIES]] = records
    return tables


def with_capacity(tables: RoundTables, capacity: int) -> RoundTables:
    """Tables with so many free records and copies."""
    counts = tables.counts
    if min(counts[FREE_RECORDS], counts[FREE_COPIES]) >= capacity:
        return tables
    old = len(tables.records)
    more = old + capacity
    names = ("records", "free_records", "copies", "free_copies", "queue", "due", "effects")
    made = tables._replace(**{name: extended(getattr(tables, name), more) for name in names})
    for free, count in ((made.free_records, FREE_RECORDS), (made.free_copies, FREE_COPIES)):
        free[counts[count] : counts[count] + more] = np.arange(old, old + more)
        counts[count] += more
    return made


def planned(stop: Stop, agents: int) -> int | None:
    """Number of rounds of single agents that a run is to have; None if it ends by something else."""
    asked = [] if stop.activations is None else [stop.activations]
    asked += [] if stop.updates is None else [stop.updates * agents]
    return min(asked, default=None)


def counted(tables: RoundTables | None, *, finished: int, planned: int | None) -> dict[str, int]:
    """Counts of rounds for a run's totals; without tables nothing is lost, begun without all messages, or repeated."""
    return {
        "rounds_finished": finished,
        **({} if planned is None else {"rounds_planned": planned}),
        "rounds_begun_without_all": 0 if tables is None else int(tables.counts[BEGUN_WITHOUT]),
        "messages_repeated": 0 if tables is None else int(tables.counts[REPEATED]),
    }


def durations(setting: Setting, layout: Layout, network: Network, parameters: RoundsSchedule) -> tuple[float, float]:
    """Time until a message is repeated, and until an agent loses patience; infinite if never."""
    patience = math.inf if parameters.patience is None else _duration(parameters.patience)
    if not parameters.repeats(unfailing=setting.unfailing):
        return math.inf, patience
    if isinstance(parameters.resend_after, float | int):
        return _duration(parameters.resend_after), patience
    heads = setting.graph.heads
    widest = (np.broadcast_to(kind.width, setting.graph.agents)[heads] for kind in layout.messages.values())
    size = network.size(max((int(widths.max(initial=0)) for widths in widest), default=0))
    return _duration(1 + 2 * network.mean_delay(size)), patience


def addressed(graph: Graph, agent: int, sents: Sequence[Sent]) -> dict[int, list[Sent]]:
    """Return a step's messages by the directed edge on which they go to a neighbour.

    Raises ValueError if a neighbour gets two messages of one kind.
    """
    slots, per_edge = graph.edges_of(agent), dict[int, list[Sent]]()
    for edge, receiver in zip(range(slots.start, slots.stop), graph.heads[slots].tolist(), strict=True):
        if not graph.opened[edge]:
            continue
        per_edge[edge] = [sent for sent in sents if sent.to is None or receiver in sent.to]
        kinds = [sent.kind for sent in per_edge[edge]]
        if len(set(kinds)) < len(kinds):
            raise ValueError(f"agent {agent} sent agent {receiver} two messages of one kind in a round")
    return per_edge


def _duration(value: float) -> float:
    return max(QUANTUM, lasting(value))
