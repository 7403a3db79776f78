"""Rows of a run's trace."""

from __future__ import annotations

Row = tuple[float, int, int, float, int, str, str, float]
"""Time, activations, messages, vectors and bytes so far; metric, statistic, value."""
ROW = ("time", "activations", "messages", "vectors", "bytes", "metric", "statistic", "value")
"""What the columns of a trace with such rows are called."""
KINDS = (float, int, int, int, int, object, object, float)
"""What they hold."""
