"""Whole windows of pairwise exchange in one compiled call: everything strictly before the next event of anybody else.

Events are arrivals, timers and wake-ups, in the order of `hushnet.agents.agent`. The same function serves a protocol
with a compiled exchange, which it calls, and one in plain Python: then it returns wherever half of an exchange is to be
made, and does what follows from it when it is called again.
"""

from __future__ import annotations

import math

from ...agents.agent import ARRIVAL, TIMER, WAKE
from ...agents.compiled import compiled, compiled_callback
from ...protocols.kernel import ACCEPT, EXCHANGE, FINISH, OFFER, rank_of
from ..randomness import Purpose, draw_one
from ..rules.clocks import count_step, is_news, used_up
from ..rules.delivery import arrive, know, let_go, take_row
from ..rules.lazy import there
from ..tables.tallies import FREE_ROWS, HEAP, OVERTAKEN, UNFINISHED, WAKES
from .desk import (
    ANSWER,
    ASKED,
    COPIES,
    EDGE,
    ENDED,
    ENOUGH,
    FREE_COPIES,
    HEADER,
    KIND,
    LATE,
    NOW,
    OBSERVED,
    PHASE,
    REFUSAL,
    REFUSED,
    REPLY,
    REQUEST,
    ROW,
    TICK,
    TIMERS,
    WORN,
    answer,
    busy,
    close_session,
    gone,
    look_after,
    next_timer,
    open_session,
    pop_copy,
    tail_of,
)
from .windows import COUNTED, DIVERGED, FULL, IDLE, LOOK, REACHED, clock_over, is_event, put_back

PARTNER = int(Purpose.PARTNER)
HALF, CHECK = 100, 101
"""Why a window ended, beside the reasons in `hushnet.simulator.fast.windows`: half of an exchange is to be made, or an
observer told of it; the world has something to check."""


@compiled_callback(EXCHANGE)
def no_exchange(phase, agent, edge, updates, first, last, known, pool, own, heard, message, reals, wholes, singles):  # noqa: ARG001 - as all
    """Stands for the compiled exchange of a protocol that has none."""
    return  # pragma: no cover - compiled


@compiled(_nrt=False)
def upcoming(mail, desk):  # pragma: no cover - compiled
    """Time and class of the next event; infinite if there is none."""
    timer = next_timer(desk)
    wake = mail.heap_time[0] if mail.counts[HEAP] > 0 else math.inf
    copy = desk.copy_time[0] if desk.counts[COPIES] > 0 else math.inf
    if copy <= timer and copy <= wake:
        return copy, ARRIVAL
    return (timer, TIMER) if timer <= wake else (wake, WAKE)


@compiled(forceinline=True, _nrt=False)
def free_edges(mail, desk, agent):  # pragma: no cover - compiled
    """Whether an agent has an edge that is not busy; it falls silent once all of its neighbours are gone for good."""
    now, first, last = desk.times[NOW], mail.offsets[agent], mail.offsets[agent + 1]
    anybody = free = False
    for edge in range(first, last):
        anybody = anybody or not gone(mail, mail.heads[edge], now)
        free = free or not busy(mail, desk, edge)
        if anybody and free:
            return True
    if not anybody:
        mail.silent[agent] = True
    return False


@compiled(forceinline=True, _nrt=False)
def wake_up(mail, desk, compiled_half, law):  # pragma: no cover - compiled
    """A tick of the clock on top of the heap: its agent calls somebody, if it can."""
    agent, now = mail.heap_agent[0], desk.times[NOW]
    mail.ticks[agent] += 1
    mail.counts[UNFINISHED] = 1
    desk.times[LATE] = now
    if mail.silent[agent] or not there(mail, agent, now, True) or not free_edges(mail, desk, agent):
        return
    if compiled_half:
        first, last = mail.offsets[agent], mail.offsets[agent + 1]
        luck = draw_one(mail.key[0], mail.key[1], mail.numbers[agent], 0, mail.ticks[agent], PARTNER, 0)[0]
        desk.counts[EDGE] = first + rank_of(luck, last - first, law[first:last] if len(law) else law)
        if busy(mail, desk, desk.counts[EDGE]):
            return
    desk.counts[PHASE] = OFFER


@compiled(forceinline=True, _nrt=False)
def hear(mail, slot, row, order, sent_at, tick):  # pragma: no cover - compiled
    """Put a version into the inbox unless something newer is there; whether it was the newest."""
    if order <= mail.heard_order[slot]:
        return False
    mail.references[row] += 1
    mail.sent_at[row], mail.tick[row] = sent_at, tick
    know(mail, slot, row, order)
    return True


@compiled(forceinline=True, _nrt=False)
def take_copy(mail, desk):  # pragma: no cover - compiled
    """An arrival: see `hushnet.simulator.sessions.Sessions.deliver` and `react`."""
    now, order = desk.times[NOW], desk.copy_order[0]
    place = pop_copy(desk)
    kind, edge, tick, size = desk.copies[place, 0], desk.copies[place, 1], desk.copies[place, 2], desk.copies[place, 3]
    link = edge if kind == REQUEST else mail.reverse[edge]
    back, session = mail.reverse[link], desk.sessions[edge]
    up = there(mail, mail.heads[link], now, now == desk.times[LATE])
    arrive(mail, size, up)
    if not up:
        return
    known, asks = session[TICK] == tick, kind == REQUEST
    answered = known and asks and (session[ANSWER] >= 0 or session[REFUSED] != 0)
    outranked = desk.sessions[mail.reverse[edge], TICK] >= 0 and mail.heads[edge] < tail_of(mail, edge)
    taken = known and (kind == REPLY or (asks and not answered and not outranked))
    row = session[ASKED] if asks else session[ANSWER]
    newest = known and kind == REFUSAL
    if taken:
        slot = desk.rules[KIND + 2 * kind] * len(mail.heads) + back
        newest = hear(mail, slot, row, order, desk.copy_sent_at[place], tick)
        desk.counts[PHASE], desk.counts[EDGE], desk.counts[ROW] = (ACCEPT if asks else FINISH), edge, row
    mail.counts[OVERTAKEN] += not newest
    # An answer closes its session, and a request that is accepted a session of the callee's own on that edge.
    closing = edge if known and not asks else (back if taken and desk.sessions[back, TICK] >= 0 else -1)
    if closing >= 0:
        close_session(mail, desk, closing)
    if answered:
        answer(mail, desk, edge)


@compiled(forceinline=True, _nrt=False)
def charge(mail, agent, row):  # pragma: no cover - compiled
    """Charge an agent for a version, and keep it for comparison."""
    mail.charged[agent] += 1
    if mail.latest[agent] >= 0:
        let_go(mail, mail.latest[agent])
    mail.references[row] += 1
    mail.latest[agent] = row


@compiled(forceinline=True, _nrt=False)
def make_half(mail, desk, step, reals, wholes, singles, models, charges, own):  # pragma: no cover - compiled
    """Make half of an exchange; whether the agent's model is still finite."""
    phase, edge, row = desk.counts[PHASE], desk.counts[EDGE], desk.counts[ROW]
    acting = mail.reverse[edge] if phase == ACCEPT else edge
    agent, partner = tail_of(mail, acting), mail.heads[acting]
    heard = mail.pool[0][:0]
    if phase != OFFER:
        heard = mail.pool[row][: desk.widths[0 if phase == ACCEPT else 1, partner]]
    message = mail.pool[0][:0]
    if phase != FINISH:
        width = desk.widths[0 if phase == OFFER else 1, agent]
        row = take_row(mail, 0.0, 0, 0, 8 * width + desk.rules[HEADER])
        message = mail.pool[row][:width]
    first, last = mail.offsets[agent], mail.offsets[agent + 1]
    step(
        phase,
        agent,
        acting,
        mail.updates[agent],
        first,
        last,
        mail.known,
        mail.pool,
        own,
        heard,
        message,
        reals,
        wholes,
        singles,
    )
    total = 0.0
    for k in range(models.shape[1]):
        total += models[agent, k] * 0.0
    if total != 0.0:
        return False
    if phase != FINISH:
        desk.counts[ROW] = row
        if charges[agent] and is_news(mail, agent, row, len(message)):
            charge(mail, agent, row)
    return True


@compiled(forceinline=True, _nrt=False)
def carry_on(mail, desk, compiled_half):  # pragma: no cover - compiled
    """What follows from half of an exchange; whether a limit or a record is due."""
    phase, edge, row = desk.counts[PHASE], desk.counts[EDGE], desk.counts[ROW]
    desk.counts[PHASE] = 0
    if phase == OFFER:
        open_session(mail, desk, edge, row)
    elif phase == ACCEPT:
        desk.sessions[edge, ANSWER] = row
        desk.sessions[edge, REFUSED] = row < 0
        answer(mail, desk, edge)
    elif compiled_half:
        return count_step(mail, tail_of(mail, edge))
    return False


@compiled(forceinline=True, _nrt=False)
def settle_clocks(mail, desk):  # pragma: no cover - compiled
    """Put the agent that was woken back on its clock, and count one that will never step again; see `end_clock`."""
    if mail.counts[UNFINISHED]:
        agent = mail.heap_agent[0]
        mail.counts[UNFINISHED] = 0
        if not put_back(mail):
            desk.over[agent] = True
            if desk.watches[agent] == 0:
                desk.counts[ENDED] = agent
    agent = desk.counts[ENDED]
    if agent < 0:
        return REACHED, agent
    desk.counts[ENDED] = -1
    return clock_over(mail, agent), agent


@compiled(_nrt=False)
def run_exchanges(
    mail, desk, limit, forced, compiled_half, step, reals, wholes, singles, models, charges, own, law
):  # pragma: no cover - compiled
    """Run events strictly before ``limit``, and the first one anyway if ``forced``; why it stopped, and which agent."""
    counts = desk.counts
    while True:
        if counts[PHASE]:
            edge = counts[EDGE]
            if compiled_half and not make_half(mail, desk, step, reals, wholes, singles, models, charges, own):
                return DIVERGED, tail_of(mail, mail.reverse[edge] if counts[PHASE] == ACCEPT else edge)
            if carry_on(mail, desk, compiled_half):
                return COUNTED, tail_of(mail, edge)
        why, agent = settle_clocks(mail, desk)
        if why != REACHED:
            return why, agent
        if counts[ENOUGH] or counts[WORN]:
            return CHECK, -1
        if mail.counts[FREE_ROWS] == 0 or counts[FREE_COPIES] == 0 or counts[TIMERS] == len(desk.timer_due):
            return FULL, -1
        now, what = upcoming(mail, desk)
        if now == math.inf:
            return IDLE, -1
        if now >= limit and not forced:
            return REACHED, -1
        counted = what == TIMER or (what == WAKE and is_event(mail, mail.heap_agent[0], now))
        if counted and used_up(mail):
            desk.times[NOW] = now
            return LOOK, -1
        mail.counts[WAKES] += counted
        forced = False
        desk.times[NOW] = now
        if what == ARRIVAL:
            take_copy(mail, desk)
        elif what == TIMER:
            desk.times[LATE] = now
            look_after(mail, desk)
        else:
            wake_up(mail, desk, compiled_half, law)
        if counts[PHASE] and (not compiled_half or (counts[PHASE] == OFFER and desk.rules[OBSERVED])):
            return HALF, mail.heap_agent[0] if counts[PHASE] == OFFER else -1
