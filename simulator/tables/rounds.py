"""The state of rounds: what every agent waits for, what it holds of each neighbour, and what is under way."""

from __future__ import annotations

from typing import Any, NamedTuple

from .effects import EFFECTS

(
    FREE_RECORDS,
    FREE_COPIES,
    WAITING_AGENTS,
    ENDED_AGENTS,
    STALLED,
    DONE,
    ENOUGH,
    WORN,
    STEPPING,
    SHOWN_MESSAGES,
    BEGUN_WITHOUT,
    REPEATED,
    COUNTS,
) = range(EFFECTS + 1, EFFECTS + 14)
"""Places in `RoundTables.counts` after those of all tables with effects: free records and copies; agents that wait and
agents that make no further round; whether nobody can ever go on, everybody is done, the vectors asked for were sent, or
a message was repeated more often than there are draws for it; who steps, and how many messages its
inbox shows for the first time; rounds that were begun without all that they waited for, and repeated messages."""

RESEND_AFTER, LONGEST_WAIT, HEADER, DURATIONS = range(4)
"""Places in `RoundTables.constants`: time until a message is repeated, and until an agent loses patience (both infinite
if never); bytes of a message without numbers."""

IS_UP, IS_GONE, WAITS, WAIT_NUMBER, IN_TIME, ENDED, QUEUE_FIRST, QUEUE_LAST, AGENT_COLUMNS = range(9)
"""Columns of `RoundTables.agents`: up, down for good, waiting, how often it has waited; whether the round that it is in
began with all that it waited for; whether it makes no further round; what waits until it is up, in order."""

SHOWN, LAST, FIRST_HELD, SAYING, LINK_COLUMNS = range(5)
"""Columns of `RoundTables.links`, by the receiver's slot: newest round that the inbox has shown, the neighbour's last
round (-1: not known), the rounds held beyond, and the round that is just being said (-1: none)."""

(
    ON_SLOT,
    OF_TICK,
    OF_KIND,
    VERSION,
    ATTEMPT,
    ACKNOWLEDGED,
    REFERENCES,
    TIMED,
    HELD_ORDER,
    HEAD,
    SIBLING,
    PARTS,
    HELD_PARTS,
    NEXT_HELD,
    ANSWERS,
    IS_LAST,
    RECORD_COLUMNS,
) = range(17)
"""Columns of `RoundTables.records`, one for each message of a round on one link: where it goes, its tick, kind and
version (-1: no numbers); how often it was repeated, whether the sender knows that it arrived, whether it is repeated;
order of the copy that is held (-1: none). The first message of a round on a link stands for the round: it has the
number of references to any of them, of messages, how many are held, the next round held, how many acknowledgements were
sent, and whether the sender has fallen silent; the others know it as their head, and each the one said after it."""

RECORD, COPY_ORDER, IS_ANSWER, COPY_SIZE, COPY_COLUMNS = range(5)
"""Columns of `RoundTables.copies`: the message, the order of sending, whether it is an acknowledgement, bytes."""


class RoundTables(NamedTuple):
    """All arrays of rounds; rules take them as one argument beside the `hushnet.simulator.tables.run.RunTables`.

    Attributes
    ----------
    now : (1,) float64
    counts : (COUNTS,) int64
    constants : (DURATIONS,) float64
    vectors : (kinds,) int64
        Model-sized vectors that a message of each kind counts as.
    agents : (n, AGENT_COLUMNS) int64
    links : (E, LINK_COLUMNS) int64
    records : (R, RECORD_COLUMNS) int64
        As long as anything refers to them.
    free_records : (R,) int64
    copies : (C, COPY_COLUMNS) int64
    free_copies : (C,) int64
    shown : (K, 2) int64
        Messages that the inbox of who steps shows for the first time: slot of their kind, and order of sending.
    queue : (n + R,) int64
        What waits next for an agent to come up: entry i is the end of agent i's round, n + r a repeat of record r.
    due : (F,) float64
    effects : (F, EFFECT_COLUMNS) int64
    """

    now: Any
    counts: Any
    constants: Any
    vectors: Any
    agents: Any
    links: Any
    records: Any
    free_records: Any
    copies: Any
    free_copies: Any
    shown: Any
    queue: Any
    due: Any
    effects: Any
