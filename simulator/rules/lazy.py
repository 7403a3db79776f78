"""Lazy delivery, compiled: a message costs no event; whoever could have heard it looks when it next wakes.

A message is a row of a pool (a *version*), shared by all links that it goes over. Its fate on a link is drawn when it
is sent; a copy under way is a node (arrival, version) in a list per inbox slot, newest first. When the receiver wakes,
and at record instants, what has arrived by then is delivered (`hushnet.simulator.rules.delivery.deliver`) in the order
of arrival and, at equal times, of sending. A version goes back to the pool when no node, slot or sender refers to it.

Where a delay is dear to draw, a copy under way may have bounds of its arrival in place of it
(`hushnet.simulator.world.mail.with_brackets`), and the uniform that it is drawn from once they do not say enough.

All arrays travel as one named tuple (`hushnet.simulator.tables.mail.Mail`), so these functions must not allocate.

The slot of kind k on the directed edge e is k E + e. An arrival precedes changes of availability at its instant, unless
it was sent at that very instant (see `hushnet.agents.agent.ARRIVAL`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...agents.compilation.compiled import compiled
from ...agents.compilation.fetching import prefetch, prefetch_row
from ..network.latency import delay_of
from ..network.randomness import lasting
from ..tables.mail import DELAY_CODE, DELAY_FIRST, DELAY_SECOND, LINE, Mail
from ..tables.tallies import FREE_NODES, ORDER
from .delivery import (
    copy_out,
    count_departure,
    count_message,
    deliver,
    fate_or_bound,
    release_version,
    set_latest,
    take_row,
    time_bound,
    transfer_time,
)
from .forms import rule

EVER = 2**62
"""An order of sending that is after every message."""


@rule
def is_up(mail: Mail, agent: int, time: float, after: Any):
    """Whether an agent is present and up, just before the changes at ``time`` or just after them."""
    join, leave = mail.joins[agent], mail.leaves[agent]
    if leave <= join or time > leave or join > time:
        return False
    if (after and time == leave) or (not after and join == time and join > 0.0):
        return False
    changes = mail.changes[agent]
    low, high = 0, len(changes)
    while low < high:
        middle = (low + high) // 2
        if changes[middle] < time or (after and changes[middle] == time):
            low = middle + 1
        else:
            high = middle
    return mail.was_up[agent] != (low % 2 == 1)


@rule
def up_since(mail: Mail, agent: int, now: float):
    """Find since when an agent has been up without a break until after the changes at ``now``; infinite if down."""
    join, leave = mail.joins[agent], mail.leaves[agent]
    if leave <= join or now >= leave or join > now:
        return math.inf
    changes = mail.changes[agent]
    low, high = 0, len(changes)
    while low < high:
        middle = (low + high) // 2
        if changes[middle] <= now:
            low = middle + 1
        else:
            high = middle
    if mail.was_up[agent] == (low % 2 == 1):
        return math.inf
    return join if low == 0 else max(join, changes[low - 1])


@compiled(forceinline=True, _nrt=False)
def kinds_of(mail: Mail):  # pragma: no cover - compiled
    """How many kinds of messages have slots; none without links."""
    return len(mail.first_node) // len(mail.heads) if len(mail.heads) else 0


@compiled(_nrt=False)
def copy_all(mail: Mail):  # pragma: no cover - compiled
    """Copy everything known into the inbox."""
    for slot in range(len(mail.known)):
        if mail.known[slot] >= 0:
            copy_out(mail, slot)


class LateDraws(NamedTuple):
    """What of the `Mail` says when copies arrive whose delays were not drawn yet; see there."""

    constants: Any
    brackets: Any
    uniform: Any
    arrival: Any
    version: Any
    sent_at: Any
    size: Any


@compiled(forceinline=True, _nrt=False)
def late_draws(mail: Mail):  # pragma: no cover - compiled
    """Gather the arrays that delays are drawn from, as few as there can be."""
    return LateDraws(
        mail.constants, mail.brackets, mail.uniform, mail.arrival, mail.version, mail.sent_at, mail.size
    )  # fmt: skip


@compiled(_nrt=False)
def latest(draws: LateDraws, node: int):  # pragma: no cover - compiled
    """When a copy arrives at the latest."""
    row, u = draws.version[node], draws.uniform[node]
    if u == 0.0:
        return draws.arrival[node]
    return draws.sent_at[LINE * row] + time_bound(draws.constants, draws.brackets, draws.size[LINE * row], u, 1)


@compiled(_nrt=False)
def draw_arrival(draws: LateDraws, node: int):  # pragma: no cover - compiled
    """Draw the delay of a copy, if that was not done."""
    row, u, constants = draws.version[node], draws.uniform[node], draws.constants
    if u > 0.0:
        delay = delay_of(int(constants[DELAY_CODE]), constants[DELAY_FIRST], constants[DELAY_SECOND], u, 0.0)
        draws.arrival[node] = draws.sent_at[LINE * row] + lasting(
            delay + transfer_time(constants, draws.size[LINE * row])
        )
        draws.uniform[node] = 0.0


@compiled(_nrt=False)
def is_before(draws: LateDraws, one: int, other: int):  # pragma: no cover - compiled
    """Whether a copy arrives before another one."""
    if latest(draws, one) < draws.arrival[other]:
        return True
    if latest(draws, other) < draws.arrival[one]:
        return False
    draw_arrival(draws, one)
    draw_arrival(draws, other)
    return draws.arrival[one] < draws.arrival[other]


@compiled(forceinline=True, _nrt=False)
def deliver_pending(
    mail: Mail, late: Any, slot: int, receiver: int, now: float, since: float, barrier: Any
):  # pragma: no cover - compiled
    """Deliver what has arrived at a slot by ``now``, apart from what was sent after ``barrier`` at this instant.

    The receiver is up from after ``since`` until ``now``; nothing is known of when it is before. Copies are met newest
    first; each passes only those that were sent after it and yet arrived before it. Whether delays are drawn ``late``
    is a constant where it can be.
    """
    counts, following = mail.counts, mail.following
    node, before, first = mail.first_node[slot], -1, -1
    while node >= 0:
        after, arrival = following[node], mail.arrival[node]
        if late and arrival <= now <= latest(late_draws(mail), node):
            draw_arrival(late_draws(mail), node)
            arrival = mail.arrival[node]
        if arrival > now or (arrival == now and mail.order[LINE * mail.version[node]] > barrier):
            before, node = node, after
            continue
        if before < 0:
            mail.first_node[slot] = after
        else:
            following[before] = after
        earlier, later = -1, first
        while later >= 0 and (is_before(late_draws(mail), later, node) if late else mail.arrival[later] < arrival):
            earlier, later = later, following[later]
        following[node] = later
        if earlier < 0:
            first = node
        else:
            following[earlier] = node
        node = after
    while first >= 0:
        arrival, row = mail.arrival[first], mail.version[first]
        mail.free_nodes[counts[FREE_NODES]] = first
        counts[FREE_NODES] += 1
        up = arrival > since or is_up(mail, receiver, arrival, arrival == mail.sent_at[LINE * row])
        deliver(mail, slot, row, mail.order[LINE * row], arrival, up)
        first = following[first]


@compiled(forceinline=True, _nrt=False)
def slots_with_copies(mail: Mail, first: int, last: int):  # pragma: no cover - compiled
    """Write into ``awaited`` the slots of some edges for which copies are under way; how many they are.

    The memory of the newest copies is asked for. There is no branch in it that a processor would have to guess, and
    would guess wrong half of the time.
    """
    edges, kinds, found = len(mail.heads), kinds_of(mail), 0
    for edge in range(first, last):
        for kind in range(kinds):
            slot = kind * edges + edge
            mail.awaited[found] = slot
            prefetch(mail.arrival, mail.first_node[slot])
            found += mail.first_node[slot] >= 0
    return found


@compiled(forceinline=True, _nrt=False)
def fetch(mail: Mail, agent: int, kinds: Any):  # pragma: no cover - compiled
    """Ask for the memory of what has come for an agent, and of where its own messages of so many kinds go.

    Copies come first, then the versions that they carry: what they have in common is only known from the copies.
    """
    edges, first, last = len(mail.heads), mail.offsets[agent], mail.offsets[agent + 1]
    for slots in range(0, len(mail.known), edges):
        for slot in range(slots + first, slots + last):
            prefetch(mail.arrival, mail.first_node[slot])
            prefetch(mail.references, LINE * mail.known[slot])
    for edge in range(first, last):
        prefetch(mail.numbers, mail.heads[edge])
        for kind in range(kinds):
            prefetch(mail.first_node, kind * edges + mail.reverse[edge])
    for slots in range(0, len(mail.known), edges):
        for slot in range(slots + first, slots + last):
            node = mail.first_node[slot]
            if node >= 0:
                row = mail.version[node]
                prefetch(mail.references, LINE * row)
                prefetch_row(mail.pool, row)
                prefetch(mail.arrival, mail.following[node])
    for slots in range(0, len(mail.known), edges):
        for slot in range(slots + first, slots + last):
            node = mail.first_node[slot]
            if node >= 0:
                second = mail.following[node]
                if second >= 0:
                    prefetch(mail.references, LINE * mail.version[second])
                    prefetch(mail.arrival, mail.following[second])


@compiled(forceinline=True, _nrt=False)
def fetch_agent(mail: Mail, agent: int):  # pragma: no cover - compiled
    """Ask for the memory of what an agent, who is to wake soon, and its slots are known by."""
    prefetch(mail.ticks, agent)
    prefetch(mail.latest, agent)
    prefetch(mail.means, agent)
    prefetch(mail.numbers, agent)
    last = mail.offsets[agent + 1]
    for slot in range(mail.offsets[agent], last + 7, 8):
        prefetch(mail.first_node, slot)
        prefetch(mail.known, slot)
        prefetch(mail.heard_sent_at, slot)
        prefetch(mail.heard_order, slot)
        prefetch(mail.heard_tick, slot)
        prefetch(mail.heads, slot)
        prefetch(mail.reverse, slot)


@compiled(_nrt=False)
def deliver_all_pending(mail: Mail, now: float, barrier: Any):  # pragma: no cover - compiled
    """Settle what has arrived anywhere by ``now``."""
    edges, kinds, late = len(mail.heads), kinds_of(mail), len(mail.brackets) > 0
    for agent in range(len(mail.offsets) - 1):
        since = up_since(mail, agent, now)
        for edge in range(mail.offsets[agent], mail.offsets[agent + 1]):
            for kind in range(kinds):
                slot = kind * edges + edge
                if mail.first_node[slot] >= 0:
                    deliver_pending(mail, late, slot, agent, now, since, barrier)


@compiled(forceinline=True, _nrt=False)
def send_copy(
    mail: Mail, late: Any, sender: int, edge: int, kind: int, row: int, transmission: int, sending: Any
):  # pragma: no cover - compiled
    """Send a version over one directed edge; whether it is kept under way there, because it is not lost.

    Of the version, ``sending`` has tick, size and time; its reference is for the caller to count.
    """
    tick, size, now = sending
    u, delay = fate_or_bound(mail, sender, edge, tick, transmission, size, now, late)
    count_departure(mail, sender, edge, tick, kind, row, size, now, delay)
    if delay == math.inf:
        return False
    mail.counts[FREE_NODES] -= 1
    node = mail.free_nodes[mail.counts[FREE_NODES]]
    slot = kind * len(mail.heads) + mail.reverse[edge]
    mail.arrival[node] = now + delay
    mail.version[node] = row
    mail.following[node] = mail.first_node[slot]
    mail.first_node[slot] = node
    if late:
        mail.uniform[node] = u
    return True


@compiled(forceinline=True, _nrt=False)
def send_copies(
    mail: Mail, late: Any, sender: int, edges: Any, kind: int, row: int, transmission: int
):  # pragma: no cover - compiled
    """Send a version over some of a sender's edges; there must be room for its copies."""
    sending, kept = (mail.tick[LINE * row], mail.size[LINE * row], mail.sent_at[LINE * row]), 0
    for edge in edges:
        kept += send_copy(mail, late, sender, edge, kind, row, transmission, sending)
    mail.references[LINE * row] += kept


@compiled(_nrt=False)
def send_version(
    mail: Mail, sender: int, edges: Any, kind: int, vector: Any, transmission: int, now: float, vectors: int, size: Any
):  # pragma: no cover - compiled
    """Send a vector over some of a sender's edges; there must be room for it."""
    row = take_row(mail, now, count_message(mail, vectors * len(edges)), mail.ticks[sender], size)
    for k in range(len(vector)):
        mail.pool[row, k] = vector[k]
    send_copies(mail, len(mail.brackets) > 0, sender, edges, kind, row, transmission)
    release_version(mail, row)


@compiled(forceinline=True, _nrt=False)
def tell(mail: Mail, slot: int, row: int, order: int):  # pragma: no cover - compiled
    """Give a slot a version reliably and at once."""
    mail.references[LINE * row] += 1
    set_latest(mail, slot, row, order)


@compiled(_nrt=False)
def tell_many(mail: Mail, slots: Any, row: int, order: int):  # pragma: no cover - compiled
    """`tell` for several slots, with consecutive orders."""
    for k in range(len(slots)):
        tell(mail, slots[k], row, order + k)


@compiled(_nrt=False)
def tell_each(mail: Mail, told: Any, now: float):  # pragma: no cover - compiled
    """Give slots what they are told now, after what has arrived there; (k, 3) slot, receiver, and version.

    Each version has a reference for the slot already.
    """
    for k in range(len(told)):
        slot, receiver, row = told[k]
        deliver_pending(mail, len(mail.brackets) > 0, slot, receiver, now, math.inf, EVER)
        mail.counts[ORDER] += 1
        set_latest(mail, slot, row, mail.counts[ORDER])
