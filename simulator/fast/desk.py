"""Open sessions, copies under way and timers of the fast engine, compiled.

`hushnet.simulator.sessions` has the rules. A session is known by the caller's directed edge and the tick that opened
it; a tick opens at most one, so whatever comes too late carries a tick that its edge no longer has. Vectors are
versions in the pool of `hushnet.simulator.Mail`: an open session holds its request and its reply, copies under way
hold none, because what arrives after the close is only counted. A version that nobody holds keeps its vector until
another takes its place.

Copies are a heap by (arrival, order of sending). All timers of a run wait equally long, so a queue has them in order.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...agents.compiled import compiled
from ..network import KINDS
from ..rules.delivery import depart, let_go
from ..rules.lazy import there
from ..tables.mail import MOST_VECTORS
from ..tables.tallies import MESSAGES, ORDER, VECTORS

REQUEST, REPLY, REFUSAL = range(3)
"""Kinds of copies."""
COPIES, FREE_COPIES, FIRST_TIMER, TIMERS, PHASE, EDGE, ROW, ENDED, ENOUGH, WORN, OPEN, COUNTERS = range(12)
"""Places in `Desk.counts`: sizes of heap, free list and queue; the half that is being made (0: none), its session and
its version; an agent that will never step again (-1: none); whether the vectors asked for were sent, or a message was
repeated more often than there are draws for it; and the number of open sessions."""
PATIENCE, NOW, LATE = range(3)
"""Places in `Desk.times`: how long callers wait, time of the last event, and of the last timer or wake-up."""
REPEATS, OBSERVED, HEADER, KIND = range(4)
"""Places in `Desk.rules`: whether callers repeat, whether each call is observed, bytes of a header; from `KIND` on, for
requests and replies, the rank of the kind and the vectors that it counts as."""
TICK, ASKED, ANSWER, REQUESTS, ANSWERS, REFUSED, WATCHED, FIELDS = range(8)
"""Fields of a session: tick that opened it (-1: none is open), versions of request and reply (-1: not accepted), how
often each was transmitted, whether it was refused, and whether its caller still waits for it."""
MOST_ATTEMPTS = 2**24 // KINDS
"""A message of a tick has draws for so many transmissions."""


class Desk(NamedTuple):
    """All arrays of pairwise exchange; compiled functions take them as one argument.

    Attributes
    ----------
    counts : (COUNTERS,) int64
    times : (3,) float64
    rules : (KIND + 4,) int64
    widths : (2, n) int64
        Numbers in a request and in a reply of each agent.
    sessions : (E, FIELDS) int32
    reply_due : (E,) float64
        When the last reply that was not lost arrives.
    watches : (n,) int64
        Sessions of its own that an agent still waits for.
    over : (n,) bool
        Agents whose clock has ended.
    copy_time, copy_order, copy_place : (C,)
        The heap of copies under way.
    copies : (C, 4) int64
        Kind, session's edge, tick and bytes of each copy, at its place.
    copy_sent_at, free_copies : (C,)
        When each was sent, and the free places.
    timer_due, timer_edge, timer_tick : (T,)
        The queue of timers, as a ring.
    """

    counts: Any
    times: Any
    rules: Any
    widths: Any
    sessions: Any
    reply_due: Any
    watches: Any
    over: Any
    copy_time: Any
    copy_order: Any
    copy_place: Any
    copies: Any
    copy_sent_at: Any
    free_copies: Any
    timer_due: Any
    timer_edge: Any
    timer_tick: Any


@compiled(forceinline=True, _nrt=False)
def tail_of(mail, edge):  # pragma: no cover - compiled
    """The agent that owns a directed edge."""
    return mail.heads[mail.reverse[edge]]


@compiled(forceinline=True, _nrt=False)
def gone(mail, agent, now):  # pragma: no cover - compiled
    """Whether an agent has left, or is down, for good; just after the changes at ``now``."""
    leave = mail.leaves[agent]
    return now >= mail.gone_from[agent] or (leave < math.inf and now >= max(leave, mail.joins[agent]))


@compiled(forceinline=True, _nrt=False)
def busy(mail, desk, edge):  # pragma: no cover - compiled
    """See `hushnet.simulator.sessions.Sessions.busy`."""
    other = desk.sessions[mail.reverse[edge]]
    return desk.sessions[edge, TICK] >= 0 or (other[TICK] >= 0 and other[ANSWER] >= 0)


@compiled(forceinline=True, _nrt=False)
def push_copy(mail, desk, kind, edge, tick, size, arrival):  # pragma: no cover - compiled
    """Put a copy under way; there must be room for it."""
    counts, times, orders, places = desk.counts, desk.copy_time, desk.copy_order, desk.copy_place
    counts[FREE_COPIES] -= 1
    place = desk.free_copies[counts[FREE_COPIES]]
    copy = desk.copies[place]
    copy[0], copy[1], copy[2], copy[3] = kind, edge, tick, size
    desk.copy_sent_at[place] = desk.times[NOW]
    order = mail.counts[ORDER]
    here = counts[COPIES]
    counts[COPIES] += 1
    while here > 0:
        parent = (here - 1) // 2
        # Orders only grow: of two copies that arrive together, the one that is here already comes first.
        if times[parent] <= arrival:
            break
        times[here], orders[here], places[here] = times[parent], orders[parent], places[parent]
        here = parent
    times[here], orders[here], places[here] = arrival, order, place


@compiled(forceinline=True, _nrt=False)
def pop_copy(desk):  # pragma: no cover - compiled
    """Take the next copy off the heap; its place, free from now on."""
    counts, times, orders, places = desk.counts, desk.copy_time, desk.copy_order, desk.copy_place
    top = places[0]
    desk.free_copies[counts[FREE_COPIES]] = top
    counts[FREE_COPIES] += 1
    counts[COPIES] -= 1
    size = counts[COPIES]
    time, order, place = times[size], orders[size], places[size]
    here = 0
    while True:
        child = 2 * here + 1
        if child >= size:
            break
        right = min(child + 1, size - 1)
        if times[right] < times[child] or (times[right] == times[child] and orders[right] < orders[child]):
            child = right
        if times[child] > time or (times[child] == time and orders[child] > order):
            break
        times[here], orders[here], places[here] = times[child], orders[child], places[child]
        here = child
    times[here], orders[here], places[here] = time, order, place
    return top


@compiled(forceinline=True, _nrt=False)
def set_timer(desk, edge):  # pragma: no cover - compiled
    """Let a caller look after its session again when its patience is over; there must be room for the timer."""
    counts = desk.counts
    place = (counts[FIRST_TIMER] + counts[TIMERS]) % len(desk.timer_due)
    counts[TIMERS] += 1
    desk.timer_due[place] = desk.times[NOW] + desk.times[PATIENCE]
    desk.timer_edge[place], desk.timer_tick[place] = edge, desk.sessions[edge, TICK]


@compiled(forceinline=True, _nrt=False)
def drop_timer(desk):  # pragma: no cover - compiled
    """Take the first timer off the queue; its session's edge."""
    counts = desk.counts
    edge = desk.timer_edge[counts[FIRST_TIMER]]
    counts[FIRST_TIMER] = (counts[FIRST_TIMER] + 1) % len(desk.timer_due)
    counts[TIMERS] -= 1
    return edge


@compiled(forceinline=True, _nrt=False)
def next_timer(desk):  # pragma: no cover - compiled
    """When the first timer is due whose session is still open; infinite if there is none."""
    counts = desk.counts
    while counts[TIMERS] > 0:
        first = counts[FIRST_TIMER]
        if desk.sessions[desk.timer_edge[first], TICK] == desk.timer_tick[first]:
            return desk.timer_due[first]
        drop_timer(desk)
    return math.inf


@compiled(forceinline=True, _nrt=False)
def transmit(mail, desk, kind, edge, attempt):  # pragma: no cover - compiled
    """Send one copy of a session's message; when it arrives, infinite if it is lost."""
    session, counts = desk.sessions[edge], mail.counts
    link = edge if kind == REQUEST else mail.reverse[edge]
    size, leg = desk.rules[HEADER], attempt * KINDS + KINDS - 1
    counts[ORDER] += 1
    counts[MESSAGES] += 1
    if kind != REFUSAL:
        size = mail.size[session[ASKED] if kind == REQUEST else session[ANSWER]]
        leg = attempt * KINDS + desk.rules[KIND + 2 * kind]
        counts[VECTORS] += desk.rules[KIND + 2 * kind + 1]
    if attempt >= MOST_ATTEMPTS:
        desk.counts[WORN] = 1
    tick = session[TICK]
    arrival = desk.times[NOW] + depart(mail, tail_of(mail, link), link, tick, leg, size, desk.times[NOW])
    if arrival < math.inf:
        push_copy(mail, desk, kind, edge, tick, size, arrival)
    return arrival


@compiled(forceinline=True, _nrt=False)
def request(mail, desk, edge):  # pragma: no cover - compiled
    """Transmit a session's request, the first time or again."""
    session = desk.sessions[edge]
    attempt = session[REQUESTS]
    session[REQUESTS] += 1
    transmit(mail, desk, REQUEST, edge, attempt)


@compiled(forceinline=True, _nrt=False)
def answer(mail, desk, edge):  # pragma: no cover - compiled
    """Transmit a session's reply or refusal, the first time or again."""
    session = desk.sessions[edge]
    attempt = session[ANSWERS]
    session[ANSWERS] += 1
    kind = REFUSAL if session[ANSWER] < 0 else REPLY
    arrival = transmit(mail, desk, kind, edge, attempt)
    if kind == REPLY and arrival < math.inf:
        desk.reply_due[edge] = max(desk.reply_due[edge], arrival)


@compiled(forceinline=True, _nrt=False)
def open_session(mail, desk, edge, row):  # pragma: no cover - compiled
    """Open a session with the version of its request, and transmit it."""
    session, caller = desk.sessions[edge], tail_of(mail, edge)
    session[TICK], session[ASKED], session[ANSWER] = mail.ticks[caller], row, -1
    session[REQUESTS] = session[ANSWERS] = session[REFUSED] = 0
    session[WATCHED] = 1
    desk.reply_due[edge] = -math.inf
    desk.counts[OPEN] += 1
    desk.watches[caller] += 1
    set_timer(desk, edge)
    request(mail, desk, edge)


@compiled(forceinline=True, _nrt=False)
def stop_watching(mail, desk, edge):  # pragma: no cover - compiled
    """Let a caller wait for a session no longer; it is done with the last one if its clock has ended, too."""
    caller = tail_of(mail, edge)
    desk.sessions[edge, WATCHED] = 0
    desk.watches[caller] -= 1
    if desk.over[caller] and desk.watches[caller] == 0:
        desk.counts[ENDED] = caller


@compiled(forceinline=True, _nrt=False)
def close_session(mail, desk, edge):  # pragma: no cover - compiled
    """Close a session, and let go of its versions."""
    session = desk.sessions[edge]
    session[TICK] = -1
    desk.counts[OPEN] -= 1
    let_go(mail, session[ASKED])
    if session[ANSWER] >= 0:
        let_go(mail, session[ANSWER])
    if session[WATCHED]:
        stop_watching(mail, desk, edge)
    check_vectors(mail, desk)


@compiled(forceinline=True, _nrt=False)
def check_vectors(mail, desk):  # pragma: no cover - compiled
    """Note whether the vectors asked for were sent."""
    if mail.counts[VECTORS] >= mail.constants[MOST_VECTORS]:
        desk.counts[ENOUGH] = 1


@compiled(forceinline=True, _nrt=False)
def look_after(mail, desk):  # pragma: no cover - compiled
    """The first timer: repeat the request of its session, or give it up."""
    now, edge = desk.times[NOW], drop_timer(desk)
    session, caller, callee = desk.sessions[edge], tail_of(mail, edge), mail.heads[edge]
    accepted, lost = session[ANSWER] >= 0, gone(mail, callee, now)
    hopeless = gone(mail, caller, now) or (lost and desk.reply_due[edge] <= now)
    if not desk.rules[REPEATS] or (hopeless and not accepted):
        close_session(mail, desk, edge)
    elif hopeless:
        stop_watching(mail, desk, edge)
    else:
        if not lost and there(mail, caller, now, True):
            request(mail, desk, edge)
            check_vectors(mail, desk)
        set_timer(desk, edge)
