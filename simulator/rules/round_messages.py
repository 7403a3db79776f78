"""The messages of rounds: said, sent, repeated and acknowledged, held until their round is whole, and shown.

The message of a round is everything that a step addressed to a neighbour, at most one vector of each kind; where that
is nothing, a message without numbers takes its place. A record stands for each of them on each link as long as a copy,
a timer or the receiver refers to it.
"""

from __future__ import annotations

import math
from typing import Any

from ..network.network import KINDS
from ..tables.effects import ARRIVAL, ARRIVE, FREE_COPIES, REPEAT, TIMER, WORN
from ..tables.round_table import (
    ACKNOWLEDGED,
    ANSWERS,
    ATTEMPT,
    COPY_ORDER,
    COPY_SIZE,
    FIRST_HELD,
    FREE_RECORDS,
    HEAD,
    HEADER,
    HELD_ORDER,
    HELD_PARTS,
    IS_ANSWER,
    IS_LAST,
    LAST,
    NEXT_HELD,
    OF_KIND,
    OF_TICK,
    ON_SLOT,
    PARTS,
    RECORD,
    REFERENCES,
    REPEATED,
    RESEND_AFTER,
    SAYING,
    SHOWN,
    SHOWN_MESSAGES,
    SIBLING,
    TIMED,
    VERSION,
    RoundTables,
)
from ..tables.run import DOWNLINK, RunTables
from ..tables.tallies import ORDER
from .delivery import count_message, depart, end_of_way, release_version, set_latest, take_turn
from .forms import rule, schedule

EMPTY = KINDS - 1
"""Rank of the message without numbers that ends a round for a neighbour to whom the step said nothing."""
TRANSMISSIONS = 2**24
"""A message of a tick has draws for so many kinds and attempts."""


@rule
def refer_to(tables: RoundTables, record: int):
    """One reference more to the messages of a round on a link; all of them live as long as anything refers to one."""
    tables.records[tables.records[record][HEAD]][REFERENCES] += 1


@rule
def release(run: RunTables, tables: RoundTables, record: int):
    """One reference less; the last one frees all messages of the round on the link."""
    record = tables.records[record][HEAD]
    tables.records[record][REFERENCES] -= 1
    if tables.records[record][REFERENCES] > 0:
        return
    while record >= 0:
        freed = tables.records[record]
        if freed[VERSION] >= 0:
            release_version(run, freed[VERSION])
        freed[TIMED] = 0
        tables.free_records[tables.counts[FREE_RECORDS]] = record
        tables.counts[FREE_RECORDS] += 1
        record = freed[SIBLING]


@rule
def put_under_way(run: RunTables, tables: RoundTables, record: int, is_answer: bool, size: Any, delay: float):
    """Send a copy with its fate; unless it is lost, its arrival is to come."""
    if delay == math.inf:
        return
    tables.counts[FREE_COPIES] -= 1
    place = tables.free_copies[tables.counts[FREE_COPIES]]
    copy = tables.copies[place]
    copy[RECORD], copy[COPY_ORDER], copy[IS_ANSWER], copy[COPY_SIZE] = record, run.counts[ORDER], is_answer, size
    refer_to(tables, record)
    schedule(tables, tables.now[0] + delay, ARRIVAL, end_of_way(run), place, 0)


@rule
def reach(run: RunTables, tables: RoundTables, place: int):
    """A copy reaches its receiver's downlink, and arrives when it has had its turn there."""
    copy = tables.copies[place]
    slot = tables.records[copy[RECORD]][ON_SLOT]
    receiver = run.heads[slot] if copy[IS_ANSWER] else run.heads[run.reverse[slot]]
    size, free = copy[COPY_SIZE], run.agents.downlink_free
    time = take_turn(run.constants[DOWNLINK], free, receiver, size, tables.now[0])
    schedule(tables, time, ARRIVAL, ARRIVE, place, 0)


@rule
def transmit(run: RunTables, tables: RoundTables, record: int):
    """Send a message, the first time or again."""
    sent = tables.records[record]
    slot, kind, row = sent[ON_SLOT], sent[OF_KIND], sent[VERSION]
    if row >= 0:
        size, transmission = run.versions.bytes[row], sent[ATTEMPT] * KINDS + kind
    else:
        # Of what has no numbers, messages have even attempts and acknowledgements odd ones.
        size, transmission = int(tables.constants[HEADER]), 2 * sent[ATTEMPT] * KINDS + KINDS - 1
    if transmission >= TRANSMISSIONS:
        tables.counts[WORN] = 1
    sender, edge = run.heads[slot], run.reverse[slot]
    delay = depart(run, sender, edge, sent[OF_TICK], transmission, kind, row, size, tables.now[0])
    put_under_way(run, tables, record, False, size, delay)


@rule
def acknowledge(run: RunTables, tables: RoundTables, record: int):
    """Tell the sender of a message that it arrived, without numbers."""
    sent = tables.records[record]
    head = tables.records[sent[HEAD]]
    transmission = (2 * head[ANSWERS] + 1) * KINDS + KINDS - 1
    head[ANSWERS] += 1
    if transmission >= TRANSMISSIONS:
        tables.counts[WORN] = 1
    count_message(run, 0)
    slot, size = sent[ON_SLOT], int(tables.constants[HEADER])
    sender, kind = run.heads[run.reverse[slot]], -1 - sent[OF_KIND]
    delay = depart(run, sender, slot, sent[OF_TICK], transmission, kind, -1, size, tables.now[0])
    put_under_way(run, tables, record, True, size, delay)


@rule
def repeat(run: RunTables, tables: RoundTables, record: int):
    """Send a message once more."""
    sent = tables.records[record]
    sent[ATTEMPT] += 1
    tables.counts[REPEATED] += 1
    count_message(run, tables.vectors[sent[OF_KIND]] if sent[VERSION] >= 0 else 0)
    transmit(run, tables, record)
    schedule(tables, tables.now[0] + tables.constants[RESEND_AFTER], TIMER, REPEAT, record, 0)


@rule
def say(run: RunTables, tables: RoundTables, agent: int, edge: int, kind: int, row: int):
    """Send one message of a round over one edge; the first one stands for the round."""
    slot = run.reverse[edge]
    tables.counts[FREE_RECORDS] -= 1
    record = tables.free_records[tables.counts[FREE_RECORDS]]
    made = tables.records[record]
    made[ON_SLOT], made[OF_TICK], made[OF_KIND], made[VERSION] = slot, run.agents.ticks[agent], kind, row
    made[ATTEMPT], made[ACKNOWLEDGED], made[TIMED] = 0, 0, 0
    made[HELD_ORDER], made[SIBLING] = -1, -1
    if row >= 0:
        run.versions.references[row] += 1
    first = tables.links[slot][SAYING]
    if first < 0:
        tables.links[slot][SAYING] = made[HEAD] = record
        made[PARTS], made[HELD_PARTS], made[NEXT_HELD], made[ANSWERS], made[IS_LAST] = 1, 0, -1, 0, 0
        made[REFERENCES] = 0
    else:
        before = first
        while tables.records[before][SIBLING] >= 0:
            before = tables.records[before][SIBLING]
        tables.records[before][SIBLING] = record
        made[HEAD] = first
        tables.records[first][PARTS] += 1
    refer_to(tables, record)
    transmit(run, tables, record)


@rule
def finish_saying(run: RunTables, tables: RoundTables, agent: int):
    """Make whole rounds of what an agent has just said, for all neighbours, and see that they get there."""
    repeats = tables.constants[RESEND_AFTER] < math.inf
    for edge in range(run.offsets[agent], run.offsets[agent + 1]):
        slot = run.reverse[edge]
        if tables.links[slot][LAST] == 0:  # no messages go this way
            continue
        if tables.links[slot][SAYING] < 0:
            count_message(run, 0)
            say(run, tables, agent, edge, EMPTY, -1)
        record = tables.links[slot][SAYING]
        tables.records[record][IS_LAST] = run.agents.silent[agent]
        tables.links[slot][SAYING] = -1
        while record >= 0:
            following = tables.records[record][SIBLING]
            if repeats:
                tables.records[record][TIMED] = 1
                schedule(tables, tables.now[0] + tables.constants[RESEND_AFTER], TIMER, REPEAT, record, 0)
            else:
                release(run, tables, record)
            record = following


@rule
def say_all(run: RunTables, tables: RoundTables, agent: int, said: Any, edges: Any):
    """Say what a step gave out: kind, version, and first and last place among the edges, of each of its messages."""
    for k in range(len(said)):
        kind, row, first, last = said[k]
        run.versions.order[row] = count_message(run, (last - first) * tables.vectors[kind])
        for place in range(first, last):
            say(run, tables, agent, edges[place], kind, row)
        release_version(run, row)
    finish_saying(run, tables, agent)


@rule
def is_whole(tables: RoundTables, head: int):
    """True if all messages of a round are held."""
    return tables.records[head][HELD_PARTS] == tables.records[head][PARTS]


@rule
def holds(tables: RoundTables, slot: int, number: int):
    """True if all messages of a neighbour's round are held or were shown, or its last round was before it."""
    link = tables.links[slot]
    if number <= link[SHOWN] or 0 <= link[LAST] < number:
        return True
    head = link[FIRST_HELD]
    while head >= 0:
        if tables.records[head][OF_TICK] + 1 == number:
            return is_whole(tables, head)
        head = tables.records[head][NEXT_HELD]
    return False


@rule
def hold(tables: RoundTables, record: int, order: int):
    """Keep a message that has arrived; whether it was of any use."""
    taken = tables.records[record]
    slot, number = taken[ON_SLOT], taken[OF_TICK] + 1
    link = tables.links[slot]
    if number <= link[SHOWN] or taken[HELD_ORDER] >= 0:
        return False
    head = tables.records[taken[HEAD]]
    taken[HELD_ORDER] = order
    refer_to(tables, record)
    if head[HELD_PARTS] == 0:
        head[NEXT_HELD] = link[FIRST_HELD]
        link[FIRST_HELD] = taken[HEAD]
    head[HELD_PARTS] += 1
    if is_whole(tables, taken[HEAD]) and head[IS_LAST]:
        link[LAST] = number
    return True


@rule
def newest(tables: RoundTables, slot: int):
    """The newest round of a neighbour that is here or was shown."""
    number, head = tables.links[slot][SHOWN], tables.links[slot][FIRST_HELD]
    while head >= 0:
        if is_whole(tables, head):
            number = max(number, tables.records[head][OF_TICK] + 1)
        head = tables.records[head][NEXT_HELD]
    return number


@rule
def show_round(run: RunTables, tables: RoundTables, slot: int, number: int):
    """Let the inbox show a round, if it is here and was not shown, and forget it with all before it."""
    link, edges = tables.links[slot], len(run.heads)
    head = link[FIRST_HELD]
    while head >= 0 and tables.records[head][OF_TICK] + 1 != number:
        head = tables.records[head][NEXT_HELD]
    if head < 0 or not is_whole(tables, head):
        return
    link[SHOWN] = number
    head, before = link[FIRST_HELD], -1
    while head >= 0:
        following, told = tables.records[head][NEXT_HELD], tables.records[head][OF_TICK] + 1
        if told > number:
            before = head
        else:
            if before < 0:
                link[FIRST_HELD] = following
            else:
                tables.records[before][NEXT_HELD] = following
            record = head
            while record >= 0:
                kept, sibling = tables.records[record], tables.records[record][SIBLING]
                if kept[HELD_ORDER] >= 0:
                    if told == number and kept[VERSION] >= 0:
                        place = kept[OF_KIND] * edges + slot
                        fresh = tables.shown[tables.counts[SHOWN_MESSAGES]]
                        tables.counts[SHOWN_MESSAGES] += 1
                        fresh[0], fresh[1] = place, kept[HELD_ORDER]
                        run.versions.references[kept[VERSION]] += 1
                        # A repeat may have left after a message of the next round: here the round says what is newer.
                        set_latest(run, place, kept[VERSION], max(kept[HELD_ORDER], run.slots.heard_order[place] + 1))
                    release(run, tables, record)
                record = sibling
        head = following
