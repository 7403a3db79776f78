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
"""What is noted: a step, a copy that is sent, and for observers who are told of single events its arrival."""

FATE_DELIVERED, FATE_OVERTAKEN, FATE_LOST, FATE_DROPPED, FATE_UNDER_WAY = range(5)
"""What becomes of a copy, in the order of `hushnet.simulator.language.message_window.FATES`."""
