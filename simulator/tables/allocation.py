"""Makes the tables of a run, of what is known when it begins, and gives them more room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...agents.graph import Graph
from ...agents.inbox import Inbox
from ...protocols.base import Layout
from ..network.clocks import RECORDED
from ..network.distributions import CompiledDistributions
from ..network.network import Network
from ..network.setting import Stop
from . import tallies
from .run import (
    AGENT,
    BANDWIDTH,
    CHANGING,
    CLOCK_CODE,
    COMPUTING,
    CONSTANTS,
    COPY,
    DELAY_CODE,
    DELAY_FIRST,
    DELAY_SECOND,
    DOWNLINK,
    DUE,
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
    NOTE,
    NOTED,
    NOTHING_HEARD,
    PLANNED,
    RANDOM_PHASE,
    RECORD_EVERY,
    SLOT,
    UPLINK,
    VERSION,
    RunTables,
)

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


def make_inbox(graph: Graph, layout: Layout, precision: DTypeLike) -> Inbox:
    """Inboxes in which nothing was heard yet, of vectors in a precision."""
    slots = zeros(len(graph.heads) * len(layout.messages), SLOT)
    slots[:] = NOTHING_HEARD
    widest = max((int(np.max(spec.width, initial=1)) for spec in layout.messages.values()), default=1)
    pool = zeros((4 * graph.agents + 64, widest), precision)
    return Inbox(graph, {kind: spec.width for kind, spec in layout.messages.items()}, slots, pool)


def make_run_tables(
    graph: Graph,
    layout: Layout,
    inbox: Inbox,
    network: Network,
    forms: CompiledDistributions | None,
    changing: bool,
) -> RunTables:
    """The tables of a run, of agents that have sent and heard nothing yet.

    The forms are of the network; none where every delay and loss is asked of it. The graph may be changing.
    """
    agents, edges, kinds = graph.agents, len(graph.heads), len(layout.messages)
    degree = int(np.max(np.diff(graph.offsets), initial=0))
    most, rows, nodes = degree * kinds, len(inbox.pool), edges + 64
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
        versions=zeros(rows, VERSION),
        nodes=zeros(nodes, COPY),
        slots=inbox.slots,
        agents=zeros(agents, AGENT),
        wakes=zeros(agents + 1, DUE),
        awaited=np.zeros(most + 1, dtype=np.int64),
        receivers=np.zeros(degree, dtype=np.uint64),
        copy_draws=np.zeros((3, degree)),
        changes=np.empty((agents, 0)),
        recorded=np.empty(0),
        recorded_offsets=np.empty(0, dtype=np.int64),
        latest=np.full(agents * max(1, kinds), -1),
        notes=zeros(0, NOTE),
        noted=zeros(0, NOTED),
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


def with_capacity(run: RunTables, inbox: Inbox, rows: int, nodes: int) -> RunTables:
    """Tables, and an inbox, into which so many more versions and copies under way fit."""
    counts = run.counts
    if counts[tallies.FREE_ROWS] < rows:
        old = len(run.versions)
        more = max(rows, old // 2)
        inbox.pool, run = extended(inbox.pool, more), run._replace(versions=extended(run.versions, more))
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
