"""Which values a metric can have: the one place that says so, for intervals that must not leave them."""

from __future__ import annotations

import math

SHARES = ("accuracy",)
"""Metrics from 0 to 1."""

SIZES = (
    "rmse", "mse", "training_loss", "test_loss", "epsilon_claimed", "epsilon_verified", "traffic", "age", "updates",
    "conserved", "time", "activations", "messages", "vectors", "bytes", "samples", "degree", "time_to_target",
    "activations_to_target", "vectors_to_target", "messages_to_target", "bytes_to_target",
    "vectors_with_start", "messages_with_start", "vectors_with_start_to_target", "messages_with_start_to_target",
)  # fmt: skip
"""Metrics from 0 on."""

Range = tuple[float, float]
"""Smallest and largest value."""

ANY: Range = (-math.inf, math.inf)


def range_of(metric: str, statistic: str = "") -> Range:
    """Smallest and largest value that a metric can have; of what nobody knows (a user's own), any.

    Parameters
    ----------
    metric, statistic : str
        As in the trace. The gap of an objective is a size as long as agents have one model; see `within_range`.

    Examples
    --------
    >>> range_of("accuracy"), range_of("objective", "gap"), range_of("./mine.py:measure")
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    if metric in SHARES:
        return 0.0, 1.0
    if metric in SIZES or (metric == "objective" and statistic == "gap"):
        return 0.0, math.inf
    return ANY


def range_of_difference(of: Range) -> Range:
    """Smallest and largest difference of two values of a range."""
    low, high = of
    return low - high, high - low
