"""Rows of a run's trace."""

from __future__ import annotations

HEAD = 5
"""The first of its columns, which say when a row was measured: time, activations, messages, vectors, bytes so far."""
ROW = ("time", "activations", "messages", "vectors", "bytes", "metric", "statistic", "value")
"""What the columns of a trace with such rows are called."""
KINDS = (float, int, int, int, int, object, object, float)
"""What they hold."""
