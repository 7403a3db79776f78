"""Steps as functions of a record ``me``, of one agent or of a batch of agents.

A protocol's ``step(me)`` (``react``, or ``request``, ``respond`` and ``complete`` of an exchange) says what an agent
computes and sends. What ``me`` has is listed in `hushnet.protocols.steps.step_names`. The operators below are ordinary
functions of it, as is everything else that a step may call: it is Python. A step that is marked `batched` gets many
agents at once, whose steps do not depend on each other: their vectors are rows, and their numbers columns.
"""

from __future__ import annotations

from .declarations import Every
from .loss_operators import (
    accumulate,
    add_scaled,
    bends,
    clipped,
    local_gradient,
    local_loss,
    loss_gradient,
    minimised,
    rows_minimised,
    scores_of,
    slopes,
    solved_by,
    sum_of_rows,
)
from .operators import (
    affords,
    average,
    choice,
    draw_each,
    draw_rows,
    heard_of,
    heard_sum,
    median,
    mixed,
    mixing_weights,
    normal,
    per_edge,
    perturbed,
    perturbed_minimiser,
    post_processed,
    received,
    sample_size,
    segment_sum,
    trimmed_mean,
    uniform,
    weighted_sum,
)
from .robust_operators import (
    aggregated,
    clipped_gossip,
    coordinate_median,
    coordinate_trimmed_mean,
    geometric_median,
    krum,
)
from .single_steps import batched
from .step_names import Constants

__all__ = [
    "Constants",
    "Every",
    "accumulate",
    "add_scaled",
    "affords",
    "aggregated",
    "average",
    "batched",
    "bends",
    "choice",
    "clipped",
    "clipped_gossip",
    "coordinate_median",
    "coordinate_trimmed_mean",
    "draw_each",
    "draw_rows",
    "geometric_median",
    "heard_of",
    "heard_sum",
    "krum",
    "local_gradient",
    "local_loss",
    "loss_gradient",
    "median",
    "minimised",
    "mixed",
    "mixing_weights",
    "normal",
    "per_edge",
    "perturbed",
    "perturbed_minimiser",
    "post_processed",
    "received",
    "rows_minimised",
    "sample_size",
    "scores_of",
    "segment_sum",
    "slopes",
    "solved_by",
    "sum_of_rows",
    "trimmed_mean",
    "uniform",
    "weighted_sum",
]
