"""Sending and delivering, once: versions and their references, what a slot knows, and the fate of a copy.

A message is a row of a pool (a *version*), shared by all links that it goes over, and goes back to the pool when
nothing refers to it. The slot of kind k on the directed edge e is k E + e. All arrays travel as one named tuple
(`hushnet.simulator.tables.run.RunTables`), so these functions must not allocate. Where anybody observes
(``counts[OBSERVED]``), single events are noted, as far as they are asked for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..network.latency import PER_LINK, delay_of
from ..network.links import is_lost, lasting, state_of_link, under_way
from ..network.randomness import Purpose, draw_one, fill_draws
from ..tables.effects import (
    ARRIVE,
    ARRIVED,
    DEPARTED,
    FATE_DELIVERED,
    FATE_DROPPED,
    FATE_LOST,
    FATE_OVERTAKEN,
    FATE_UNDER_WAY,
    KEPT,
    REACH,
    TOLD,
    WOKE,
)
from ..tables.run import (
    BANDWIDTH,
    DELAY_CODE,
    DELAY_FIRST,
    DELAY_SECOND,
    DOWNLINK,
    FIRST_NOTED,
    LAST_NOTED_AT,
    LOSS_BAD,
    LOSS_CHANCE,
    LOSS_GOOD,
    LOST_DELAY,
    MEAN_BAD,
    MEAN_GOOD,
    PLANNED,
    UPLINK,
    RunTables,
)
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
    NOTES,
    OBSERVED,
    ORDER,
    OVERTAKEN,
    SENT,
    SENT_BYTES,
    VECTORS,
)
from .forms import rule

MESSAGE = int(Purpose.MESSAGE)


@rule
def release_version(run: RunTables, row: int):
    """One reference to a version less; the last one gives it back, unless steps may still have to read it."""
    run.versions.references[row] -= 1
    if run.versions.references[row] == 0 and run.constants[PLANNED] == 0.0:
        run.versions.free[run.counts[FREE_ROWS]] = row
        run.counts[FREE_ROWS] += 1


@rule
def hold_version(run: RunTables, held: Any, place: int, row: int):
    """Hold a version in a column of rows, in place of the one that is held there."""
    run.versions.references[row] += 1
    if held[place] >= 0:
        release_version(run, held[place])
    held[place] = row


@rule
def set_latest(run: RunTables, slot: int, row: int, order: int):
    """Let a slot know a version that already counts its reference."""
    if run.slots.known[slot] >= 0:
        release_version(run, run.slots.known[slot])
    run.slots.known[slot] = row
    run.slots.heard_sent_at[slot], run.slots.heard_order[slot] = run.versions.sent_at[row], order
    run.slots.heard_tick[slot] = run.versions.tick[row]


@rule
def take_row(run: RunTables, sent_at: float, order: int, tick: int, size: float):
    """A free version, with one reference that its maker has to let go; there must be one."""
    run.counts[FREE_ROWS] -= 1
    row = run.versions.free[run.counts[FREE_ROWS]]
    run.versions.sent_at[row], run.versions.order[row], run.versions.tick[row] = sent_at, order, tick
    run.versions.bytes[row], run.versions.references[row] = size, 1
    return row


@rule(inlined=False)
def chance_in_burst(run: RunTables, sender: int, edge: int, now: float):
    """The probability of a loss on a link that is good and bad in turn."""
    key, constants, links, numbers = run.key, run.constants, run.links, run.agents.numbers
    links.period[edge], links.good[edge], links.until[edge] = state_of_link(
        key[0], key[1], constants[MEAN_GOOD], constants[MEAN_BAD], numbers[sender], numbers[run.heads[edge]], now,
        links.period[edge], links.good[edge], links.until[edge],
    )  # fmt: skip
    return constants[LOSS_GOOD] if links.good[edge] else constants[LOSS_BAD]


@rule
def loss_chance(run: RunTables, sender: int, edge: int, now: float):
    """The probability that what is sent over a directed edge is lost; times must not decrease."""
    if run.constants[MEAN_BAD] == 0.0:
        return run.constants[LOSS_CHANCE]
    return chance_in_burst(run, sender, edge, now)


@rule
def transfer_time(constants: Any, size: Any):
    """Time that the bytes of a copy take; where bandwidth is unlimited, no time, and no division."""
    bandwidth = constants[BANDWIDTH]
    return 0.0 if bandwidth == math.inf else size / bandwidth


@rule
def time_under_way(run: RunTables, edge: int, size: Any, u: float, v: float):
    """Time that a copy which is not lost is in flight, from its two uniforms."""
    constants = run.constants
    code = int(constants[DELAY_CODE])
    if code == PER_LINK:
        delay = run.link_delays[edge]
    else:
        delay = delay_of(code, constants[DELAY_FIRST], constants[DELAY_SECOND], u, v)
    return under_way(delay, transfer_time(constants, size))


@rule
def take_turn(rate: float, free: Any, agent: int, size: Any, now: float):
    """Transfer a copy on an agent's link from now on, or once it is free; when that is done, and the link free again.

    Transfers take turns there in the order in which they are asked for.
    """
    if rate == math.inf:
        return now
    done = max(now, free[agent]) + lasting(size / rate)
    free[agent] = done
    return done


@rule
def end_of_way(run: RunTables):
    """What happens after a copy's delay: it arrives, or reaches a downlink on which copies take turns."""
    return ARRIVE if run.constants[DOWNLINK] == math.inf else REACH


@rule
def is_open(run: RunTables, edge: int):
    """True if messages go over a directed edge."""
    return len(run.opened) == 0 or run.opened[edge]


@rule
def count_open(run: RunTables, first: int, last: int):
    """Number of directed edges, of some in a row, over which messages go."""
    if len(run.opened) == 0:
        return last - first
    count = 0
    for edge in range(first, last):
        count += run.opened[edge]
    return count


@rule
def uniforms_of(run: RunTables, sender: int, edge: int, tick: int, transmission: int):
    """The three uniforms of a copy: two for its delay, one for its loss."""
    return draw_one(
        run.key[0],
        run.key[1],
        run.agents.numbers[sender],
        run.agents.numbers[run.heads[edge]],
        np.uint64(tick) & np.uint64(0xFFFFFFFF),
        MESSAGE,
        transmission,
    )


@rule
def draw_copies(run: RunTables, sender: int, edges: Any, tick: int, transmission: int):
    """Draw the three uniforms of the copies over some of a sender's edges, by place among those."""
    receivers = run.receivers[: len(edges)]
    for k, edge in enumerate(edges):
        receivers[k] = run.agents.numbers[run.heads[edge]]
    tick_word = np.uint64(tick) & np.uint64(0xFFFFFFFF)
    fill_draws(
        run.key[0], run.key[1], run.agents.numbers[sender], receivers, tick_word, MESSAGE, transmission, run.copy_draws
    )


@rule
def drawn_copy(run: RunTables, place: int):
    """Return the three uniforms that `draw_copies` has drawn for a copy."""
    return run.copy_draws[0, place], run.copy_draws[1, place], run.copy_draws[2, place]


@rule
def fate_drawn(run: RunTables, sender: int, edge: int, uniforms: Any, size: Any, now: float):
    """Time that a copy is in flight by its three uniforms, infinite if it is lost.

    The delay of one that is lost is only drawn where somebody observes.
    """
    u, v, w = uniforms
    turn = take_turn(run.constants[UPLINK], run.agents.uplink_free, sender, size, now) - now
    lost = is_lost(w, loss_chance(run, sender, edge, now))
    if lost and run.counts[OBSERVED] == 0:
        return math.inf
    delay = time_under_way(run, edge, size, u, v) + turn
    if lost:
        run.constants[LOST_DELAY] = delay
        return math.inf
    return delay


@rule
def fate(run: RunTables, sender: int, edge: int, tick: int, transmission: int, size: Any, now: float):
    """Time that a copy is in flight, infinite if it is lost: the network's delay and loss in their compiled form."""
    return fate_drawn(run, sender, edge, uniforms_of(run, sender, edge, tick, transmission), size, now)


@rule
def count_message(run: RunTables, vectors: int):
    """Count a message that carries so many model-sized vectors over all its links; its order of sending."""
    run.counts[ORDER] += 1
    run.counts[MESSAGES] += 1
    run.counts[VECTORS] += vectors
    return run.counts[ORDER]


@rule
def count_departure(
    run: RunTables, sender: int, edge: int, tick: int, kind: int, row: int, size: Any, now: float, delay: float
):
    """Count a copy of the last message that is under way for so long, infinite if it is lost.

    Its kind and version are for the note, see `hushnet.simulator.tables.effects`.
    """
    counts = run.counts
    counts[SENT] += 1
    counts[SENT_BYTES] += size
    if delay == math.inf:
        counts[LOST] += 1
        counts[LOST_BYTES] += size
    else:
        counts[IN_FLIGHT] += 1
        counts[IN_FLIGHT_BYTES] += size
    if counts[OBSERVED]:
        note_sent(run, sender, edge, tick, kind, row, size, now, delay)


@rule
def depart(
    run: RunTables, sender: int, edge: int, tick: int, transmission: int, kind: int, row: int, size: Any, now: float
):
    """Send a copy of the last message over a directed edge; how long it is under way, infinite if it is lost."""
    delay = fate(run, sender, edge, tick, transmission, size, now)
    count_departure(run, sender, edge, tick, kind, row, size, now, delay)
    return delay


@rule
def count_arrival(run: RunTables, size: Any, up: bool):
    """Count an arrival: delivered if the receiver is up, dropped otherwise."""
    counts = run.counts
    counts[IN_FLIGHT] -= 1
    counts[IN_FLIGHT_BYTES] -= size
    if up:
        counts[DELIVERED] += 1
        counts[DELIVERED_BYTES] += size
    else:
        counts[DROPPED] += 1
        counts[DROPPED_BYTES] += size


@rule
def arrive(run: RunTables, slot: int, order: int, size: Any, now: float, up: bool, used: bool):
    """A copy arrives at a slot; one whose receiver is up is overtaken unless it is of use."""
    count_arrival(run, size, up)
    if up and not used:
        run.counts[OVERTAKEN] += 1
    if run.counts[OBSERVED]:
        note_arrived(run, slot, order, now, up, used)


@rule
def deliver(run: RunTables, slot: int, row: int, order: int, now: float, up: bool, read: bool):
    """A copy arrives, with a reference to its version: known if the receiver is up and it is the newest by sending.

    Returns whether it was. It is of use then, or where its receiver reads or reacts to it whatever came before.
    """
    newest = up and order > run.slots.heard_order[slot]
    arrive(run, slot, order, run.versions.bytes[row], now, up, newest or read)
    if newest:
        set_latest(run, slot, row, order)
    else:
        release_version(run, row)
    return newest


@rule
def write_note(run: RunTables, time: float, what: int, place: int, order: int):
    """Write what all notes have; where it is."""
    k, notes = run.counts[NOTES], run.notes
    run.counts[NOTES] = k + 1
    notes.time[k], notes.what[k], notes.place[k], notes.order[k] = time, what, place, order
    return k


@rule(inlined=False)
def note_step(run: RunTables, agent: int, now: float, tick: int):
    """Note that an agent makes a step."""
    if (
        run.counts[OBSERVED]
        and run.agents.watched[agent]
        and run.constants[FIRST_NOTED] <= now <= run.constants[LAST_NOTED_AT]
    ):
        k = write_note(run, now, WOKE, agent, run.counts[ORDER])
        run.notes.tick[k], run.notes.delay[k] = tick, 0.0
        if len(run.computing):
            run.notes.delay[k], run.notes.bytes[k] = now - run.computing.since[agent], run.computing.order[agent]


@rule(inlined=False)
def note_sent(
    run: RunTables, sender: int, edge: int, tick: int, kind: int, row: int, size: Any, now: float, delay: float
):
    """Note that a copy of the last message is sent over a directed edge; its delay is infinite if it is lost.

    With a reference to its version for those who are told.
    """
    lost, notes = delay == math.inf, run.notes
    people = run.agents.watched[sender] and run.agents.watched[run.heads[edge]]
    if people and now <= run.constants[LAST_NOTED_AT] and (now if lost else now + delay) >= run.constants[FIRST_NOTED]:
        place = run.reverse[edge]
        k = write_note(run, now, DEPARTED, place, run.counts[ORDER])
        notes.delay[k], notes.fate[k] = (run.constants[LOST_DELAY], FATE_LOST) if lost else (delay, FATE_UNDER_WAY)
        notes.arrived[k] = math.inf
        notes.tick[k], notes.kind[k], notes.row[k], notes.bytes[k] = tick, kind, row, size
        if run.counts[OBSERVED] == KEPT and not lost:
            expect_arrival(run, place, k)
        elif run.counts[OBSERVED] == TOLD and row >= 0:
            run.versions.references[row] += 1


@rule
def expect_arrival(run: RunTables, edge: int, k: int):
    """Let a noted copy be the last one under way over an edge."""
    run.notes.following[k] = -1
    if run.noted.first[edge] < 0:
        run.noted.first[edge] = k
    else:
        run.notes.following[run.noted.last[edge]] = k
    run.noted.last[edge] = k


@rule(inlined=False)
def note_arrived(run: RunTables, slot: int, order: int, now: float, up: bool, newest: bool):
    """Note that a copy arrives at a slot: with its departure, if that was noted, or for those who are told."""
    edge, notes = slot % len(run.heads), run.notes
    fate = (FATE_DELIVERED if newest else FATE_OVERTAKEN) if up else FATE_DROPPED
    if run.counts[OBSERVED] == TOLD:
        notes.fate[write_note(run, now, ARRIVED, edge, order)] = fate
        return
    before, k = -1, run.noted.first[edge]
    while k >= 0 and notes.order[k] < order:
        before, k = k, notes.following[k]
    if k < 0 or notes.order[k] > order:
        return
    notes.arrived[k], notes.fate[k] = now, fate
    if before < 0:
        run.noted.first[edge] = notes.following[k]
    else:
        notes.following[before] = notes.following[k]
    if run.noted.last[edge] == k:
        run.noted.last[edge] = before
