"""The tables of lazy delivery and of clocks (`hushnet.simulator.tables.run`) in one run: made, and made larger."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...agents.graph import Graph
from ...protocols.base import Layout
from ..network.clocks import RECORDED
from ..network.laws import CompiledLaws
from ..network.network import Network
from ..network.setting import Stop
from ..tables import tallies
from ..tables.inbox import TableInbox
from ..tables.notes import NOTE_COLUMNS, NOTING
from ..tables.room import columns, extended, extended_lines, lines, zeros
from ..tables.run import (
    BANDWIDTH,
    CHILDREN,
    CLOCK_CONSTANTS,
    CONSTANTS,
    COPIES_OUT,
    DELAY_CODE,
    DELAY_FIRST,
    DELAY_SECOND,
    ENDS_BY_TIME,
    LINE,
    LOSS_BAD,
    LOSS_CHANCE,
    LOSS_GOOD,
    MEAN_BAD,
    MEAN_GOOD,
    MOST_ACTIVATIONS,
    MOST_UPDATES,
    MOST_VECTORS,
    NODE,
    RECORD_EVERY,
    WAKE_UP,
    RunTables,
)

VERSIONS = {"sent_at": np.float64, "order": np.int64, "tick": np.int64, "size": np.int64, "references": np.int64}
NODES = {"arrival": np.float64, "version": np.int64, "following": np.int64, "rank": np.int64}
AGENTS = {
    "ticks": np.int64,
    "updates": np.int64,
    "charged": np.int64,
    "joins": np.float64,
    "leaves": np.float64,
    "gone_from": np.float64,
}
HEAP = {"heap_time": np.float64, "heap_agent": np.int64}
"""Columns of what versions, copies under way, agents and their wake-ups are known by."""


def wake_ups(agents: int) -> dict[str, Any]:
    """Room for the next wake-up of each agent, at an infinite time yet, and for the siblings of the last one, by name.

    The second one begins a line, and with it the children of every wake-up are one.
    """
    siblings = CHILDREN - 1
    made = lines(agents + 2 * siblings, HEAP, WAKE_UP)
    found = {name: one[WAKE_UP * siblings :] for name, one in made.items()}
    found["heap_time"][::WAKE_UP] = math.inf
    return found


def make_run_tables(
    graph: Graph, layout: Layout, inbox: TableInbox, network: Network, forms: CompiledLaws | None
) -> RunTables:
    """The tables of a run, of agents that have sent and heard nothing yet.

    Parameters
    ----------
    graph, layout, inbox, network
    forms : CompiledLaws or None
        Of the network; none where every delay and loss is asked of it.
    """
    agents, edges, kinds = graph.agents, len(graph.heads), len(layout.messages)
    widths = [int(np.max(spec.width, initial=1)) for spec in layout.messages.values()]
    degree = int(np.max(np.diff(graph.offsets), initial=0))
    slots, most = edges * kinds, degree * kinds
    rows, nodes, width = 4 * agents + 64, edges + 64, max(widths, default=1)
    bandwidth = network.parameters.bandwidth
    constants = np.zeros(CONSTANTS)
    constants[BANDWIDTH] = bandwidth or math.inf
    if forms is not None:
        constants[[DELAY_CODE, DELAY_FIRST, DELAY_SECOND]] = forms.law
        constants[[MEAN_GOOD, MEAN_BAD, LOSS_GOOD, LOSS_BAD]] = forms.bursts
        constants[LOSS_CHANCE] = forms.chance
    constants[MOST_UPDATES] = -1.0
    constants[[MOST_ACTIVATIONS, MOST_VECTORS]] = math.inf
    fixed = network.link_delays(graph.tails, graph.heads)
    whole: dict[str, Any] = {
        name: np.full(size, fill, dtype=np.int64)
        for name, size, fill in (
            ("known", slots, -1),
            ("latest", agents * max(1, kinds), -1),
            ("paid", agents, -1),
            ("recorded_offsets", 0, 0),
            ("counts", tallies.COUNTERS, 0),
        )
    }
    run = RunTables(
        **whole,
        **lines(rows, VERSIONS, LINE),
        **lines(nodes, NODES, NODE),
        **columns(agents, AGENTS),
        **wake_ups(agents),
        constants=constants,
        bursts=np.zeros((edges if constants[MEAN_BAD] > 0 else 0, 2), dtype=np.int64),
        burst_until=np.zeros(edges if constants[MEAN_BAD] > 0 else 0),
        key=np.array(network.draws.key, dtype=np.uint64),
        offsets=graph.offsets,
        heads=graph.heads,
        reverse=graph.reverse,
        numbers=network.numbers,
        link_delays=np.empty(0) if fixed is None else fixed,
        pool=zeros((rows, width), np.float64),
        free_rows=np.arange(rows),
        free_nodes=np.arange(nodes) * NODE,
        awaited=np.zeros(most + 1, dtype=np.int64),
        receivers=np.zeros(degree, dtype=np.uint64),
        copy_draws=np.zeros((3, degree)),
        **inbox.slots,
        values=np.empty(0),
        places=np.empty(0, dtype=np.int64),
        was_up=np.ones(agents, dtype=bool),
        changes=np.empty((agents, 0)),
        clock=np.zeros(CLOCK_CONSTANTS),
        means=np.ones(agents),
        recorded=np.empty(0),
        silent=np.zeros(agents, dtype=bool),
        alone=np.zeros(agents, dtype=bool),
        noting=np.zeros(NOTING),
        watched=np.zeros(0, dtype=bool),
        note_times=np.zeros((0, 2)),
        notes=np.zeros((0, NOTE_COLUMNS), dtype=np.int64),
    )
    run.ticks[:] = -1
    run.leaves[:] = run.gone_from[:] = math.inf
    run.counts[tallies.FREE_ROWS], run.counts[tallies.FREE_NODES] = rows, nodes
    return run


def with_limits(run: RunTables, stop: Stop, forms: CompiledLaws | None, *, record: int, compiled: bool) -> RunTables:
    """The tables of a run with its clocks, limits and record instants, which compiled windows have to know."""
    run.constants[COPIES_OUT] = float(not compiled)
    run.constants[MOST_ACTIVATIONS] = math.inf if stop.activations is None else stop.activations
    run.constants[MOST_VECTORS] = math.inf if stop.vectors is None else stop.vectors
    run.constants[MOST_UPDATES] = -1.0 if stop.updates is None else stop.updates
    run.clock[RECORD_EVERY] = record
    run.clock[ENDS_BY_TIME] = float(stop.time is not None)
    if forms is None:
        return run
    clock = forms.clock
    run.clock[:3] = clock.code, clock.jitter, clock.random_phase
    run.means[:] = clock.means
    if clock.code == RECORDED:
        times = [np.array(own, dtype=np.float64) for own in clock.times]
        offsets = np.cumsum([0, *(len(own) for own in times)])
        return run._replace(recorded=np.concatenate(times), recorded_offsets=offsets.astype(np.int64))
    return run


def with_copies(run: RunTables, inbox: TableInbox) -> RunTables:
    """The tables of a run that can copy vectors into the inbox."""
    return run._replace(values=inbox.flat_values, places=inbox.places)


def with_room(run: RunTables, rows: int, nodes: int) -> RunTables:
    """Tables into which so many more versions and copies under way fit."""
    counts = run.counts
    if counts[tallies.FREE_ROWS] < rows:
        old = len(run.pool)
        more = max(rows, old // 2)
        wider = {name: extended(getattr(run, name), more) for name in ("pool", "free_rows")}
        run = run._replace(**wider, **extended_lines(run, VERSIONS, LINE, more))
        run.free_rows[counts[tallies.FREE_ROWS] : counts[tallies.FREE_ROWS] + more] = np.arange(old, old + more)
        counts[tallies.FREE_ROWS] += more
    if counts[tallies.FREE_NODES] < nodes:
        old = len(run.free_nodes)
        more = max(nodes, old)
        free_nodes = extended(run.free_nodes, more)
        run = run._replace(free_nodes=free_nodes, **extended_lines(run, NODES, NODE, more))
        new = np.arange(old, old + more) * NODE
        run.free_nodes[counts[tallies.FREE_NODES] : counts[tallies.FREE_NODES] + more] = new
        counts[tallies.FREE_NODES] += more
    return run
