"""Rows of a run's trace, and the window between the records where the run met its target."""

from __future__ import annotations

from dataclasses import dataclass

Row = tuple[float, int, int, int, int, str, str, float]
"""Time, activations, messages, vectors and bytes so far; metric, statistic, value."""
ROW = ("time", "activations", "messages", "vectors", "bytes", "metric", "statistic", "value")
"""What the columns of a trace with such rows are called."""
KINDS = (float, int, int, int, int, object, object, float)
"""What they hold."""


@dataclass(frozen=True)
class HitWindow:
    """Between which records a run first met its target.

    Parameters
    ----------
    metric, statistic : str
        What the target is about, as the trace has it.
    level : float
        What it has to meet, on the scale on which it is recorded.
    rising : bool
        Whether it is met from below.
    after, until : int
        Activations at the last record that does not meet it, and at the first that does.
    stride : int
        Activations between two looks, >= 1.
    """

    metric: str
    statistic: str
    level: float
    rising: bool
    after: int
    until: int
    stride: int = 1

    def met(self, value: float) -> bool:
        """Say whether a value meets the target."""
        return value >= self.level if self.rising else value <= self.level
