"""Buffer of the effects that a transition asks its driver for, written in order and then emptied.

Tables that have it are named tuples with the fields ``counts``, ``due`` and ``effects``, and with `EFFECTS` among the
places of ``counts``.
"""

from __future__ import annotations

EFFECTS = 0
"""Place in ``counts`` of all such tables: entries in the buffer."""

ARRIVE, ROUND_END, PATIENCE, REPEAT, UP, DOWN, GONE = range(7)
"""What happens: a copy arrives, an agent's round ends, its patience is over, a message is to be repeated; an agent
comes up, goes down, or goes down for good."""

PRIORITY, WHAT, SUBJECT, SERIAL, EFFECT_COLUMNS = range(5)
"""Columns of ``effects``, beside the time that each is ``due``."""
