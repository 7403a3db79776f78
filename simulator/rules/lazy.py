"""Lazy delivery, compiled: a message costs no event; whoever could have heard it looks when it next wakes.

A message is a row of a pool (a *version*), shared by all links that it goes over. Its fate on a link is drawn when it
is sent; a copy under way is a node (arrival, version) in a list per inbox slot, newest first. Where copies take turns
on a downlink, it is there by when it reaches that, until its turn is known. When the receiver wakes,
and at record instants, what has arrived by then is delivered (`hushnet.simulator.rules.delivery.deliver`) in the order
of arrival and, at equal times, of sending. A version goes back to the pool when no node, slot or sender refers to it.

All arrays travel as one named tuple (`hushnet.simulator.tables.run.RunTables`), so these functions must not allocate.

The slot of kind k on the directed edge e is k E + e. An arrival precedes changes of availability at its instant, unless
it was sent at that very instant (see `hushnet.simulator.tables.effects.ARRIVAL`).
"""

from __future__ import annotations

import math
from typing import Any

from ...agents.compilation import compiled, part
from ..tables.run import DOWNLINK, RunTables
from ..tables.tallies import FREE_NODES, ORDER
from .delivery import (
    count_departure,
    deliver,
    drawn_copy,
    fate_drawn,
    is_open,
    set_latest,
    take_row,
    take_turn,
)
from .forms import rule

EVER = 2**62
"""An order of sending that is after every message."""


@rule
def changes_until(run: RunTables, agent: int, time: float, after: Any):
    """Number of an agent's changes before ``time``, with those at it where it is after them."""
    changes = run.changes[agent]
    low, high = 0, len(changes)
    while low < high:
        middle = (low + high) // 2
        if changes[middle] < time or (after and changes[middle] == time):
            low = middle + 1
        else:
            high = middle
    return low


@rule
def is_up(run: RunTables, agent: int, time: float, after: Any):
    """True if an agent is present and up, just before the changes at ``time`` or just after them."""
    join, leave = run.agents.joins[agent], run.agents.leaves[agent]
    if leave <= join or time > leave or join > time:
        return False
    if (after and time == leave) or (not after and join == time and join > 0.0):
        return False
    return run.agents.was_up[agent] != (changes_until(run, agent, time, after) % 2 == 1)


@rule
def up_since(run: RunTables, agent: int, now: float):
    """Find since when an agent has been up without a break until after the changes at ``now``; infinite if down."""
    join, leave = run.agents.joins[agent], run.agents.leaves[agent]
    if leave <= join or now >= leave or join > now:
        return math.inf
    changes = changes_until(run, agent, now, True)
    if run.agents.was_up[agent] == (changes % 2 == 1):
        return math.inf
    return join if changes == 0 else max(join, run.changes[agent][changes - 1])


@part(_nrt=False)
def kinds_of(run: RunTables):  # pragma: no cover - compiled
    """Number of kinds of messages that have channels; 0 without links."""
    return len(run.slots) // len(run.heads) if len(run.heads) else 0


@part(_nrt=False)
def deliver_pending(
    run: RunTables, slot: int, receiver: int, now: float, since: float, barrier: Any
):  # pragma: no cover - compiled
    """Deliver what has arrived at a slot by ``now``, apart from what was sent after ``barrier`` at this instant.

    The receiver is up from after ``since`` until ``now``; nothing is known of when it is before. Copies are met newest
    first; each passes only those that were sent after it and yet arrived before it.
    """
    counts, following = run.counts, run.nodes.following
    node, before, first = run.slots.first_node[slot], -1, -1
    while node >= 0:
        after, arrival = following[node], run.nodes.arrival[node]
        if arrival > now or (arrival == now and run.nodes.rank[node] > barrier):
            before, node = node, after
            continue
        if before < 0:
            run.slots.first_node[slot] = after
        else:
            following[before] = after
        earlier, later = -1, first
        while later >= 0 and run.nodes.arrival[later] < arrival:
            earlier, later = later, following[later]
        following[node] = later
        if earlier < 0:
            first = node
        else:
            following[earlier] = node
        node = after
    while first >= 0:
        arrival, row = run.nodes.arrival[first], run.nodes.version[first]
        run.nodes.free[counts[FREE_NODES]] = first
        counts[FREE_NODES] += 1
        up = arrival > since or is_up(run, receiver, arrival, arrival == run.versions.sent_at[row])
        deliver(run, slot, row, run.nodes.rank[first], arrival, up, False)
        first = following[first]


@part(_nrt=False)
def take_turns(run: RunTables, agent: int, now: float, barrier: Any):  # pragma: no cover - compiled
    """Let copies that have reached an agent's shared downlink by ``now`` take their turns, in the order of reaching it.

    Those that reach it later have later turns; from then on, they arrive when their transfer is done.
    """
    if run.constants[DOWNLINK] == math.inf:
        return
    arrival, version, rank = run.nodes.arrival, run.nodes.version, run.nodes.rank
    # Places of nodes in use are no free ones: behind the free ones there is room for all of them.
    nodes, first, count = run.nodes.free, run.counts[FREE_NODES], 0
    for edge in range(run.offsets[agent], run.offsets[agent + 1]):
        for slot in range(edge, len(run.slots), len(run.heads)):
            node = run.slots.first_node[slot]
            while node >= 0:
                reached = arrival[node] < now or (arrival[node] == now and rank[node] <= barrier)
                if version[node] < 0 and reached:
                    nodes[first + count] = node
                    count += 1
                node = run.nodes.following[node]
    for place in range(count // 2 - 1, -1, -1):
        sift_down(run, first, count, place)
    for left in range(count - 1, -1, -1):
        node, nodes[first] = nodes[first], nodes[first + left]
        sift_down(run, first, left, 0)
        version[node] = -1 - version[node]
        size, free = run.versions.bytes[version[node]], run.agents.downlink_free
        arrival[node] = take_turn(run.constants[DOWNLINK], free, agent, size, arrival[node])


@part(_nrt=False)
def sift_down(run: RunTables, first: int, count: int, place: int):  # pragma: no cover - compiled
    """Move a copy down in a heap of so many, behind the free nodes: on top is the first by arrival and by sending."""
    nodes, arrival, rank = run.nodes.free, run.nodes.arrival, run.nodes.rank
    while 2 * place + 1 < count:
        child, here = first + 2 * place + 1, first + place
        if child + 1 < first + count and goes_before(arrival, rank, nodes[child + 1], nodes[child]):
            child += 1
        if not goes_before(arrival, rank, nodes[child], nodes[here]):
            return
        nodes[child], nodes[here] = nodes[here], nodes[child]
        place = child - first


@part(_nrt=False)
def goes_before(arrival: Any, rank: Any, one: int, other: int):  # pragma: no cover - compiled
    """True if a copy reaches its receiver before another one, or was sent before it and reaches it with it."""
    return arrival[one] < arrival[other] or (arrival[one] == arrival[other] and rank[one] < rank[other])


@part(_nrt=False)
def slots_with_copies(run: RunTables, first: int, last: int):  # pragma: no cover - compiled
    """Write into ``awaited`` the slots of some edges for which copies are under way; how many they are.

    There is no branch in it that a processor would have to guess, and would guess wrong half of the time.
    """
    edges, kinds, found = len(run.heads), kinds_of(run), 0
    for edge in range(first, last):
        for kind in range(kinds):
            slot = kind * edges + edge
            run.awaited[found] = slot
            found += run.slots.first_node[slot] >= 0
    return found


@compiled(_nrt=False)
def deliver_all_pending(run: RunTables, now: float, barrier: Any):  # pragma: no cover - compiled
    """Settle what has arrived anywhere by ``now``."""
    edges, kinds = len(run.heads), kinds_of(run)
    for agent in range(len(run.offsets) - 1):
        since = up_since(run, agent, now)
        take_turns(run, agent, now, barrier)
        for edge in range(run.offsets[agent], run.offsets[agent + 1]):
            for kind in range(kinds):
                slot = kind * edges + edge
                if run.slots.first_node[slot] >= 0:
                    deliver_pending(run, slot, agent, now, since, barrier)


@part(_nrt=False)
def send_copy(
    run: RunTables, sender: int, edge: int, kind: int, row: int, uniforms: Any, sending: Any
):  # pragma: no cover - compiled
    """Send a version over one directed edge; whether it is kept under way there, because it is not lost.

    Of the version, ``sending`` has tick, size, time and order; its reference is for the caller to count.
    """
    tick, size, now, order = sending
    delay = fate_drawn(run, sender, edge, uniforms, size, now)
    count_departure(run, sender, edge, tick, kind, row, size, now, delay)
    if delay == math.inf:
        return False
    run.counts[FREE_NODES] -= 1
    node = run.nodes.free[run.counts[FREE_NODES]]
    slot = kind * len(run.heads) + run.reverse[edge]
    run.nodes.arrival[node] = now + delay
    run.nodes.version[node] = row if run.constants[DOWNLINK] == math.inf else -1 - row
    run.nodes.rank[node] = order
    run.nodes.following[node] = run.slots.first_node[slot]
    run.slots.first_node[slot] = node
    return True


@part(_nrt=False)
def send_copies(
    run: RunTables, _tables: Any, sender: int, edges: Any, kind: int, row: int, drawn: int
):  # pragma: no cover - compiled
    """Send a version over some of a sender's edges, whose copies were drawn from a place on; there must be room."""
    kept = 0
    sending = (run.versions.tick[row], run.versions.bytes[row], run.versions.sent_at[row], run.versions.order[row])
    for edge in edges:
        if is_open(run, edge):
            kept += send_copy(run, sender, edge, kind, row, drawn_copy(run, drawn), sending)
        drawn += 1
    run.versions.references[row] += kept


@part(_nrt=False)
def tell(run: RunTables, slot: int, row: int, order: int):  # pragma: no cover - compiled
    """Give a slot a version reliably and at once."""
    run.versions.references[row] += 1
    set_latest(run, slot, row, order)


@compiled(_nrt=False)
def tell_many(run: RunTables, slots: Any, row: int, order: int):  # pragma: no cover - compiled
    """`tell` for several slots, with consecutive orders."""
    for k in range(len(slots)):
        tell(run, slots[k], row, order + k)


@compiled(_nrt=False)
def tell_each(run: RunTables, told: Any):  # pragma: no cover - compiled
    """Give slots what they are told; (k, 2) slot and version.

    Each version has a reference for the slot already.
    """
    for k in range(len(told)):
        slot, row = told[k]
        run.counts[ORDER] += 1
        set_latest(run, slot, row, run.counts[ORDER])


@compiled(_nrt=False)
def keep_starts(run: RunTables, agents: Any, now: float, size: Any):  # pragma: no cover - compiled
    """Take a version for what each of (k,) agents sends at its start; there must be room for them.

    Each sends a message of the first kind and of this size.
    """
    for agent in agents:
        run.latest[agent] = take_row(run, now, 0, -1, size)  # which holds its one reference


@compiled(_nrt=False)
def tell_starts(run: RunTables, agents: Any, present: Any):  # pragma: no cover - compiled
    """Send present neighbours the starts of some agents, reliably and at once; return the number of copies."""
    before = run.counts[ORDER]
    for agent in agents:
        for edge in range(run.offsets[agent], run.offsets[agent + 1]):
            if present[run.heads[edge]] and is_open(run, edge):
                run.counts[ORDER] += 1
                tell(run, run.reverse[edge], run.latest[agent], run.counts[ORDER])
    return run.counts[ORDER] - before
