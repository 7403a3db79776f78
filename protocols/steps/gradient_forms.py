"""The compiled forms of the words for the own data: gradients, clipped example by example, and slopes of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...agents.compiled_losses import CompiledLoss
from .word_form import Categories, Form, NoForm, fast, reading

ORDINARY, EXTREME = 1e-40, 1e100
"""As in `hushnet.agents.clipping`: between these, products of two numbers and their squares are ordinary."""
SHORT = 1.0 - 2.0**-47


def _loss(categories: Categories) -> CompiledLoss:
    if not categories.loss:
        raise NoForm("the task's loss is not one of hushnet's own")
    return CompiledLoss.of(categories.loss)


def _shortened(norm: str) -> Callable[..., Any]:
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
            if not abs(row[k]) <= largest:
                largest = abs(row[k])
        if not (math.isfinite(largest) and math.isfinite(slope)):
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
    slope = _loss(categories).slope

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
    shortened = _shortened(categories.clip)

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
    add_row, summed = _add_row(categories), _loss(categories).summed

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
        out = np.zeros(len(model))
        if rows is None:
            for row in range(len(me.labels)):
                add_row(me.features[row], me.labels[row], model, me.bound_, 1.0 / len(me.labels), out)
        else:
            for row in rows:
                add_row(me.features[row], me.labels[row], model, me.bound_, 1.0 / len(rows), out)
        return out

    return fast(loss_gradient)


def _bends(categories: Categories) -> Callable[..., Any]:
    """The second derivative of the loss at every example's score."""
    at = _loss(categories).bend

    def bends(me, scores):  # pragma: no cover - compiled
        check_count(len(scores), len(me.labels))
        out = np.empty(len(scores))
        for row in range(len(scores)):
            out[row] = at(scores[row], me.labels[row])
        return out

    return fast(bends)


def _slopes(categories: Categories) -> Callable[..., Any]:
    """The slope of the loss at every example's score, of all own examples or of some."""
    at = _loss(categories).slope

    def slopes(me, scores, rows=None):  # pragma: no cover - compiled
        out = np.empty(len(scores))
        if rows is None:
            check_count(len(scores), len(me.labels))
            for row in range(len(scores)):
                out[row] = at(scores[row], me.labels[row])
        else:
            check_count(len(scores), len(rows))
            for k in range(len(scores)):
                out[k] = at(scores[k], me.labels[check_rank(rows[k], len(me.labels))])
        return out

    return fast(slopes)


@fast
def check_count(given, rows):  # pragma: no cover - compiled
    """Refuse another number of values than there are rows, or columns."""
    if given != rows:
        raise ValueError("there are not as many numbers as rows or columns that they are for")


@fast
def check_rank(row, rows):  # pragma: no cover - compiled
    """Refuse a row that is not there; its rank from the first, where it may be counted from the last."""
    if not -rows <= row < rows:
        raise IndexError("there is no row of that rank")
    return row if row >= 0 else row + rows


def _scores_of(_: Categories) -> Callable[..., Any]:
    @fast
    def score(row, model):  # pragma: no cover - compiled
        total = 0.0
        for k in range(len(model)):
            total += np.float64(row[k]) * model[k]  # a product of two float32 has no more digits
        return total

    def scores_of(me, model, rows=None):  # pragma: no cover - compiled
        check_count(len(model), me.features.shape[1])
        if rows is None:
            out = np.empty(len(me.features))
            for k in range(len(out)):
                out[k] = score(me.features[k], model)
        else:
            out = np.empty(len(rows))
            for k in range(len(out)):
                out[k] = score(me.features[check_rank(rows[k], len(me.features))], model)
        return out

    return fast(scores_of)


def _sum_of_rows(_: Categories) -> Callable[..., Any]:
    @fast
    def add(row, weight, out):  # pragma: no cover - compiled
        for k in range(len(out)):
            out[k] += weight * np.float64(row[k])

    def sum_of_rows(me, weights, rows=None):  # pragma: no cover - compiled
        out = np.zeros(me.features.shape[1])
        if rows is None:
            check_count(len(weights), len(me.features))
            for k in range(len(weights)):
                add(me.features[k], weights[k], out)
        else:
            check_count(len(weights), len(rows))
            for k in range(len(weights)):
                add(me.features[check_rank(rows[k], len(me.features))], weights[k], out)
        return out

    return fast(sum_of_rows)


_GRADIENT = ("features", "labels", "bound_")
LOCAL_GRADIENT = Form(reading(*_GRADIENT, "regularisation"), _local_gradient)
NOTING_GRADIENT = Form(reading(*_GRADIENT, "regularisation", "scores_", "noted_"), _noting_gradient)
LOSS_GRADIENT = Form(reading(*_GRADIENT), _loss_gradient)
SLOPES = Form(reading("labels"), _slopes)
BENDS = Form(reading("labels"), _bends)
SCORES_OF = Form(reading("features"), _scores_of)
SUM_OF_ROWS = Form(reading("features"), _sum_of_rows)
