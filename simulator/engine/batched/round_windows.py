"""Windows of lossless rounds, compiled: a barrier opens with the last parcel that it waits for, without any event.

Agent i's k-th round begins at B_i(k), the later of its own step of round k - 1 and of the arrivals of all neighbours'
parcels of round k - 1, and ends an interval of its clock later. So an agent's ends follow from its neighbours' by
maxima and sums. As nothing is lost, the arrival of a parcel is known as soon as it is sent: whoever sends the last
parcel of a barrier sets the end of the round that follows, on the heap of wake-ups.

Of what an agent holds of a neighbour, two rounds suffice beside the one that its inbox shows: a step of round k has
read round k - 1 of every neighbour, so a neighbour that is in round k + 1 has read round k of the agent, and neighbours
are never more than one round apart. Barriers that are being waited for are therefore told apart by the parity of their
round. Copies under way, or arrived and not yet shown, are nodes in the lists of `hushnet.simulator.rules.lazy`, one
list per kind and directed edge, with a kind of their own for messages without numbers. What was counted as delivered
while it still waits to be shown is marked by an arrival of minus infinity.

A neighbour that has fallen silent is no longer expected. An agent that has fallen silent opens no barrier and reads
nothing: copies on their way to it are only counted.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ....agents.compilation.compiled import compiled
from ....agents.compilation.fetching import prefetch_row
from ....protocols.kernel import UNBOUNDED, UNSAID
from ...network.network import KINDS
from ...rules.clocks import count_step, next_time, used_up
from ...rules.delivery import count_arrival, count_message, release_version, set_latest, take_row
from ...rules.lazy import kinds_of, send_copies
from ...tables.run import LINE, RunTables
from ...tables.tallies import BARRIER, FREE_NODES, FREE_ROWS, HEAP, ORDER, UNFINISHED, WAKES
from .windows import (
    AWAKE,
    COUNTED,
    DIVERGED,
    FULL,
    IDLE,
    LOOK,
    REACHED,
    clock_over,
    is_counted,
    rows_needed,
    step_and_send,
    take_top,
)


class Barriers(NamedTuple):
    """What agents in rounds wait for; compiled functions take it as one argument.

    Attributes
    ----------
    expected : (n,) int64
        Parcels that open a barrier: of every neighbour that has not fallen silent, and the agent's own.
    missing : (n, 2) int64
        By parity of the round: how many of them were not sent yet.
    latest : (n, 2) float64
        By parity of the round: arrival of the last one of the others.
    begun : (n,) int64
        Rounds that each agent has begun.
    """

    expected: Any
    missing: Any
    latest: Any
    begun: Any


@compiled(forceinline=True, _nrt=False)
def push(run: RunTables, time: float, agent: int):  # pragma: no cover - compiled
    """Put a wake-up on the heap."""
    times, agents, here = run.heap_time, run.heap_agent, run.counts[HEAP]
    run.counts[HEAP] += 1
    while here > 0:
        parent = (here - 1) // 2
        if times[parent] < time or (times[parent] == time and agents[parent] < agent):
            break
        times[here], agents[here] = times[parent], agents[parent]
        here = parent
    times[here], agents[here] = time, agent


@compiled(forceinline=True, _nrt=False)
def hold(run: RunTables, barriers: Barriers, agent: int, number: int, arrival: float):  # pragma: no cover - compiled
    """Let an agent hold one more parcel of a round; the last one begins its next round."""
    parity = number % 2
    latest = max(barriers.latest[agent, parity], arrival)
    barriers.missing[agent, parity] -= 1
    if barriers.missing[agent, parity] > 0:
        barriers.latest[agent, parity] = latest
        return
    barriers.missing[agent, parity] = barriers.expected[agent]
    barriers.latest[agent, parity] = 0.0
    barriers.begun[agent] = number + 1
    push(run, next_time(run, agent, number, latest), agent)


@compiled(forceinline=True, _nrt=False)
def expect_no_more(barriers: Barriers, agent: int, number: int):  # pragma: no cover - compiled
    """Let an agent expect nothing of a neighbour after its last round.

    The barrier after that round has the parity of the one before it, and counts only once that one is open.
    """
    barriers.expected[agent] -= 1
    if barriers.begun[agent] >= number:
        barriers.missing[agent, (number + 1) % 2] -= 1


@compiled(forceinline=True, _nrt=False)
def land(run: RunTables, node: int):  # pragma: no cover - compiled
    """Count the arrival of a copy, once."""
    if run.arrival[node] > -math.inf:
        count_arrival(run, run.size[LINE * run.version[node]], True)
        run.arrival[node] = -math.inf


@compiled(forceinline=True, _nrt=False)
def take_out(run: RunTables, slot: int, before: float, node: int):  # pragma: no cover - compiled
    """Take a copy that has arrived from the list of its slot, where it follows another or none (-1); its version."""
    land(run, node)
    if before < 0:
        run.first_node[slot] = run.following[node]
    else:
        run.following[before] = run.following[node]
    run.free_nodes[run.counts[FREE_NODES]] = node
    run.counts[FREE_NODES] += 1
    return run.version[node]


@compiled(forceinline=True, _nrt=False)
def place_of_round(run: RunTables, slot: int, edge: int, tick: int):  # pragma: no cover - compiled
    """Which copy at a slot is of a round, and which one is before it in the list; -1 for none.

    A sender that has made one more round has most likely said something then. So that the processor has nothing to
    guess, for it would guess wrong half of the time, that copy is passed over without a branch.
    """
    newest = run.first_node[slot]
    older = run.following[newest]
    passed = (run.ticks[run.heads[edge]] > tick) & (older >= 0)
    before, node = (newest, older) if passed else (-1, newest)
    if run.tick[LINE * run.version[node]] == tick:
        return before, node
    before, node = -1, newest
    while node >= 0 and run.tick[LINE * run.version[node]] != tick:
        before, node = node, run.following[node]
    return before, node


@compiled(forceinline=True, _nrt=False)
def show(run: RunTables, agent: int):  # pragma: no cover - compiled
    """Let an agent's inbox show the round before the one that it ends."""
    edges, kinds, tick = len(run.heads), kinds_of(run), run.ticks[agent] - 1
    for edge in range(run.offsets[agent], run.offsets[agent + 1]):
        for kind in range(kinds):
            slot = kind * edges + edge
            if run.first_node[slot] < 0:
                continue
            before, node = place_of_round(run, slot, edge, tick)
            if node >= 0:
                row = take_out(run, slot, before, node)
                if slot < len(run.known):
                    prefetch_row(run.pool, row)  # which the step is about to read
                    set_latest(run, slot, row, run.order[LINE * row])
                else:
                    release_version(run, row)


@compiled(forceinline=True, _nrt=False)
def forget(run: RunTables, slot: int, now: float, tick: int):  # pragma: no cover - compiled
    """Drop what has arrived for a silent agent, apart from what was sent at this very tick."""
    before, node = -1, run.first_node[slot]
    while node >= 0:
        after = run.following[node]
        if run.arrival[node] <= now and run.tick[LINE * run.version[node]] != tick:
            release_version(run, take_out(run, slot, before, node))
        else:
            before = node
        node = after


@compiled(forceinline=True, _nrt=False)
def close_round(run: RunTables, barriers: Barriers, agent: int, now: float):  # pragma: no cover - compiled
    """Let everybody hold the parcel of the round that an agent has just ended: what it sent at this tick."""
    edges, kinds, tick, last = len(run.heads), kinds_of(run), run.ticks[agent], run.silent[agent]
    for edge in range(run.offsets[agent], run.offsets[agent + 1]):
        receiver, arrival, found = run.heads[edge], now, False
        if run.silent[receiver]:
            for kind in range(kinds):
                forget(run, kind * edges + run.reverse[edge], now, tick)
            continue
        for kind in range(kinds):
            if found and kind == kinds - 1:
                break  # what has no numbers is only sent to whom nothing else was said
            node = run.first_node[kind * edges + run.reverse[edge]]
            if node >= 0 and run.tick[LINE * run.version[node]] == tick:
                arrival, found = max(arrival, run.arrival[node]), True
        if last:
            expect_no_more(barriers, receiver, tick + 1)
        hold(run, barriers, receiver, tick + 1, arrival)
    if not last:
        hold(run, barriers, agent, tick + 1, now)


@compiled(_nrt=False)
def deliver_all_rounds(run: RunTables, now: float, barrier: Any):  # pragma: no cover - compiled
    """Count what has arrived anywhere by ``now``, apart from what was sent after ``barrier`` at this instant."""
    for slot in range(len(run.first_node)):
        node = run.first_node[slot]
        while node >= 0:
            arrival = run.arrival[node]
            if arrival < now or (arrival == now and run.order[LINE * run.version[node]] <= barrier):
                land(run, node)
            node = run.following[node]


@compiled(forceinline=True, _nrt=False)
def say_nothing(run: RunTables, agent: int, now: float, header: Any):  # pragma: no cover - compiled
    """End a round in which an agent says nothing: a message without numbers to everybody."""
    if len(run.heads) == 0:
        return
    kind = kinds_of(run) - 1
    for edge in range(run.offsets[agent], run.offsets[agent + 1]):
        row = take_row(run, now, count_message(run, 0), run.ticks[agent], header)
        send_copies(run, False, agent, range(edge, edge + 1), kind, row, KINDS - 1)
        release_version(run, row)


@compiled(_nrt=False)
def run_rounds(
    run: RunTables,
    barriers: Barriers,
    limit: float,
    forced: bool,
    header: Any,
    compiled_step: bool,
    step: Any,
    table: Any,
    ports: Any,
    rows: Any,
):  # pragma: no cover - compiled
    """Run ends of rounds strictly before ``limit``, the first one anyway if ``forced``; why it stopped, agent, time.

    While a step is being made, its agent stays on top of the heap.
    """
    counts = run.counts
    while True:
        if counts[UNFINISHED]:
            agent, now = run.heap_agent[0], run.heap_time[0]
            counts[UNFINISHED] = 0
            take_top(run)
            close_round(run, barriers, agent, now)
            if run.silent[agent]:
                why = clock_over(run, agent)
                if why != REACHED:
                    return why, agent, now
        if counts[HEAP] == 0:
            return IDLE, -1, math.inf
        now, agent = run.heap_time[0], run.heap_agent[0]
        if now >= limit and not forced:
            return REACHED, agent, now
        if used_up(run):
            return LOOK, agent, now
        degree = run.offsets[agent + 1] - run.offsets[agent]
        if compiled_step and (
            counts[FREE_ROWS] < max(degree, rows_needed(run, agent, ports))
            or counts[FREE_NODES] < degree * max(1, len(ports))
        ):
            return FULL, agent, now
        forced = False
        run.ticks[agent] += 1
        counts[WAKES] += 1
        counts[BARRIER], counts[UNFINISHED] = counts[ORDER], 1
        show(run, agent)
        if not compiled_step:
            return AWAKE, agent, now
        said = step_and_send(run, False, agent, now, step, table, ports, rows)
        if said & UNBOUNDED:
            return DIVERGED, agent, now
        if said & UNSAID:
            say_nothing(run, agent, now, header)
        if is_counted(said) and count_step(run, agent):
            return COUNTED, agent, now
