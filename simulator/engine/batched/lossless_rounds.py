"""Lock-step rounds, compiled: the messages that each agent waits for, and how they are shown.

Agent i's k-th round begins at B_i(k), the later of its own step of round k - 1 and of the arrivals of all neighbours'
messages of round k - 1, and ends an interval of its clock later. So an agent's ends follow from its neighbours' by
maxima and sums. As nothing is lost, the arrival of a message is known as soon as it is sent: whoever sends the last
message of a barrier sets the end of the round that follows, on the heap of wake-ups. No message needs an event: copies
are under way as broadcasts are (`hushnet.simulator.rules.lazy`), and windows are theirs.

A step of round k has read round k - 1 of every neighbour, so a neighbour that is in round k + 1 has read round k of the
agent, and neighbours are never more than one round apart. Barriers that are being waited for are therefore
distinguished by the parity of their round, and a step shows what is under way of the round before its own.

A copy is shown after it has arrived, so that nothing has to be known of arrivals but their maximum, and at record
instants how many are still to come. A neighbour that has fallen silent is no longer expected. An agent that has fallen
silent opens no barrier and reads nothing: copies on their way to it are only counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....agents.compilation import compiled, part
from ....agents.graph import Graph
from ...network.network import KINDS
from ...rules.clock_rules import next_time
from ...rules.delivery import count_message, draw_copies, drawn_copy, release_version, take_row
from ...rules.heap import push
from ...rules.lazy import send_copy
from ...tables.run import RunTables
from ...tables.tallies import DELIVERED, DELIVERED_BYTES, FREE_NODES, HEAP, IN_FLIGHT, IN_FLIGHT_BYTES


class LosslessRounds(NamedTuple):
    """Barriers of lossless rounds; compiled functions take them as one argument.

    The parity of a round is that of the tick at its end.

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


def first_rounds(graph: Graph, silent: Any) -> LosslessRounds:
    """The first round of all agents, of which (n,) some are ``silent`` from the start, and nobody waits for them."""
    agents = graph.agents
    expected = 1 + np.bincount(graph.tails[~silent[graph.heads]], minlength=agents).astype(np.int64)
    missing, begun = np.stack([expected, expected], axis=1), np.ones(agents, dtype=np.int64)
    return LosslessRounds(expected, missing, np.zeros((agents, 2)), begun)


@part(_nrt=False)
def hold(
    run: RunTables, rounds: LosslessRounds, agent: int, number: int, arrival: float
):  # pragma: no cover - compiled
    """Let an agent hold one more message of a round; the last one begins its next round."""
    parity = number & 1
    latest = max(rounds.latest[agent, parity], arrival)
    rounds.missing[agent, parity] -= 1
    if rounds.missing[agent, parity] > 0:
        rounds.latest[agent, parity] = latest
        return
    rounds.missing[agent, parity] = rounds.expected[agent]
    rounds.latest[agent, parity] = 0.0
    rounds.begun[agent] = number + 1
    push(run.wakes, run.counts, HEAP, next_time(run, agent, number, latest), agent, number)


@part(_nrt=False)
def expect_no_more(rounds: LosslessRounds, agent: int, number: int):  # pragma: no cover - compiled
    """Let an agent expect nothing of a neighbour after its last round.

    The barrier after that round has the parity of the one before it, and counts only once that one is open.
    """
    rounds.expected[agent] -= 1
    if rounds.begun[agent] >= number:
        rounds.missing[agent, (number + 1) & 1] -= 1


@part(_nrt=False)
def close_round(run: RunTables, rounds: LosslessRounds, agent: int, now: float):  # pragma: no cover - compiled
    """Let everybody hold the message of the round that an agent has just ended: what it sent at this tick."""
    edges, tick, last = len(run.heads), run.agents.ticks[agent], run.agents.silent[agent]
    for edge in range(run.offsets[agent], run.offsets[agent + 1]):
        receiver, arrival = run.heads[edge], now
        if run.agents.silent[receiver]:
            continue
        for slot in range(run.reverse[edge], len(run.slots), edges):
            node = run.slots.first_node[slot]
            if node >= 0 and run.versions.tick[run.nodes.version[node]] == tick:
                arrival = max(arrival, run.nodes.arrival[node])
        if last:
            expect_no_more(rounds, receiver, tick + 1)
        hold(run, rounds, receiver, tick + 1, arrival)
    if not last:
        hold(run, rounds, agent, tick + 1, now)


@part(_nrt=False)
def free_node(run: RunTables, slot: int, before: int, node: int):  # pragma: no cover - compiled
    """Take a copy from the list of its slot, where it follows another one or (-1) none."""
    if before < 0:
        run.slots.first_node[slot] = run.nodes.following[node]
    else:
        run.nodes.following[before] = run.nodes.following[node]
    run.nodes.free[run.counts[FREE_NODES]] = node
    run.counts[FREE_NODES] += 1


@part(_nrt=False)
def show_last_round(run: RunTables, agent: int, header: int):  # pragma: no cover - compiled
    """Let an agent's inbox show the round before the one that it ends."""
    edges, tick = len(run.heads), run.agents.ticks[agent]
    for edge in range(run.offsets[agent], run.offsets[agent + 1]):
        for slot in range(edge, len(run.slots), edges):
            before, node = -1, run.slots.first_node[slot]
            if node >= 0 and run.versions.tick[run.nodes.version[node]] == tick:
                before, node = node, run.nodes.following[node]
            if node < 0:
                continue
            row = run.nodes.version[node]
            free_node(run, slot, before, node)
            if run.versions.bytes[row] == header:
                release_version(run, row)
                continue
            if run.slots.known[slot] >= 0:
                release_version(run, run.slots.known[slot])
            run.slots.known[slot] = row  # when it was heard, `note_heard` says later


@compiled(_nrt=False)
def note_heard(run: RunTables):  # pragma: no cover - compiled
    """Note in the inbox of which messages the versions are that slots know."""
    for slot in range(len(run.slots)):
        row = run.slots.known[slot]
        if row >= 0 and run.slots.heard_tick[slot] != run.versions.tick[row]:
            run.slots.heard_sent_at[slot] = run.versions.sent_at[row]
            run.slots.heard_order[slot] = run.versions.order[row]
            run.slots.heard_tick[slot] = run.versions.tick[row]


@part(_nrt=False)
def say_nothing(run: RunTables, agent: int, now: float, header: int):  # pragma: no cover - compiled
    """End a round in which an agent says nothing: a message without numbers to everybody."""
    first, last, tick = run.offsets[agent], run.offsets[agent + 1], run.agents.ticks[agent]
    row = take_row(run, now, 0, tick, header)
    draw_copies(run, agent, range(first, last), tick, KINDS - 1)
    for edge in range(first, last):
        sending = tick, run.versions.bytes[row], now, count_message(run, 0)
        run.versions.references[row] += send_copy(run, agent, edge, 0, row, drawn_copy(run, edge - first), sending)
    release_version(run, row)


@compiled(_nrt=False)
def count_arrivals(run: RunTables, now: float, barrier: Any):  # pragma: no cover - compiled
    """Count what has arrived anywhere by ``now``, apart from what was sent after ``barrier`` at this instant.

    Silent agents forget it.
    """
    links, size = 0, 0
    for slot in range(len(run.slots)):
        before, node = -1, run.slots.first_node[slot]
        is_silent = run.agents.silent[run.heads[run.reverse[slot % len(run.heads)]]]
        while node >= 0:
            arrival, row, following = run.nodes.arrival[node], run.nodes.version[node], run.nodes.following[node]
            if arrival > now or (arrival == now and run.nodes.rank[node] > barrier):
                links += 1
                size += run.versions.bytes[row]
                before = node
            elif is_silent:
                free_node(run, slot, before, node)
                release_version(run, row)
            else:
                before = node
            node = following
    counts = run.counts
    counts[DELIVERED] += counts[IN_FLIGHT] - links
    counts[DELIVERED_BYTES] += counts[IN_FLIGHT_BYTES] - size
    counts[IN_FLIGHT], counts[IN_FLIGHT_BYTES] = links, size
