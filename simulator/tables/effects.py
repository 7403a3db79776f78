"""What a transition asks its driver for, and what it tells observers: two buffers, written in order and then emptied.

Tables that have them are named tuples with the fields ``now``, ``counts``, ``due``, ``effects``, ``note_times`` and
``notes``, and with `EFFECTS` and `NOTES` among the places of ``counts``.
"""

from __future__ import annotations

EFFECTS, NOTES, OBSERVED = range(3)
"""Places in ``counts`` of all such tables: entries in the buffers, and whether anybody observes."""

ARRIVE, ROUND_END, PATIENCE, REPEAT, UP, DOWN, GONE = range(7)
"""What happens: a copy arrives, an agent's round ends, its patience is over, a message is to be repeated; an agent
comes up, goes down, or goes down for good."""

PRIORITY, WHAT, SUBJECT, SERIAL, EFFECT_COLUMNS = range(5)
"""Columns of ``effects``, beside the time that each is ``due``."""

WOKE, READ, SENT, ARRIVED = range(4)
"""What is noted: a step begins, what it reads of a link and kind, a copy is sent, a copy arrives."""
NOTE, AGENT, TICK, KIND, ORDER, SLOT, ROW, SIZE, TAKEN, NEWEST, NOTE_COLUMNS = range(11)
"""Columns of ``notes``; ``note_times`` has the time, and for a copy its delay, infinite if it is lost. The kind is a
rank, and -1 - rank for an acknowledgement of that kind."""
