"""The compiled forms of the words for gradients of the own data, clipped example by example."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...agents.compiled_losses import CompiledLoss
from .word_form import Categories, Form, NoForm, check_count, fast, rank_of, ranks_of, reading

ORDINARY, EXTREME = 1e-40, 1e100
"""As in `hushnet.agents.clipping`: between these, products of two numbers and their squares are ordinary."""
SHORT = 1.0 - 2.0**-47


def loss_of(categories: Categories) -> CompiledLoss:
    """The task's loss, compiled.

    Raises
    ------
    NoForm
        If it is none of hushnet's own.
    """
    if not categories.loss:
        raise NoForm("the task's loss is not one of hushnet's own")
    return CompiledLoss.of(categories.loss)


def shortened_in(norm: str) -> Callable[..., Any]:
    """The factor of a row in a sum of clipped gradients, see `hushnet.agents.clipping.clipped_terms`."""
    first = norm == "l1"

    @fast
    def length_of(row, unit):  # pragma: no cover - compiled
        total = 0.0
        for k in range(len(row)):
            x = row[k] * unit
            total += abs(x) if first else x * x
        return total if first else math.sqrt(total)

    @fast
    def shortened(slope, row, bound):  # pragma: no cover - compiled
        length = length_of(row, 1.0)
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
        length = length_of(row, 1.0 / power)
        scaled = slope * power
        if abs(scaled) * length > bound:
            return (math.copysign(1.0, slope) if slope != 0.0 else 0.0) * SHORT * bound / length, 1.0 / power
        return scaled, 1.0 / power

    return shortened


def _add_row(categories: Categories) -> Callable[..., Any]:
    """Add a multiple of one example's gradient to a vector; the example's score."""
    slope = loss_of(categories).slope

    @fast
    def plain(x, y, model, bound, scale, out):  # noqa: ARG001 - as the other  # pragma: no cover - compiled
        score = 0.0
        for k in range(len(model)):
            score += x[k] * model[k]
        share = scale * slope(score, y)
        for k in range(len(model)):
            out[k] += share * x[k]
        return score

    if not categories.clip:
        return plain
    shortened = shortened_in(categories.clip)

    @fast
    def clipped(x, y, model, bound, scale, out):  # pragma: no cover - compiled
        score = 0.0
        for k in range(len(model)):
            score += x[k] * model[k]
        share, unit = shortened(slope(score, y), x, bound)
        share *= scale
        if unit == 1.0:
            for k in range(len(model)):
                out[k] += share * x[k]
        elif unit > 0.0:
            for k in range(len(model)):
                out[k] += share * (x[k] * unit)
        return score

    return clipped


@fast
def regularised(me, model):  # pragma: no cover - compiled
    """The regulariser's gradient."""
    check_count(len(model), me.features.shape[1])
    out = np.empty(len(model))
    decay = 2.0 * me.regularisation if len(me.labels) > 0 else 0.0
    for k in range(len(model)):
        out[k] = decay * model[k]
    return out


def _local_gradient(categories: Categories) -> Callable[..., Any]:
    add_row = _add_row(categories)

    def local_gradient(me, model):  # pragma: no cover - compiled
        rows, out = len(me.labels), regularised(me, model)
        for row in range(rows):
            add_row(me.features[row], me.labels[row], model, me.bound_, 1.0 / rows, out)
        return out

    return fast(local_gradient)


def _noting_gradient(categories: Categories) -> Callable[..., Any]:
    """`local_gradient` at the model that a step finds: the loss there is noted where the recorder asks for it."""
    add_row, summed = _add_row(categories), loss_of(categories).summed

    def noting_gradient(me, model):  # pragma: no cover - compiled
        rows, out = len(me.labels), regularised(me, model)
        for row in range(rows):
            me.scores_[row] = add_row(me.features[row], me.labels[row], model, me.bound_, 1.0 / rows, out)
        if math.isnan(me.noted_[0]):
            me.noted_[0] = summed(me.scores_, me.labels, rows) / max(rows, 1)
        return out

    return fast(noting_gradient)


def _loss_gradient(categories: Categories) -> Callable[..., Any]:
    add_row = _add_row(categories)

    def loss_gradient(me, model, rows=None):  # pragma: no cover - compiled
        check_count(len(model), me.features.shape[1])
        out = np.zeros(len(model))
        if rows is None:
            for row in range(len(me.labels)):
                add_row(me.features[row], me.labels[row], model, me.bound_, 1.0 / len(me.labels), out)
        else:
            ranks = ranks_of(rows, len(me.labels))
            for k in range(len(ranks)):
                row = rank_of(ranks[k], len(me.labels))
                add_row(me.features[row], me.labels[row], model, me.bound_, 1.0 / len(ranks), out)
        return out

    return fast(loss_gradient)


_GRADIENT = ("features", "labels", "bound_")
LOCAL_GRADIENT = Form(reading(*_GRADIENT, "regularisation"), _local_gradient)
NOTING_GRADIENT = Form(reading(*_GRADIENT, "regularisation", "scores_", "noted_"), _noting_gradient)
LOSS_GRADIENT = Form(reading(*_GRADIENT), _loss_gradient)
