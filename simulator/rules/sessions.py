"""Pairwise exchange: an agent calls one neighbour, which answers, and both update their ends of the edge.

A session is opened by the caller's clock (`Protocol.offer` makes the request), changes the callee when the request
arrives (`Protocol.accept` makes the reply) and the caller when the reply arrives (`Protocol.finish`). Both messages
travel under the tick of the caller's clock that opened it. Without delay and loss all of this happens at one instant,
before the next wake-up: the atomic exchange of gossip papers.

An edge has one open session. Its caller knows of it from the offer, its callee from accepting it, and both until it is
closed; that the callee learns of the close at once stands for an acknowledgement that takes no time. An agent whose
clock picks a busy edge does nothing. As a callee does not know of a request that has not arrived, two requests can
cross: the session of the lower agent wins. The higher one's is void as soon as the winning request arrives, and the
winner ignores the request of the other. A void session has changed nothing but what `Protocol.offer` changed, and
whatever still arrives of it changes nothing.

What a caller does about a session that stays unanswered is a trait of the protocol (`Traits.unanswered`):

``repeat``
    It repeats the same request (same numbers, same release, so free of charge) every ``resend_after`` while it is up.
    The callee answers a repeat with its stored reply. Every accepted session is applied once at each end, however
    late. Once either end has left for good, a session that was not accepted is void. One that was accepted stays open
    for ever unless a reply is still on its way: its ends never agree, and the edge is never quiet again.
``give_up``
    It closes the session after ``timeout``; a request or reply that comes later changes nothing. A callee whose reply
    was lost or late has made its half of the exchange, and the protocol must tolerate that.

A callee that cannot afford an answer (`Out.fall_silent` in ``accept``, and nothing sent) refuses: an answer without
numbers closes the session as void. A session that was finished counts as one step of its caller.

A session is known by the caller's directed edge and the tick that opened it; a tick opens at most one, so whatever
comes too late carries a tick that its edge no longer has. An open session holds the versions of its request and its
reply, copies under way hold none, because what arrives after the close is only counted.
"""

from __future__ import annotations

import math

from ...protocols.kernel import ACCEPT, FINISH, OFFER
from ..network.network import KINDS
from ..tables.mail import LINE, MOST_VECTORS, Mail
from ..tables.sessions import (
    AGAIN,
    ANSWER,
    ANSWERS,
    ASKED,
    CLOSING,
    EDGE,
    ENDED,
    ENOUGH,
    FINISHED,
    GIVEN_UP,
    HEADER,
    KIND,
    LATE,
    NOW,
    OPEN,
    OPENED,
    PHASE,
    REFUSAL,
    REFUSALS,
    REFUSED,
    REPEATS,
    REPLY,
    REQUEST,
    REQUESTS,
    ROW,
    SKIPPED,
    TICK,
    VOID,
    WATCHED,
    WORN,
    SessionTables,
)
from ..tables.tallies import VECTORS
from .delivery import arrive, count_message, deliver, depart, release_version
from .forms import rule
from .lazy import is_up
from .session_agenda import push_copy, set_timer

MOST_ATTEMPTS = 2**24 // KINDS
"""A message of a tick has draws for so many transmissions."""


@rule
def tail_of(mail: Mail, edge: int):
    """The agent that owns a directed edge."""
    return mail.heads[mail.reverse[edge]]


@rule
def gone(mail: Mail, agent: int, now: float):
    """Whether an agent has left, or is down, for good; just after the changes at ``now``."""
    leave = mail.leaves[agent]
    return now >= mail.gone_from[agent] or (leave < math.inf and now >= max(leave, mail.joins[agent]))


@rule
def busy(mail: Mail, tables: SessionTables, edge: int):
    """Whether the tail of a directed edge knows of an open session there: one that it opened, or accepted."""
    other = tables.sessions[mail.reverse[edge]]
    return tables.sessions[edge][TICK] >= 0 or (other[TICK] >= 0 and other[ANSWER] >= 0)


@rule
def transmit(mail: Mail, tables: SessionTables, kind: int, edge: int, attempt: int):
    """Send one copy of a session's message; when it arrives, infinite if it is lost."""
    session = tables.sessions[edge]
    link = edge if kind == REQUEST else mail.reverse[edge]
    size, rank, row, vectors = tables.rules[HEADER], KINDS - 1, -1, 0
    if kind != REFUSAL:
        row = session[ASKED] if kind == REQUEST else session[ANSWER]
        size, rank = mail.size[LINE * row], tables.rules[KIND + 2 * kind]
        vectors = tables.rules[KIND + 2 * kind + 1]
    count_message(mail, vectors)
    if attempt >= MOST_ATTEMPTS:
        tables.counts[WORN] = 1
    tick, transmission, now = session[TICK], attempt * KINDS + rank, tables.times[NOW]
    arrival = now + depart(mail, tail_of(mail, link), link, tick, transmission, rank, row, size, now)
    if arrival < math.inf:
        push_copy(mail, tables, kind, edge, tick, size, arrival)
    return arrival


@rule
def request(mail: Mail, tables: SessionTables, edge: int):
    """Transmit a session's request, the first time or again."""
    session = tables.sessions[edge]
    attempt = session[REQUESTS]
    session[REQUESTS] += 1
    transmit(mail, tables, REQUEST, edge, attempt)


@rule
def answer(mail: Mail, tables: SessionTables, edge: int):
    """Transmit a session's reply or refusal, the first time or again."""
    session = tables.sessions[edge]
    attempt = session[ANSWERS]
    session[ANSWERS] += 1
    kind = REFUSAL if session[ANSWER] < 0 else REPLY
    arrival = transmit(mail, tables, kind, edge, attempt)
    if kind == REPLY and arrival < math.inf:
        tables.reply_due[edge] = max(tables.reply_due[edge], arrival)


@rule
def open_session(mail: Mail, tables: SessionTables, edge: int, row: int):
    """Open a session with the version of its request, and transmit it."""
    session, caller = tables.sessions[edge], tail_of(mail, edge)
    session[TICK], session[ASKED], session[ANSWER] = mail.ticks[caller], row, -1
    session[REQUESTS] = session[ANSWERS] = session[REFUSED] = 0
    session[WATCHED] = 1
    tables.reply_due[edge] = -math.inf
    tables.counts[OPEN] += 1
    tables.counts[OPENED] += 1
    tables.watches[caller] += 1
    set_timer(tables, edge)
    request(mail, tables, edge)


@rule
def stop_watching(mail: Mail, tables: SessionTables, edge: int):
    """Let a caller wait for a session no longer; it is done with the last one if its clock has ended, too."""
    caller = tail_of(mail, edge)
    tables.sessions[edge][WATCHED] = 0
    tables.watches[caller] -= 1
    if tables.over[caller] and tables.watches[caller] == 0:
        tables.counts[ENDED] = caller


@rule
def close_session(mail: Mail, tables: SessionTables, edge: int):
    """Close a session, and let go of its versions."""
    session = tables.sessions[edge]
    session[TICK] = -1
    tables.counts[OPEN] -= 1
    release_version(mail, session[ASKED])
    if session[ANSWER] >= 0:
        release_version(mail, session[ANSWER])
    if session[WATCHED]:
        stop_watching(mail, tables, edge)
    check_vectors(mail, tables)


@rule
def check_vectors(mail: Mail, tables: SessionTables):
    """Note whether the vectors asked for were sent."""
    if mail.counts[VECTORS] >= mail.constants[MOST_VECTORS]:
        tables.counts[ENOUGH] = 1


@rule
def is_hopeless(mail: Mail, tables: SessionTables, edge: int):
    """Whether no answer can come any more, because either end has left for good."""
    now = tables.times[NOW]
    if gone(mail, tail_of(mail, edge), now):
        return True
    return gone(mail, mail.heads[edge], now) and tables.reply_due[edge] <= now


@rule
def is_outranked(mail: Mail, tables: SessionTables, edge: int):
    """Whether the callee has a session of its own open on the edge that wins against this one."""
    return tables.sessions[mail.reverse[edge]][TICK] >= 0 and mail.heads[edge] < tail_of(mail, edge)


@rule
def look_after(mail: Mail, tables: SessionTables, edge: int):
    """A caller's patience with an open session is over: it repeats the request, or gives up."""
    now, session, caller = tables.times[NOW], tables.sessions[edge], tail_of(mail, edge)
    accepted, hopeless = session[ANSWER] >= 0, is_hopeless(mail, tables, edge)
    if not tables.rules[REPEATS] or (hopeless and not accepted):
        tables.counts[VOID if tables.rules[REPEATS] else GIVEN_UP] += 1
        close_session(mail, tables, edge)
    elif hopeless:
        stop_watching(mail, tables, edge)
    else:
        if not gone(mail, mail.heads[edge], now) and is_up(mail, caller, now, True):
            request(mail, tables, edge)
            check_vectors(mail, tables)
        set_timer(tables, edge)


@rule
def free_edges(mail: Mail, tables: SessionTables, agent: int):
    """Whether an agent has an edge that is not busy; it falls silent once all of its neighbours are gone for good."""
    now, first, last = tables.times[NOW], mail.offsets[agent], mail.offsets[agent + 1]
    anybody = free = False
    for edge in range(first, last):
        anybody = anybody or not gone(mail, mail.heads[edge], now)
        free = free or not busy(mail, tables, edge)
        if anybody and free:
            return True
    if anybody:
        tables.counts[SKIPPED] += 1
    else:
        mail.silent[agent] = True
    return False


@rule
def take_copy(mail: Mail, tables: SessionTables, place: int, order: int):
    """A copy arrives: whether it is of any use; what comes of it is noted, and done by `follow_up`."""
    now = tables.times[NOW]
    copy = tables.copies[place]
    kind, edge, tick, size = copy[0], copy[1], copy[2], copy[3]
    link = edge if kind == REQUEST else mail.reverse[edge]
    back, session = mail.reverse[link], tables.sessions[edge]
    up = is_up(mail, mail.heads[link], now, now == tables.times[LATE])
    tables.counts[CLOSING] = tables.counts[AGAIN] = -1
    if not up:
        arrive(mail, back, order, size, now, False, False)
        return False
    known, asks = session[TICK] == tick, kind == REQUEST
    answered = known and asks and (session[ANSWER] >= 0 or session[REFUSED] != 0)
    outranked = is_outranked(mail, tables, edge)
    taken = known and (kind == REPLY or (asks and not answered and not outranked))
    row = session[ASKED] if asks else session[ANSWER]
    if taken:
        mail.references[LINE * row] += 1
        mail.sent_at[LINE * row], mail.tick[LINE * row] = tables.copy_sent_at[place], tick
        newest = deliver(mail, tables.rules[KIND + 2 * kind] * len(mail.heads) + back, row, order, now, True)
        tables.counts[PHASE], tables.counts[EDGE], tables.counts[ROW] = (ACCEPT if asks else FINISH), edge, row
    else:
        newest = known and kind == REFUSAL
        arrive(mail, back, order, size, now, True, newest)
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
def follow_up(mail: Mail, tables: SessionTables):
    """Close the session that an arrival closes, or answer once more, before half of an exchange is made."""
    if tables.counts[CLOSING] >= 0:
        close_session(mail, tables, tables.counts[CLOSING])
    if tables.counts[AGAIN] >= 0:
        answer(mail, tables, tables.counts[AGAIN])


@rule
def carry_on(mail: Mail, tables: SessionTables):
    """What follows from half of an exchange: a session is opened, or its request answered; whether a step was made."""
    phase, edge, row = tables.counts[PHASE], tables.counts[EDGE], tables.counts[ROW]
    tables.counts[PHASE] = 0
    if phase == OFFER:
        open_session(mail, tables, edge, row)
    elif phase == ACCEPT:
        tables.sessions[edge][ANSWER] = row
        tables.sessions[edge][REFUSED] = row < 0
        answer(mail, tables, edge)
    return phase == FINISH
