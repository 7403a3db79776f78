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
from ..tables.notes import NOTE_COLUMNS
from ..tables.room import extended, zeros
from ..tables.run import (
    AGENT,
    BANDWIDTH,
    CLOCK_CODE,
    CONSTANTS,
    COPY,
    DELAY_CODE,
    DELAY_FIRST,
    DELAY_SECOND,
    ENDS_BY_TIME,
    JITTER,
    LINK,
    LOSS_BAD,
    LOSS_CHANCE,
    LOSS_GOOD,
    MEAN_BAD,
    MEAN_GOOD,
    MOST_ACTIVATIONS,
    MOST_UPDATES,
    MOST_VECTORS,
    PLANNED,
    RANDOM_PHASE,
    RECORD_EVERY,
    VERSION,
    WAKE,
    RunTables,
)


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
    most, rows, nodes, width = degree * kinds, 4 * agents + 64, edges + 64, max(widths, default=1)
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
        wakes=zeros(agents + 1, WAKE),
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
    )
    run.versions.free[:], run.nodes.free[:] = np.arange(rows), np.arange(nodes)
    run.wakes.time[:] = math.inf
    own = run.agents
    own.ticks[:] = own.paid[:] = -1
    own.leaves[:] = own.gone_from[:] = math.inf
    own.was_up[:], own.interval[:], own.numbers[:] = True, 1.0, network.numbers
    run.counts[tallies.FREE_ROWS], run.counts[tallies.FREE_NODES] = rows, nodes
    return run


def with_limits(run: RunTables, stop: Stop, forms: CompiledLaws | None, *, record: int, compiled: bool) -> RunTables:
    """The tables of a run with its clocks, limits and record instants, which compiled windows have to know."""
    run.constants[PLANNED] = float(compiled)
    run.constants[MOST_ACTIVATIONS] = math.inf if stop.activations is None else stop.activations
    run.constants[MOST_VECTORS] = math.inf if stop.vectors is None else stop.vectors
    run.constants[MOST_UPDATES] = -1.0 if stop.updates is None else stop.updates
    run.constants[RECORD_EVERY] = record
    run.constants[ENDS_BY_TIME] = float(stop.time is not None)
    if forms is None:
        return run
    clock = forms.clock
    run.constants[[CLOCK_CODE, JITTER, RANDOM_PHASE]] = clock.code, clock.jitter, clock.random_phase
    run.agents.interval[:] = clock.means
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
