"""The total order of events at equal times."""

from __future__ import annotations

ARRIVAL, AVAILABILITY, TIMER, WAKE = 2, 3, 4, 5
"""Order of events at equal times: arrivals, availability, timers, wake-ups by agent (``WAKE + agent``), recorder."""
RECORD = 2**40
"""Priority of the recorder: after everything else at its instant."""
LAST = RECORD + 1
"""Priority of the end of a run."""
