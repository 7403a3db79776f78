"""Steps as one text: a plain function of the agent's own record ``me``, run as Python or compiled.

A protocol's ``step(me)`` (or ``request``, ``respond`` and ``complete`` of an exchange) says what an agent computes and
sends. What ``me`` has is listed in `hushnet.protocols.steps.names`; the words below are what such a text may call
besides NumPy and `math`, each with a compiled form of its own.
"""

from __future__ import annotations

from .names import Constants
from .solves import minimised, perturbed_minimiser
from .words import (
    add_scaled,
    affords,
    as_written,
    average,
    bends,
    clipped,
    draw_each,
    draw_rows,
    heard_of,
    heard_sum,
    local_gradient,
    loss_gradient,
    perturbed,
    post_processed,
    rows_minimised,
    scores_of,
    slopes,
    solved_by,
    sum_of_rows,
    take_in,
    weighted_sum,
)

__all__ = [
    "Constants",
    "add_scaled",
    "affords",
    "as_written",
    "average",
    "bends",
    "clipped",
    "draw_each",
    "draw_rows",
    "heard_of",
    "heard_sum",
    "local_gradient",
    "loss_gradient",
    "minimised",
    "perturbed",
    "perturbed_minimiser",
    "post_processed",
    "rows_minimised",
    "scores_of",
    "slopes",
    "solved_by",
    "sum_of_rows",
    "take_in",
    "weighted_sum",
]
