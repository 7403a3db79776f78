"""Sending and delivering, once: versions and their references, what a slot knows, and the fate of a copy.

A message is a row of a pool (a *version*), shared by all links that it goes over, and goes back to the pool when
nothing refers to it. The slot of kind k on the directed edge e is k E + e. All arrays travel as one named tuple
(`hushnet.simulator.tables.mail.Mail`), so these functions must not allocate.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..network.latency import BRACKETS, PER_LINK, delay_of
from ..network.links import is_lost, state_of_link, under_way
from ..network.randomness import Purpose, draw_one
from ..tables.mail import (
    BANDWIDTH,
    COPIES_OUT,
    DELAY_CODE,
    DELAY_FIRST,
    DELAY_SECOND,
    LINE,
    LOSS_BAD,
    LOSS_CHANCE,
    LOSS_GOOD,
    MEAN_BAD,
    MEAN_GOOD,
    Mail,
)
from ..tables.notes import LOST_DELAY
from ..tables.tallies import (
    DELIVERED,
    DELIVERED_BYTES,
    DROPPED,
    DROPPED_BYTES,
    FREE_ROWS,
    IN_FLIGHT,
    IN_FLIGHT_BYTES,
    LOST,
    LOST_BYTES,
    MESSAGES,
    OBSERVED,
    ORDER,
    OVERTAKEN,
    SENT,
    SENT_BYTES,
    VECTORS,
)
from .forms import rule
from .notes import note_arrived, note_sent

MESSAGE = int(Purpose.MESSAGE)


@rule
def release_version(mail: Mail, row: int):
    """One reference to a version less; the last one gives it back."""
    line = LINE * row
    mail.references[line] -= 1
    if mail.references[line] == 0:
        mail.free_rows[mail.counts[FREE_ROWS]] = row
        mail.counts[FREE_ROWS] += 1


@rule
def hold_version(mail: Mail, held: Any, place: int, row: int):
    """Hold a version in a column of rows, in place of the one that is held there."""
    mail.references[LINE * row] += 1
    if held[place] >= 0:
        release_version(mail, held[place])
    held[place] = row


@rule
def copy_out(mail: Mail, slot: int):
    """Copy what a slot knows into the inbox."""
    begin, end = mail.places[slot], mail.places[slot + 1]
    row = mail.pool[mail.known[slot]]
    for k in range(end - begin):
        mail.values[begin + k] = row[k]


@rule
def set_latest(mail: Mail, slot: int, row: int, order: int):
    """Let a slot know a version that already counts its reference."""
    if mail.known[slot] >= 0:
        release_version(mail, mail.known[slot])
    line = LINE * row
    mail.known[slot] = row
    mail.heard_sent_at[slot] = mail.sent_at[line]
    mail.heard_order[slot] = order
    mail.heard_tick[slot] = mail.tick[line]
    if mail.constants[COPIES_OUT] != 0.0:
        copy_out(mail, slot)


@rule
def take_row(mail: Mail, sent_at: float, order: int, tick: int, size: float):
    """A free version, with one reference that its maker has to let go; there must be one."""
    mail.counts[FREE_ROWS] -= 1
    row = mail.free_rows[mail.counts[FREE_ROWS]]
    line = LINE * row
    mail.sent_at[line], mail.order[line], mail.tick[line] = sent_at, order, tick
    mail.size[line], mail.references[line] = size, 1
    return row


@rule(inlined=False)
def chance_in_burst(mail: Mail, sender: int, edge: int, now: float):
    """The probability of a loss on a link that is good and bad in turn."""
    key, constants, link = mail.key, mail.constants, mail.bursts[edge]
    means, numbers = (constants[MEAN_GOOD], constants[MEAN_BAD]), (mail.numbers[sender], mail.numbers[mail.heads[edge]])
    link[0], link[1], mail.burst_until[edge] = state_of_link(
        key[0], key[1], means[0], means[1], numbers[0], numbers[1], now, link[0], link[1], mail.burst_until[edge]
    )
    return constants[LOSS_GOOD] if link[1] else constants[LOSS_BAD]


@rule
def loss_chance(mail: Mail, sender: int, edge: int, now: float):
    """The probability that what is sent over a directed edge is lost; times must not decrease."""
    if mail.constants[MEAN_BAD] == 0.0:
        return mail.constants[LOSS_CHANCE]
    return chance_in_burst(mail, sender, edge, now)


@rule
def transfer_time(constants: Any, size: Any):
    """How long the bytes of a copy take; where bandwidth is unlimited, no time, and no division."""
    bandwidth = constants[BANDWIDTH]
    return 0.0 if bandwidth == math.inf else size / bandwidth


@rule
def time_under_way(mail: Mail, edge: int, size: Any, u: float, v: float):
    """How long a copy is under way that is not lost, from its two uniforms."""
    constants = mail.constants
    code = int(constants[DELAY_CODE])
    if code == PER_LINK:
        delay = mail.link_delays[edge]
    else:
        delay = delay_of(code, constants[DELAY_FIRST], constants[DELAY_SECOND], u, v)
    return under_way(delay, transfer_time(constants, size))


@rule
def time_bound(constants: Any, brackets: Any, size: Any, u: float, side: int):
    """How long a copy is under way at least (0) or at most (1), where there are bounds by the first uniform."""
    return under_way(brackets[int(u * BRACKETS)][side], transfer_time(constants, size))


@rule
def fate_or_bound(mail: Mail, sender: int, edge: int, tick: int, transmission: int, size: Any, now: float, late: bool):
    """The first uniform of a copy, and how long it is under way, infinite if it is lost; if ``late``, at least.

    The delay of one that is lost is only drawn where somebody observes.
    """
    u, v, w = draw_one(
        mail.key[0],
        mail.key[1],
        mail.numbers[sender],
        mail.numbers[mail.heads[edge]],
        np.uint64(tick) & np.uint64(0xFFFFFFFF),
        MESSAGE,
        transmission,
    )
    lost = is_lost(w, loss_chance(mail, sender, edge, now))
    if lost and mail.counts[OBSERVED] == 0:
        return u, math.inf
    if late:
        return u, time_bound(mail.constants, mail.brackets, size, u, 0)
    delay = time_under_way(mail, edge, size, u, v)
    if lost:
        mail.noting[LOST_DELAY] = delay
        return u, math.inf
    return u, delay


@rule
def fate(mail: Mail, sender: int, edge: int, tick: int, transmission: int, size: Any, now: float):
    """How long a copy is under way, infinite if it is lost: the law of the network, in its compiled form."""
    return fate_or_bound(mail, sender, edge, tick, transmission, size, now, False)[1]


@rule
def count_message(mail: Mail, vectors: int):
    """Count a message that carries so many model-sized vectors over all its links; its order of sending."""
    mail.counts[ORDER] += 1
    mail.counts[MESSAGES] += 1
    mail.counts[VECTORS] += vectors
    return mail.counts[ORDER]


@rule
def count_departure(
    mail: Mail, sender: int, edge: int, tick: int, kind: int, row: int, size: Any, now: float, delay: float
):
    """Count a copy of the last message that is under way for so long, infinite if it is lost.

    Its kind and version are for the note, see `hushnet.simulator.tables.notes`.
    """
    counts = mail.counts
    counts[SENT] += 1
    counts[SENT_BYTES] += size
    if delay == math.inf:
        counts[LOST] += 1
        counts[LOST_BYTES] += size
    else:
        counts[IN_FLIGHT] += 1
        counts[IN_FLIGHT_BYTES] += size
    if counts[OBSERVED]:
        note_sent(mail, sender, edge, tick, kind, row, size, now, delay)


@rule
def depart(
    mail: Mail, sender: int, edge: int, tick: int, transmission: int, kind: int, row: int, size: Any, now: float
):
    """Send a copy of the last message over a directed edge; how long it is under way, infinite if it is lost."""
    delay = fate(mail, sender, edge, tick, transmission, size, now)
    count_departure(mail, sender, edge, tick, kind, row, size, now, delay)
    return delay


@rule
def count_arrival(mail: Mail, size: Any, up: bool):
    """Count an arrival: delivered if the receiver is up, dropped otherwise."""
    counts = mail.counts
    counts[IN_FLIGHT] -= 1
    counts[IN_FLIGHT_BYTES] -= size
    if up:
        counts[DELIVERED] += 1
        counts[DELIVERED_BYTES] += size
    else:
        counts[DROPPED] += 1
        counts[DROPPED_BYTES] += size


@rule
def arrive(mail: Mail, slot: int, order: int, size: Any, now: float, up: bool, newest: bool):
    """A copy arrives at a slot; one whose receiver is up is overtaken unless it is the newest."""
    count_arrival(mail, size, up)
    if up and not newest:
        mail.counts[OVERTAKEN] += 1
    if mail.counts[OBSERVED]:
        note_arrived(mail, slot, order, now, up, newest)


@rule
def deliver(mail: Mail, slot: int, row: int, order: int, now: float, up: bool):
    """A copy arrives, with a reference to its version: known if the receiver is up and it is the newest by sending.

    Returns whether it was.
    """
    newest = up and order > mail.heard_order[slot]
    arrive(mail, slot, order, mail.size[LINE * row], now, up, newest)
    if newest:
        set_latest(mail, slot, row, order)
    else:
        release_version(mail, row)
    return newest
