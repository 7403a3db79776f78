"""Lock-step rounds, compiled: the messages that each agent waits for, and the copies in flight between agents.

Agent i's k-th round begins at B_i(k), the later of its own step of round k - 1 and of the arrivals of all neighbours'
messages of round k - 1, and ends an interval of its clock later. So an agent's ends follow from its neighbours' by
maxima and sums. As nothing is lost, the arrival of a message is known as soon as it is sent: whoever sends the last
message of a barrier sets the end of the round that follows, on the heap of wake-ups.

Of what an agent holds of a neighbour, two rounds suffice beside the one that its inbox shows: a step of round k has
read round k - 1 of every neighbour, so a neighbour that is in round k + 1 has read round k of the agent, and neighbours
are never more than one round apart. Barriers that are being waited for, and copies that are not shown yet, are
therefore distinguished by the parity of their round.

A copy is shown after it has arrived, so that nothing has to be known of arrivals but their maximum, and at record
instants how many are still to come. A neighbour that has fallen silent is no longer expected. An agent that has fallen
silent opens no barrier and reads nothing: copies on their way to it, of which there may be many, are only counted.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....agents.compilation import compiled, part
from ....agents.graph import Graph
from ...network.network import KINDS
from ...rules.clocks import count_step, next_time, used_up
from ...rules.delivery import (
    count_departures,
    count_message,
    draw_copies,
    drawn_copy,
    release_version,
    time_under_way,
)
from ...tables.run import RunTables
from ...tables.tallies import (
    BARRIER,
    DELIVERED,
    DELIVERED_BYTES,
    HEAP,
    IN_FLIGHT,
    IN_FLIGHT_BYTES,
    ORDER,
    UNFINISHED,
    WAKES,
)
from .plan import UNMADE, UNSAID, StepPlan, has_to_end
from .windows import (
    COUNTED,
    ENDS,
    FULL,
    IDLE,
    LOOK,
    REACHED,
    clock_over,
    has_room,
    is_counted,
    plan_step,
    push,
    send_said,
    take_top,
)


class LosslessRounds(NamedTuple):
    """Barriers and copies of lossless rounds; compiled functions take them as one argument.

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
    versions : (2, Q) int64
        By parity and inbox slot: the version that the slot is to show, with a reference; -1 for none.
    arrivals : (2, (kinds + 1) E) float64
        By parity, kind and the directed edge that it was sent over: when the last copy arrives. The kind after all
        kinds has no numbers.
    sent_after : (2, n) int64
        By parity and sender: order of the last message before those of the round.
    told : (D,) float64
        By rank of the neighbour: arrival of the last copy of the round that is about to end.
    late : (1,) int64
        Copies that were sent to silent agents, as far as they are remembered.
    late_arrival, late_size, late_order : (L,)
        Of each of them.
    """

    expected: Any
    missing: Any
    latest: Any
    begun: Any
    versions: Any
    arrivals: Any
    sent_after: Any
    told: Any
    late: Any
    late_arrival: Any
    late_size: Any
    late_order: Any


def first_rounds(graph: Graph, silent: Any, kinds: int) -> LosslessRounds:
    """The first round of all agents, of which (n,) some are ``silent`` from the start, and nobody waits for them."""
    agents, edges = graph.agents, len(graph.heads)
    speaking = np.bincount(graph.tails[~silent[graph.heads]], minlength=agents)
    expected = 1 + speaking.astype(np.int64)
    return LosslessRounds(
        expected=expected,
        missing=np.stack([expected, expected], axis=1),
        latest=np.zeros((agents, 2)),
        begun=np.ones(agents, dtype=np.int64),
        versions=np.full((2, kinds * edges), -1, dtype=np.int64),
        arrivals=np.full((2, (kinds + 1) * edges), -math.inf),
        sent_after=np.zeros((2, agents), dtype=np.int64),
        told=np.zeros(int(graph.degrees.max(initial=0))),
        late=np.zeros(1, dtype=np.int64),
        late_arrival=np.empty(0),
        late_size=np.empty(0, dtype=np.int64),
        late_order=np.empty(0, dtype=np.int64),
    )


def with_late_room(rounds: LosslessRounds, now: float, copies: int) -> LosslessRounds:
    """Rounds that can remember so many more copies to silent agents, and no longer those that came before ``now``."""
    count = int(rounds.late[0])
    if len(rounds.late_arrival) - count >= copies:
        return rounds
    coming = rounds.late_arrival[:count] >= now
    count = int(coming.sum())
    columns = {name: getattr(rounds, name) for name in ("late_arrival", "late_size", "late_order")}
    for name, old in columns.items():
        columns[name] = np.zeros(2 * (count + copies), dtype=old.dtype)
        columns[name][:count] = old[: len(coming)][coming]
    rounds.late[0] = count
    return rounds._replace(**columns)


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
    push(run, next_time(run, agent, number, latest), agent)


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
    number, first, last = run.agents.ticks[agent] + 1, run.offsets[agent], run.agents.silent[agent]
    for edge in range(first, run.offsets[agent + 1]):
        receiver = run.heads[edge]
        if run.agents.silent[receiver]:
            continue
        if last:
            expect_no_more(rounds, receiver, number)
        hold(run, rounds, receiver, number, rounds.told[edge - first])
    if not last:
        hold(run, rounds, agent, number, now)


@part(_nrt=False)
def open_step(run: RunTables, rounds: LosslessRounds, agent: int, now: float):  # pragma: no cover - compiled
    """Let an agent's inbox show the round before the one that it ends, and nothing have been sent in this one yet."""
    edges, first, last = len(run.heads), run.offsets[agent], run.offsets[agent + 1]
    tick = run.agents.ticks[agent]
    rounds.sent_after[tick & 1, agent] = run.counts[ORDER]
    for rank in range(last - first):
        rounds.told[rank] = now
    versions = rounds.versions[(tick - 1) & 1]
    for before in range(0, len(run.slots), max(1, edges)):
        for slot in range(before + first, before + last):
            row, old = versions[slot], run.slots.known[slot]
            if row >= 0:
                versions[slot], run.slots.known[slot] = -1, row  # when it was heard, `note_heard` says later
                if old >= 0:
                    release_version(run, old)


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
def send_messages(
    run: RunTables, rounds: LosslessRounds, agent: int, edges: Any, kind: int, row: int, drawn: int, sending: Any
):  # pragma: no cover - compiled
    """Send a version (-1: no numbers) over some of an agent's edges, whose copies were drawn from a place on.

    Of the version, ``sending`` has tick, size and time.
    """
    tick, size, now = sending
    of_kind, first, kept = kind * len(run.heads), run.offsets[agent], 0
    arrivals, versions = rounds.arrivals[tick & 1], rounds.versions[tick & 1]
    for edge in edges:
        u, v, _ = drawn_copy(run, drawn)
        drawn += 1
        arrival = now + time_under_way(run, edge, size, u, v)
        if run.agents.silent[run.heads[edge]]:
            count_late(run, rounds, arrival, size)
            continue
        arrivals[of_kind + edge] = arrival
        rounds.told[edge - first] = max(rounds.told[edge - first], arrival)
        if row >= 0:
            versions[of_kind + run.reverse[edge]] = row
            kept += 1
    if row >= 0:
        run.versions.references[row] += kept
    count_departures(run, len(edges), size)


@part(_nrt=False)
def count_late(run: RunTables, rounds: LosslessRounds, arrival: float, size: int):  # pragma: no cover - compiled
    """Remember a copy to a silent agent; there must be room for it."""
    place = rounds.late[0]
    rounds.late[0] += 1
    rounds.late_arrival[place], rounds.late_size[place] = arrival, size
    rounds.late_order[place] = run.counts[ORDER]


@part(_nrt=False)
def send_said_messages(
    run: RunTables, rounds: LosslessRounds, agent: int, edges: Any, kind: int, row: int, drawn: int
):  # pragma: no cover - compiled
    """Send what a planned step has said; see `hushnet.simulator.engine.batched.windows.send_said`."""
    sending = run.versions.tick[row], run.versions.bytes[row], run.versions.sent_at[row]
    send_messages(run, rounds, agent, edges, kind, row, drawn, sending)


@part(_nrt=False)
def say_nothing(
    run: RunTables, rounds: LosslessRounds, agent: int, now: float, header: int
):  # pragma: no cover - compiled
    """End a round in which an agent says nothing: a message without numbers to everybody."""
    kinds, first, last = len(run.slots) // max(1, len(run.heads)), run.offsets[agent], run.offsets[agent + 1]
    sending = run.agents.ticks[agent], header, now
    draw_copies(run, agent, range(first, last), run.agents.ticks[agent], KINDS - 1)
    for edge in range(first, last):
        count_message(run, 0)
        send_messages(run, rounds, agent, range(edge, edge + 1), kinds, -1, edge - first, sending)


@compiled(_nrt=False)
def count_arrivals(
    run: RunTables, rounds: LosslessRounds, now: float, barrier: Any, header: int
):  # pragma: no cover - compiled
    """Count what has arrived anywhere by ``now``, apart from what was sent after ``barrier`` at this instant.

    What is still under way was not shown, so that its slot has its version.
    """
    edges, links, size = len(run.heads), 0, 0
    for parity in range(2):
        arrivals, versions = rounds.arrivals[parity], rounds.versions[parity]
        for agent in range(len(run.agents)):
            sent_last = rounds.sent_after[parity, agent] >= barrier
            for edge in range(run.offsets[agent], run.offsets[agent + 1]):
                for of_kind in range(0, len(arrivals), edges):
                    arrival = arrivals[of_kind + edge]
                    if arrival > now or (arrival == now and sent_last):
                        links += 1
                        slot = of_kind + run.reverse[edge]
                        size += run.versions.bytes[versions[slot]] if of_kind < len(run.slots) else header
    for place in range(rounds.late[0]):
        arrival = rounds.late_arrival[place]
        if arrival > now or (arrival == now and rounds.late_order[place] > barrier):
            links += 1
            size += rounds.late_size[place]
    counts = run.counts
    counts[DELIVERED] += counts[IN_FLIGHT] - links
    counts[DELIVERED_BYTES] += counts[IN_FLIGHT_BYTES] - size
    counts[IN_FLIGHT], counts[IN_FLIGHT_BYTES] = links, size


@compiled(_nrt=False)
def run_rounds(
    run: RunTables,
    rounds: LosslessRounds,
    limit: float,
    forced: bool,
    header: int,
    plan: StepPlan,
    ports: Any,
    rows: Any,
):  # pragma: no cover - compiled
    """Run ends of rounds strictly before ``limit``, the first one anyway if ``forced``; why it stopped, agent, time.

    While a step is being made, its agent stays on top of the heap.
    """
    counts = run.counts
    while True:
        if counts[UNFINISHED]:
            agent, now = run.wakes.agent[0], run.wakes.time[0]
            counts[UNFINISHED] = 0
            take_top(run)
            close_round(run, rounds, agent, now)
            if run.agents.silent[agent]:
                why = clock_over(run, agent)
                if why != REACHED:
                    return why, agent, now
        if counts[HEAP] == 0:
            return IDLE, -1, math.inf
        now, agent = run.wakes.time[0], run.wakes.agent[0]
        if now >= limit and not forced:
            return REACHED, agent, now
        if used_up(run):
            return LOOK, agent, now
        degree = run.offsets[agent + 1] - run.offsets[agent]
        late = len(rounds.late_arrival) - rounds.late[0]
        if not has_room(run, plan, agent, ports) or late < degree * max(1, len(ports)):
            return FULL, agent, now
        forced = False
        run.agents.ticks[agent] += 1
        counts[WAKES] += 1
        counts[BARRIER], counts[UNFINISHED] = counts[ORDER], 1
        open_step(run, rounds, agent, now)
        said = plan_step(run, plan, agent, now, ports, rows)
        if said & UNMADE == 0 and has_to_end(plan):
            return ENDS, agent, now
        if said & UNMADE == 0:
            send_said(run, rounds, agent, ports, rows, draw_copies, send_said_messages)
        if said & UNSAID:
            say_nothing(run, rounds, agent, now, header)
        if is_counted(said) and count_step(run, agent):
            return COUNTED, agent, now
