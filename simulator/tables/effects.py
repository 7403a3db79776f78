"""Buffer of the effects that a transition asks its driver for, written in order and then emptied.

Tables that have it are named tuples with the fields ``counts``, ``due`` and ``effects``, and with `EFFECTS` among the
places of ``counts``.
"""

from __future__ import annotations

EFFECTS, FREE_COPIES, ENOUGH, WORN, SHARED = range(5)
"""Places in ``counts`` of all such tables: entries in the buffer; free places of copies under way; whether the vectors
asked for were sent, or a message was repeated more often than there are draws for it. Other places follow."""

ARRIVE, ROUND_END, PATIENCE, REPEAT, UP, DOWN, GONE, REACH, COMPUTED = range(9)
"""What happens: a copy arrives, an agent's round ends, its patience is over, a message is to be repeated; an agent
comes up, goes down, or goes down for good; a copy reaches a downlink that transfers share; a step has been computed."""

PRIORITY, WHAT, SUBJECT, SERIAL, EFFECT_COLUMNS = range(5)
"""Columns of ``effects``, beside the time that each is ``due``."""


ARRIVAL, AVAILABILITY, TIMER, WAKE = 2, 3, 4, 5
"""Order of events at equal times: arrivals, availability, timers, wake-ups by agent (``WAKE + agent``), recorder."""
RECORD = 2**40
"""Priority of the recorder: after everything else at its instant."""
LAST = RECORD + 1
"""Priority of the end of a run."""


NOBODY, KEPT, TOLD = range(3)
"""What becomes of notes, in ``counts[OBSERVED]``: none are written; they are kept as they are; observers are told of
them, messages with their vectors."""

WOKE, DEPARTED, ARRIVED = range(3)
"""What is noted: a planned step begins, a copy is sent, a copy arrives."""

NOTE, PLACE, RANK, TICK, KIND, ROW, SIZE, TAKEN, NEWEST, NOTE_COLUMNS = range(10)
"""Columns of ``notes``; ``note_times`` has the time, and for a copy that is sent its delay. Place is the receiver's
directed edge to the sender, or who wakes; rank is the order of sending; kind is one by its number, beyond all kinds of
the protocol for a copy without numbers, and -1 - number for an acknowledgement of that kind; row is -1 where there are
no numbers; taken says that a copy is not lost, or finds its receiver up. An arrival has no tick, kind, row and size,
and the rank and place that the copy was sent with. A step has the rank of the last message that was sent before it; if
it took time, its delay is how long ago it began, and its size the rank of the last message before that."""
