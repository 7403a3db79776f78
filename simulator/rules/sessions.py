"""Pairwise exchange: an agent calls one neighbour, which answers, and both update their ends of the edge.

A session is opened by the caller's clock (`Protocol.make_request`), changes the callee when the request arrives
(`Protocol.make_response`) and the caller when the reply arrives (`Protocol.complete_exchange`). Both messages travel
under the tick of the caller's clock that opened it. Without delay and loss all of this happens at one instant, before
the next wake-up: the atomic exchange of gossip papers.

An edge has one open session. Its caller knows of it from the request, its callee from its answer, and both until it is
closed; that the callee learns of the close at once stands for an acknowledgement that takes no time. An agent whose
clock picks a busy edge does nothing. As a callee does not know of a request that has not arrived, two requests can
cross: the session of the lower agent wins. The higher one's is void as soon as the winning request arrives, and the
winner ignores the request of the other. A void session has changed nothing but what `Protocol.make_request` changed,
and whatever still arrives of it changes nothing.

What a caller does about a session that stays unanswered is a trait of the protocol (`Traits.unanswered`):

``repeat``
    It repeats the same request (same numbers, same release, so free of charge) every ``resend_after`` while it is up.
    The callee answers a repeat with its stored reply. Every accepted session is applied once at each end, however
    late. Once either end has left for good, a session that was not accepted is void. One that was accepted stays open
    for ever unless a reply is still on its way: its ends never agree, and the edge is never quiet again.
``give_up``
    It closes the session after ``timeout``; a request or reply that comes later changes nothing. A callee whose reply
    was lost or late has made its half of the exchange, and the protocol must tolerate that.

A callee that cannot afford an answer (``me.fall_silent`` in ``respond``, and nothing sent) refuses: an answer
without numbers closes the session as void. A session that was finished counts as one step of its caller.

A session is known by the caller's directed edge and the tick that opened it; a tick opens at most one, so whatever
comes too late carries a tick that its edge no longer has. An open session holds the versions of its request and its
reply, copies under way hold none, because what arrives after the close is only counted.
"""

from __future__ import annotations

import math

from ..network.network import KINDS
from ..tables.effects import ARRIVAL, ARRIVE, ENOUGH, FREE_COPIES, TIMER, WORN
from ..tables.effects import PATIENCE as PATIENCE_OVER
from ..tables.run import DOWNLINK, MOST_VECTORS, RunTables
from ..tables.session_table import (
    AGAIN,
    ANSWER,
    ANSWERS,
    ASKED,
    CLOSING,
    COMPLETING,
    EDGE,
    ENDED,
    FINISHED,
    GIVEN_UP,
    HEADER,
    KIND,
    LATE,
    NOW,
    OPEN,
    OPENED,
    PATIENCE,
    PHASE,
    REFUSAL,
    REFUSALS,
    REFUSED,
    REPEATS,
    REPLY,
    REQUEST,
    REQUESTING,
    REQUESTS,
    RESPONDING,
    ROW,
    SKIPPED,
    TICK,
    VOID,
    WATCHED,
    SessionTables,
)
from ..tables.tallies import ORDER, VECTORS
from .delivery import arrive, count_message, deliver, depart, end_of_way, release_version, take_turn
from .forms import rule, schedule
from .lazy import is_up

MOST_ATTEMPTS = 2**24 // KINDS
"""A message of a tick has draws for so many transmissions."""


@rule
def tail_of(run: RunTables, edge: int):
    """The agent that owns a directed edge."""
    return run.heads[run.reverse[edge]]


@rule
def gone(run: RunTables, agent: int, now: float):
    """True if an agent has left, or is down, for good; just after the changes at ``now``."""
    leave = run.agents.leaves[agent]
    return now >= run.agents.gone_from[agent] or (leave < math.inf and now >= max(leave, run.agents.joins[agent]))


@rule
def busy(run: RunTables, tables: SessionTables, edge: int):
    """True if the tail of a directed edge knows of an open session there: one that it opened, or accepted."""
    other = tables.sessions[run.reverse[edge]]
    return tables.sessions[edge][TICK] >= 0 or (other[TICK] >= 0 and other[ANSWER] >= 0)


@rule
def transmit(run: RunTables, tables: SessionTables, kind: int, edge: int, attempt: int):
    """Send one copy of a session's message; when it arrives, infinite if it is lost."""
    session = tables.sessions[edge]
    link = edge if kind == REQUEST else run.reverse[edge]
    size, rank, row, vectors = tables.rules[HEADER], KINDS - 1, -1, 0
    if kind != REFUSAL:
        row = session[ASKED] if kind == REQUEST else session[ANSWER]
        size, rank = run.versions.bytes[row], tables.rules[KIND + 2 * kind]
        vectors = tables.rules[KIND + 2 * kind + 1]
    count_message(run, vectors)
    if attempt >= MOST_ATTEMPTS:
        tables.counts[WORN] = 1
    tick, transmission, now = session[TICK], attempt * KINDS + rank, tables.times[NOW]
    arrival = now + depart(run, tail_of(run, link), link, tick, transmission, rank, row, size, now)
    if arrival < math.inf:
        put_under_way(run, tables, kind, edge, tick, size, arrival)
    return arrival


@rule
def put_under_way(run: RunTables, tables: SessionTables, kind: int, edge: int, tick: int, size: int, arrival: float):
    """Put a copy under way, whose arrival is an event; there must be room for it."""
    tables.counts[FREE_COPIES] -= 1
    place = tables.free_copies[tables.counts[FREE_COPIES]]
    copy = tables.copies[place]
    copy[0], copy[1], copy[2], copy[3], copy[4] = kind, edge, tick, size, run.counts[ORDER]
    tables.copy_sent_at[place] = tables.times[NOW]
    schedule(tables, arrival, ARRIVAL, end_of_way(run), place, 0)


@rule
def reach_callee(run: RunTables, tables: SessionTables, place: int):
    """A copy reaches its receiver's downlink, and arrives when it has had its turn there."""
    copy = tables.copies[place]
    link = copy[1] if copy[0] == REQUEST else run.reverse[copy[1]]
    receiver, free = run.heads[link], run.agents.downlink_free
    time = take_turn(run.constants[DOWNLINK], free, receiver, copy[3], tables.times[NOW])
    if copy[0] == REPLY and tables.sessions[copy[1]][TICK] == copy[2]:
        tables.reply_due[copy[1]] = max(tables.reply_due[copy[1]], time)
    schedule(tables, time, ARRIVAL, ARRIVE, place, 0)


@rule
def set_timer(tables: SessionTables, edge: int):
    """Let a caller look after its session again when its patience is over."""
    due = tables.times[NOW] + tables.times[PATIENCE]
    schedule(tables, due, TIMER, PATIENCE_OVER, edge, tables.sessions[edge][TICK])


@rule
def request(run: RunTables, tables: SessionTables, edge: int):
    """Transmit a session's request, the first time or again."""
    session = tables.sessions[edge]
    attempt = session[REQUESTS]
    session[REQUESTS] += 1
    transmit(run, tables, REQUEST, edge, attempt)


@rule
def answer(run: RunTables, tables: SessionTables, edge: int):
    """Transmit a session's reply or refusal, the first time or again."""
    session = tables.sessions[edge]
    attempt = session[ANSWERS]
    session[ANSWERS] += 1
    kind = REFUSAL if session[ANSWER] < 0 else REPLY
    arrival = transmit(run, tables, kind, edge, attempt)
    if kind == REPLY and arrival < math.inf:
        tables.reply_due[edge] = max(tables.reply_due[edge], arrival)


@rule
def open_session(run: RunTables, tables: SessionTables, edge: int, row: int):
    """Open a session with the version of its request, and transmit it."""
    session, caller = tables.sessions[edge], tail_of(run, edge)
    session[TICK], session[ASKED], session[ANSWER] = run.agents.ticks[caller], row, -1
    session[REQUESTS] = session[ANSWERS] = session[REFUSED] = 0
    session[WATCHED] = 1
    tables.reply_due[edge] = -math.inf
    tables.counts[OPEN] += 1
    tables.counts[OPENED] += 1
    tables.watches[caller] += 1
    set_timer(tables, edge)
    request(run, tables, edge)


@rule
def stop_watching(run: RunTables, tables: SessionTables, edge: int):
    """Let a caller wait for a session no longer; it is done with the last one if its clock has ended, too."""
    caller = tail_of(run, edge)
    tables.sessions[edge][WATCHED] = 0
    tables.watches[caller] -= 1
    if tables.over[caller] and tables.watches[caller] == 0:
        tables.counts[ENDED] = caller


@rule
def close_session(run: RunTables, tables: SessionTables, edge: int):
    """Close a session, and let go of its versions."""
    session = tables.sessions[edge]
    session[TICK] = -1
    tables.counts[OPEN] -= 1
    release_version(run, session[ASKED])
    if session[ANSWER] >= 0:
        release_version(run, session[ANSWER])
    if session[WATCHED]:
        stop_watching(run, tables, edge)
    check_vectors(run, tables)


@rule
def check_vectors(run: RunTables, tables: SessionTables):
    """Note whether the vectors asked for were sent."""
    if run.counts[VECTORS] >= run.constants[MOST_VECTORS]:
        tables.counts[ENOUGH] = 1


@rule
def is_hopeless(run: RunTables, tables: SessionTables, edge: int):
    """True if no answer can come any more, because either end has left for good."""
    now = tables.times[NOW]
    if gone(run, tail_of(run, edge), now):
        return True
    return gone(run, run.heads[edge], now) and tables.reply_due[edge] <= now


@rule
def is_outranked(run: RunTables, tables: SessionTables, edge: int):
    """True if the callee has a session of its own open on the edge that wins against this one."""
    return tables.sessions[run.reverse[edge]][TICK] >= 0 and run.heads[edge] < tail_of(run, edge)


@rule
def look_after(run: RunTables, tables: SessionTables, edge: int):
    """A caller's patience with an open session is over: it repeats the request, or gives up."""
    now, session, caller = tables.times[NOW], tables.sessions[edge], tail_of(run, edge)
    accepted, hopeless = session[ANSWER] >= 0, is_hopeless(run, tables, edge)
    if not tables.rules[REPEATS] or (hopeless and not accepted):
        tables.counts[VOID if tables.rules[REPEATS] else GIVEN_UP] += 1
        close_session(run, tables, edge)
    elif hopeless:
        stop_watching(run, tables, edge)
    else:
        if not gone(run, run.heads[edge], now) and is_up(run, caller, now, True):
            request(run, tables, edge)
            check_vectors(run, tables)
        set_timer(tables, edge)


@rule
def free_edges(run: RunTables, tables: SessionTables, agent: int):
    """True if an agent has an edge that is not busy; it falls silent once all of its neighbours are gone for good."""
    now, first, last = tables.times[NOW], run.offsets[agent], run.offsets[agent + 1]
    anybody = free = False
    for edge in range(first, last):
        anybody = anybody or not gone(run, run.heads[edge], now)
        free = free or not busy(run, tables, edge)
        if anybody and free:
            return True
    if anybody:
        tables.counts[SKIPPED] += 1
    else:
        run.agents.silent[agent] = True
    return False


@rule
def take_copy(run: RunTables, tables: SessionTables, place: int):
    """A copy arrives: whether it is of any use; what comes of it is noted, and done by `follow_up`."""
    now = tables.times[NOW]
    copy = tables.copies[place]
    kind, edge, tick, size, order = copy[0], copy[1], copy[2], copy[3], copy[4]
    tables.free_copies[tables.counts[FREE_COPIES]] = place
    tables.counts[FREE_COPIES] += 1
    link = edge if kind == REQUEST else run.reverse[edge]
    back, session = run.reverse[link], tables.sessions[edge]
    up = is_up(run, run.heads[link], now, now == tables.times[LATE])
    tables.counts[CLOSING] = tables.counts[AGAIN] = -1
    if not up:
        arrive(run, back, order, size, now, False, False)
        return False
    known, asks = session[TICK] == tick, kind == REQUEST
    answered = known and asks and (session[ANSWER] >= 0 or session[REFUSED] != 0)
    outranked = is_outranked(run, tables, edge)
    taken = known and (kind == REPLY or (asks and not answered and not outranked))
    row = session[ASKED] if asks else session[ANSWER]
    if taken:
        run.versions.references[row] += 1
        run.versions.sent_at[row], run.versions.tick[row] = tables.copy_sent_at[place], tick
        newest = deliver(run, tables.rules[KIND + 2 * kind] * len(run.heads) + back, row, order, now, True, False)
        tables.counts[PHASE], tables.counts[EDGE], tables.counts[ROW] = (RESPONDING if asks else COMPLETING), edge, row
    else:
        newest = known and kind == REFUSAL
        arrive(run, back, order, size, now, True, newest)
    # An answer closes its session, and a request that is accepted a session of the callee's own on that edge.
    if known and not asks:
        tables.counts[CLOSING] = edge
        tables.counts[FINISHED if kind == REPLY else REFUSALS] += 1
    elif taken and tables.sessions[back][TICK] >= 0:
        tables.counts[CLOSING] = back
        tables.counts[VOID] += 1
    if answered:
        tables.counts[AGAIN] = edge
    return newest


@rule
def follow_up(run: RunTables, tables: SessionTables):
    """Close the session that an arrival closes, or answer once more, before half of an exchange is made."""
    if tables.counts[CLOSING] >= 0:
        close_session(run, tables, tables.counts[CLOSING])
    if tables.counts[AGAIN] >= 0:
        answer(run, tables, tables.counts[AGAIN])


@rule
def carry_on(run: RunTables, tables: SessionTables):
    """Open the session, or answer the request, for which half of an exchange was made; return if a step was made."""
    phase, edge, row = tables.counts[PHASE], tables.counts[EDGE], tables.counts[ROW]
    tables.counts[PHASE] = 0
    if phase == REQUESTING:
        open_session(run, tables, edge, row)
    elif phase == RESPONDING:
        tables.sessions[edge][ANSWER] = row
        tables.sessions[edge][REFUSED] = row < 0
        answer(run, tables, edge)
    return phase == COMPLETING
