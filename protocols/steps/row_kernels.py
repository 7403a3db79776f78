"""Kernels over the rows of a batch of agents: gradients, scores and sums, read from the task's table where it is.

Each serves one agent as it serves many, so a row of a batch has the bits that it has alone. Arguments named ``agents``
are (B,) int64, ``features``, ``labels`` and ``offsets`` the packed rows of all agents
(`hushnet.agents.tables.Table`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...agents.compilation import REASSOCIATED, compiled, part
from ...agents.loss_codes import slope_of, summed
from ...agents.optimisation.compiled_newton import minimise

ORDINARY, EXTREME = 1e-40, 1e100
"""As in `hushnet.agents.clipping`: between these, products of two numbers and their squares are ordinary."""
SHORT = 1.0 - 2.0**-47
NORMS = {"": 0, "l1": 1, "l2": 2}
"""Norms to which gradients of examples are clipped; the first is for none."""


def _kernel(function: Any) -> Any:
    return compiled(function, fastmath=REASSOCIATED, error_model="numpy", _nrt=False)


def _small(function: Any) -> Any:
    return part(function, fastmath=REASSOCIATED, error_model="numpy")


@_small
def length_of(norm, row, unit):  # pragma: no cover - compiled
    """Norm of a row in units."""
    total = 0.0
    if norm == 1:
        for k in range(len(row)):
            total += abs(row[k] * unit)
        return total
    for k in range(len(row)):
        x = row[k] * unit
        total += x * x
    return math.sqrt(total)


@_small
def shortened(norm, slope, row, bound):  # pragma: no cover - compiled
    """Factor and unit of a row in a sum of clipped gradients, see `hushnet.agents.clipping.clipped_terms`."""
    length = length_of(norm, row, 1.0)
    if length < EXTREME and abs(slope) < EXTREME and ORDINARY < bound < EXTREME:
        short = SHORT * bound
        return slope * (short / max(length * abs(slope), short)), 1.0
    largest = 0.0
    for k in range(len(row)):
        if not math.isfinite(row[k]):
            return 0.0, 0.0
        largest = max(largest, abs(row[k]))
    if not math.isfinite(slope):
        return 0.0, 0.0
    power = 2.0 ** (math.frexp(largest)[1] - 1)
    length = length_of(norm, row, 1.0 / power)
    scaled = slope * power
    if abs(scaled) * length > bound:
        return (math.copysign(1.0, slope) if slope != 0.0 else 0.0) * SHORT * bound / length, 1.0 / power
    return scaled, 1.0 / power


@_small
def add_row(x, label, model, loss, scale, out):  # pragma: no cover - compiled
    """Add a multiple of one example's gradient to a vector."""
    score = 0.0
    for k in range(len(model)):
        score += x[k] * model[k]
    share = scale * slope_of(loss, score, label)
    for k in range(len(model)):
        out[k] += share * x[k]


@_small
def add_clipped_row(x, label, model, loss, norm, bound, scale, out):  # pragma: no cover - compiled
    """Add a multiple of one example's clipped gradient to a vector."""
    score = 0.0
    for k in range(len(model)):
        score += x[k] * model[k]
    share, unit = shortened(norm, slope_of(loss, score, label), x, bound)
    share *= scale
    if unit == 1.0:
        for k in range(len(model)):
            out[k] += share * x[k]
    elif unit > 0.0:
        for k in range(len(model)):
            out[k] += share * (x[k] * unit)


@_kernel
def gradients(features, labels, offsets, agents, models, decays, loss, norm, bound, out):  # pragma: no cover - compiled
    """Fill (B, p) with gradients of mean losses over all rows of each agent, plus ``decays`` times the models."""
    for b in range(len(agents)):
        first, last = offsets[agents[b]], offsets[agents[b] + 1]
        model, own, decay = models[b], out[b], decays[b] if last > first else 0.0
        for k in range(len(own)):
            own[k] = decay * model[k]
        scale = 1.0 / max(last - first, 1)
        if norm:
            for row in range(first, last):
                add_clipped_row(features[row], labels[row], model, loss, norm, bound, scale, own)
        else:
            for row in range(first, last):
                add_row(features[row], labels[row], model, loss, scale, own)


@_kernel
def gradients_at(
    features, labels, offsets, agents, models, ranks, starts, loss, norm, bound, out
):  # pragma: no cover - compiled
    """Fill (B, p) with gradients of mean losses over the rows of agent b that ranks[starts[b]:starts[b + 1]] name."""
    for b in range(len(agents)):
        first, own, model = offsets[agents[b]], out[b], models[b]
        own[:] = 0.0
        scale = 1.0 / max(starts[b + 1] - starts[b], 1)
        for place in range(starts[b], starts[b + 1]):
            row = first + ranks[place]
            if norm:
                add_clipped_row(features[row], labels[row], model, loss, norm, bound, scale, own)
            else:
                add_row(features[row], labels[row], model, loss, scale, own)


@compiled(fastmath=REASSOCIATED, error_model="numpy")
def objectives(features, labels, offsets, agents, models, regularisation, loss, out):  # pragma: no cover - compiled
    """Fill (B, 1) with mean losses over all rows of each agent, plus ``regularisation`` times the squared norms."""
    for b in range(len(agents)):
        first, last = offsets[agents[b]], offsets[agents[b] + 1]
        out[b, 0] = 0.0
        if last == first:
            continue
        model, squares = models[b], 0.0
        scores = np.empty(last - first)
        for k in range(len(model)):
            squares += model[k] * model[k]
        for row in range(first, last):
            score = 0.0
            for k in range(len(model)):
                score += features[row, k] * model[k]
            scores[row - first] = score
        total = summed(loss, scores, labels[first:last], last - first)
        out[b, 0] = total / (last - first) + regularisation[b] * squares


@compiled(fastmath=REASSOCIATED, error_model="numpy")
def minimisers(
    features, labels, offsets, agents, weights, curvatures, linear, starts, tolerances, loss, out
):  # pragma: no cover - compiled
    """Fill (B, p) with minimisers, see `hushnet.agents.optimisation.compiled_newton.minimise`."""
    for b in range(len(agents)):
        first, last = offsets[agents[b]], offsets[agents[b] + 1]
        out[b] = minimise(
            features[first:last],
            labels[first:last],
            weights[b],
            curvatures[b],
            linear[b],
            starts[b],
            tolerances[b],
            loss,
        )


def table_starts(counts: Any) -> Any:
    """(B + 1,) where each of some segments begins, of (B,) lengths."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts
