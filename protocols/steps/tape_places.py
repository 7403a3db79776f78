"""Where things are on the tape of a watched step (`hushnet.protocols.steps.tape`)."""

from __future__ import annotations

SUM, MINIMISER = 1.0, 2.0
"""Kinds of draws: noise was added to a vector, or to the linear term of an objective that was then minimised."""
HEAD = 5
"""Numbers before the vectors of a draw: kind, width, terms."""
WATCHED, USED, DRAWS, LED, PLACES = range(5)
"""Places in ``taped_``; from the last on, where each given result begins, and where the last one ends."""
MOST = 64
"""Draws of one step that there is room for."""
