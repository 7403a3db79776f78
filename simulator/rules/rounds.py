"""Neighbour-barrier rounds: a synchronous protocol on an asynchronous network, as transitions.

Agent i's k-th round (k = 1, 2, ...) begins when it holds the message of round k - 1 of every neighbour, and lasts the
k-th interval of its clock, the same draw as under the asynchronous schedule. At its end the agent steps, with exactly
the values of round k - 1 in its inbox, and sends its message of round k. What is there already of later rounds waits
in a buffer. Without loss and absences the models are, bit for bit, those of the synchronous loop; the network only
decides when.

A message belongs to the tick of the step that sent it: round k has tick k - 1, and meets the same delay and loss as
the asynchronous message of that tick. Messages of round 0 are what ``start`` sends, known beforehand or never
(``network.start``), so round 1 begins at once.

=================  ====================================================================================================
what may happen    what an agent does
=================  ====================================================================================================
down at the end    steps and sends as soon as it is up again
takes time         its step is made once it was computed, with the messages that the round's end has shown
falls silent       its last message says so and stands for all later rounds; silent from the start, it is not waited for
lost, dropped      ``resend_after``: every copy is acknowledged (no numbers, header bytes, itself late or lost), and
                   what was not acknowledged in time is repeated, by a sender that is up; the same bytes, so free of
                   charge; nothing is repeated to agents that never come back
waits too long     ``patience``: goes on with the newest round that it knows of each neighbour, never with an older one
                   than before; the next round waits again for its own messages; refused to protocols that need
                   values of the same round at both ends of an edge (`Traits.needs_both_ends`)
waits for ever     once nobody can go on any more, the run ends with a `Stall`
=================  ====================================================================================================

Every transition writes tables and asks for events (`hushnet.simulator.rules.forms.schedule`); none raises anything.
Which engine drives them changes when they are called, and nothing else.
"""

from __future__ import annotations

import math

from ..tables.effects import COMPUTED, ENOUGH, FREE_COPIES, PATIENCE, REPEAT, ROUND_END, TIMER, WAKE
from ..tables.round_table import (
    ACKNOWLEDGED,
    BEGUN_WITHOUT,
    COMPUTES,
    COPY_ORDER,
    COPY_SIZE,
    DONE,
    ENDED,
    ENDED_AGENTS,
    IN_TIME,
    IS_ANSWER,
    IS_GONE,
    IS_UP,
    LAST,
    LONGEST_WAIT,
    ON_SLOT,
    QUEUE_FIRST,
    QUEUE_LAST,
    RECORD,
    RESEND_AFTER,
    SHOWN_MESSAGES,
    STALLED,
    TIMED,
    WAIT_NUMBER,
    WAITING_AGENTS,
    WAITS,
    RoundTables,
)
from ..tables.run import MOST_VECTORS, RunTables
from ..tables.tallies import IN_FLIGHT, VECTORS
from .clock_rules import end_clock, next_time
from .compute_rules import begin_computing
from .delivery import arrive
from .forms import rule, schedule
from .round_messages import acknowledge, hold, holds, newest, release, repeat, show_round


@rule
def retire(run: RunTables, tables: RoundTables, agent: int):
    """Count an agent that will never step again."""
    if end_clock(run, agent):
        tables.counts[DONE] = 1


@rule
def check_stall(run: RunTables, tables: RoundTables):
    """Note whether agents wait and nothing that could end their waiting is under way or will ever be.

    That is: nobody is in a round, no copy is in flight, and no repeat is due between agents that will be up.
    """
    counts = tables.counts
    if tables.constants[LONGEST_WAIT] < math.inf or counts[WAITING_AGENTS] == 0 or run.counts[IN_FLIGHT] > 0:
        return
    if counts[WAITING_AGENTS] + counts[ENDED_AGENTS] < len(tables.agents):
        return
    for record in range(len(tables.records)):
        kept = tables.records[record]
        if kept[TIMED] and not kept[ACKNOWLEDGED]:
            sender, receiver = run.heads[kept[ON_SLOT]], run.heads[run.reverse[kept[ON_SLOT]]]
            if not (tables.agents[sender][IS_GONE] or tables.agents[receiver][IS_GONE]):
                return
    counts[STALLED] = 1


@rule
def end_rounds(run: RunTables, tables: RoundTables, agent: int):
    """Note that an agent makes no further round."""
    if not tables.agents[agent][ENDED]:
        tables.agents[agent][ENDED] = 1
        tables.counts[ENDED_AGENTS] += 1
    check_stall(run, tables)


@rule
def holds_all(run: RunTables, tables: RoundTables, agent: int):
    """True if an agent holds what its next round needs of every neighbour."""
    number = run.agents.ticks[agent] + 1
    for slot in range(run.offsets[agent], run.offsets[agent + 1]):
        if not holds(tables, slot, number):
            return False
    return True


@rule
def begin_round(run: RunTables, tables: RoundTables, agent: int, in_time: bool):
    """A round begins, and lasts an interval of the agent's clock."""
    tables.agents[agent][IN_TIME] = in_time
    end = next_time(run, agent, run.agents.ticks[agent] + 1, tables.now[0])
    schedule(tables, end, WAKE + agent, ROUND_END, agent, 0)


@rule
def await_neighbours(run: RunTables, tables: RoundTables, agent: int):
    """Begin the next round, or wait for it."""
    if holds_all(run, tables, agent):
        begin_round(run, tables, agent, True)
        return
    waiting = tables.agents[agent]
    waiting[WAITS] = 1
    waiting[WAIT_NUMBER] += 1
    tables.counts[WAITING_AGENTS] += 1
    check_stall(run, tables)
    if tables.constants[LONGEST_WAIT] < math.inf:
        due = tables.now[0] + tables.constants[LONGEST_WAIT]
        schedule(tables, due, TIMER, PATIENCE, agent, waiting[WAIT_NUMBER])


@rule
def stop_waiting(tables: RoundTables, agent: int):
    """An agent waits no longer."""
    tables.agents[agent][WAITS] = 0
    tables.counts[WAITING_AGENTS] -= 1


@rule
def queue_while_down(tables: RoundTables, agent: int, item: int):
    """Queue an item until an agent is up, in order; return False if the agent is up, or gone for good."""
    down = tables.agents[agent]
    if down[IS_UP] or down[IS_GONE]:
        return False
    tables.queue[item] = -1
    if down[QUEUE_FIRST] < 0:
        down[QUEUE_FIRST] = item
    else:
        tables.queue[down[QUEUE_LAST]] = item
    down[QUEUE_LAST] = item
    return True


@rule
def start_rounds(run: RunTables, tables: RoundTables, agent: int):
    """Round 1 begins at once; nobody waits for an agent that is silent from the start."""
    if not run.agents.silent[agent]:
        await_neighbours(run, tables, agent)
        return
    if not tables.agents[agent][IS_GONE]:
        for edge in range(run.offsets[agent], run.offsets[agent + 1]):
            tables.links[run.reverse[edge]][LAST] = 0
    end_rounds(run, tables, agent)
    retire(run, tables, agent)


@rule
def on_arrival(run: RunTables, tables: RoundTables, place: int):
    """A copy arrives: a message of a round, or an acknowledgement."""
    copy = tables.copies[place]
    record, order, is_answer, size = copy[RECORD], copy[COPY_ORDER], copy[IS_ANSWER], copy[COPY_SIZE]
    tables.free_copies[tables.counts[FREE_COPIES]] = place
    tables.counts[FREE_COPIES] += 1
    sent = tables.records[record]
    slot = run.reverse[sent[ON_SLOT]] if is_answer else sent[ON_SLOT]
    agent = run.heads[run.reverse[slot]]
    up, useful = tables.agents[agent][IS_UP] != 0, False
    if up:
        if is_answer:
            useful = sent[ACKNOWLEDGED] == 0
            sent[ACKNOWLEDGED] = 1
        else:
            useful = hold(tables, record, order)
    arrive(run, slot, order, size, tables.now[0], up, useful)
    if up and not is_answer:
        if tables.constants[RESEND_AFTER] < math.inf:
            acknowledge(run, tables, record)
        if useful and tables.agents[agent][WAITS] and holds_all(run, tables, agent):
            stop_waiting(tables, agent)
            begin_round(run, tables, agent, True)
    check_stall(run, tables)
    release(run, tables, record)


@rule
def is_repeated(run: RunTables, tables: RoundTables, record: int):
    """True if a message whose time to be repeated has come is repeated now."""
    sent = tables.records[record]
    sender, receiver = run.heads[sent[ON_SLOT]], run.heads[run.reverse[sent[ON_SLOT]]]
    gone = tables.agents[sender][IS_GONE] or tables.agents[receiver][IS_GONE]
    return tables.agents[sender][IS_UP] != 0 and not sent[ACKNOWLEDGED] and not gone


@rule
def counts_as_event(run: RunTables, tables: RoundTables, what: int, subject: int, serial: int):
    """True if an event counts against the run's limits: a step, patience that is over, or a repeat."""
    agents = tables.agents
    if what == ROUND_END:
        return agents[subject][IS_UP] != 0 and agents[subject][IS_GONE] == 0
    if what == PATIENCE:
        return agents[subject][WAITS] != 0 and agents[subject][WAIT_NUMBER] == serial
    return what == REPEAT and is_repeated(run, tables, subject)


@rule
def on_patience(run: RunTables, tables: RoundTables, agent: int, wait_number: int):
    """An agent has waited as long as it is willing to; it may have gone on since."""
    if tables.agents[agent][WAITS] and tables.agents[agent][WAIT_NUMBER] == wait_number:
        tables.counts[BEGUN_WITHOUT] += 1
        stop_waiting(tables, agent)
        begin_round(run, tables, agent, False)


@rule
def on_repeat(run: RunTables, tables: RoundTables, record: int):
    """A message is due to be repeated, unless it is known to have arrived or never can."""
    sent = tables.records[record]
    sender = run.heads[sent[ON_SLOT]]
    if queue_while_down(tables, sender, len(tables.agents) + record):
        return
    if not is_repeated(run, tables, record):
        sent[TIMED] = 0
        release(run, tables, record)
        return
    repeat(run, tables, record)
    if run.counts[VECTORS] >= run.constants[MOST_VECTORS]:
        tables.counts[ENOUGH] = 1


@rule
def goes_on(run: RunTables, tables: RoundTables, agent: int):
    """True if an agent goes on with its round now; otherwise it does once it is up, or is gone for good."""
    if queue_while_down(tables, agent, agent):
        return False
    if tables.agents[agent][IS_GONE]:
        end_rounds(run, tables, agent)
        retire(run, tables, agent)
        return False
    return True


@rule
def on_round_end(run: RunTables, tables: RoundTables, agent: int):
    """A round ends: whether the agent steps now, and has not to compute before, with its inbox as it is to be."""
    tables.counts[SHOWN_MESSAGES] = 0
    if not goes_on(run, tables, agent):
        return False
    run.agents.ticks[agent] += 1
    in_time = tables.agents[agent][IN_TIME] != 0
    for slot in range(run.offsets[agent], run.offsets[agent + 1]):
        number = run.agents.ticks[agent] if in_time else newest(tables, slot)
        last = tables.links[slot][LAST]
        show_round(run, tables, slot, min(number, last) if last >= 0 else number)
    time = begin_computing(run, agent, tables.now[0])
    if time > 0.0:
        tables.agents[agent][COMPUTES] = 1
        schedule(tables, tables.now[0] + time, TIMER, COMPUTED, agent, 0)
    return time == 0.0


@rule
def on_computed(run: RunTables, tables: RoundTables, agent: int):
    """A step that takes time was computed: whether the agent makes it now."""
    made = goes_on(run, tables, agent)
    if made:
        tables.agents[agent][COMPUTES] = 0
    return made


@rule
def after_step(run: RunTables, tables: RoundTables, agent: int):
    """An agent has made its step and said its round: it waits for the next, or has ended."""
    if run.agents.silent[agent]:
        end_rounds(run, tables, agent)
        retire(run, tables, agent)
    else:
        await_neighbours(run, tables, agent)


@rule
def on_available(run: RunTables, tables: RoundTables, agent: int, up: bool, gone: bool):
    """An agent comes up, goes down, or is down for good; what had to wait goes on."""
    changed = tables.agents[agent]
    changed[IS_UP] = up
    if gone:
        changed[IS_GONE] = 1
        run.agents.silent[agent] = True
    if up or gone:
        item = changed[QUEUE_FIRST]
        changed[QUEUE_FIRST] = -1
        while item >= 0:
            following = tables.queue[item]
            if item < len(tables.agents):
                what = COMPUTED if changed[COMPUTES] else ROUND_END
                schedule(tables, tables.now[0], WAKE + agent, what, item, 0)
            else:
                schedule(tables, tables.now[0], WAKE + agent, REPEAT, item - len(tables.agents), 0)
            item = following
    if gone:
        waited = changed[WAITS] != 0
        if waited:
            stop_waiting(tables, agent)
        end_rounds(run, tables, agent)
        if waited:
            retire(run, tables, agent)
