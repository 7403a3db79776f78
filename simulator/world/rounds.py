"""Rounds beside their rules (`hushnet.simulator.rules.rounds`): in which settings they run, and their tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...agents.graph import Graph
from ...protocols.base import Layout, Sent
from ...protocols.schedule import RoundsSchedule
from ..network.network import Network
from ..network.randomness import QUANTUM, lasting
from ..network.setting import Setting, Stop
from ..tables import rounds as columns
from ..tables.effects import EFFECT_COLUMNS
from ..tables.room import extended
from ..tables.rounds import RoundTables

EMPTY = "empty round"
"""Kind of the message without numbers that ends a round for a neighbour to whom the step said nothing."""


def room_for(graph: Graph, layout: Layout) -> int:
    """Most records, copies and notes that one event brings about."""
    return int(graph.degrees.max(initial=0)) * (len(layout.messages) + 1) + 2


def round_tables(setting: Setting, layout: Layout, network: Network, parameters: RoundsSchedule) -> RoundTables:
    """The tables of a run in rounds, before its first one."""
    graph, kinds, room = setting.graph, layout.messages, room_for(setting.graph, layout)
    agents, edges, records = graph.agents, len(graph.heads), len(graph.heads) + room

    def whole(*shape: int) -> NDArray[np.int64]:
        return np.zeros(shape, dtype=np.int64)

    tables = RoundTables(
        now=np.zeros(1),
        counts=whole(columns.COUNTS),
        constants=np.array([*durations(setting, layout, network, parameters), network.size(0)]),
        vectors=np.array([kind.vectors for kind in kinds.values()], dtype=np.int64),
        agents=whole(agents, columns.AGENT_COLUMNS),
        links=whole(edges, columns.LINK_COLUMNS),
        records=whole(records, columns.RECORD_COLUMNS),
        free_records=np.arange(records),
        copies=whole(records, columns.COPY_COLUMNS),
        free_copies=np.arange(records),
        shown=whole(room, 2),
        queue=whole(agents + records),
        due=np.zeros(agents + records + room),
        effects=whole(agents + records + room, EFFECT_COLUMNS),
    )
    tables.agents[:, columns.QUEUE_FIRST] = -1
    tables.links[:, [columns.LAST, columns.FIRST_HELD, columns.SAYING]] = -1
    tables.links[~graph.opened[graph.reverse], columns.LAST] = 0  # nothing comes this way, and nobody waits for it
    tables.counts[[columns.FREE_RECORDS, columns.FREE_COPIES]] = records
    return tables


def with_room(tables: RoundTables, room: int) -> RoundTables:
    """Tables with so many free records and copies."""
    counts = tables.counts
    if min(counts[columns.FREE_RECORDS], counts[columns.FREE_COPIES]) >= room:
        return tables
    old = len(tables.records)
    more = old + room
    names = ("records", "free_records", "copies", "free_copies", "queue", "due", "effects")
    made = tables._replace(**{name: extended(getattr(tables, name), more) for name in names})
    for free, count in ((made.free_records, columns.FREE_RECORDS), (made.free_copies, columns.FREE_COPIES)):
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
        "rounds_begun_without_all": 0 if tables is None else int(tables.counts[columns.BEGUN_WITHOUT]),
        "messages_repeated": 0 if tables is None else int(tables.counts[columns.REPEATED]),
    }


def durations(setting: Setting, layout: Layout, network: Network, parameters: RoundsSchedule) -> tuple[float, float]:
    """Time until a message is repeated, and until an agent loses patience; infinite if never."""
    patience = math.inf if parameters.patience is None else _duration(parameters.patience)
    if not repeats(parameters, unfailing=setting.network.lossless and setting.always_up):
        return math.inf, patience
    if isinstance(parameters.resend_after, float | int):
        return _duration(parameters.resend_after), patience
    heads = setting.graph.heads
    widest = (np.broadcast_to(kind.width, setting.graph.agents)[heads] for kind in layout.messages.values())
    size = network.size(max((int(widths.max(initial=0)) for widths in widest), default=0))
    return _duration(1 + 2 * network.mean_delay(size)), patience


def repeats(parameters: RoundsSchedule, *, unfailing: bool) -> bool:
    """True if messages are acknowledged, and repeated until they are; unfailing if none is lost and nobody is down."""
    if parameters.resend_after == "never" or parameters.patience is not None:
        return False
    return parameters.resend_after is not None or not unfailing


def addressed(graph: Graph, agent: int, sents: Sequence[Sent]) -> dict[int, list[Sent]]:
    """Return a step's messages by the directed edge on which they go to a neighbour.

    Raises
    ------
    ValueError
        If a neighbour gets two messages of one kind.
    """
    slots, per_edge = graph.edges_of(agent), {}
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
