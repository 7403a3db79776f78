"""The compiled forms of the words for own rows: products with them, slopes of the loss, scalar problems, clipping."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...agents.losses import LOSSES
from ...agents.optimisation.splitting import STEPS, TOLERANCE
from .gradient_forms import loss_of, shortened_in
from .word_form import Categories, Form, NoForm, check_count, fast, rank_of, ranks_of, reading

NARROW = 8
"""Fewer columns are gone through one after the other, for then a loop along a row is over before it is under way."""
OTHER_SIZE = "a factor has as many numbers as the square of what it is to solve for"


def _bends(categories: Categories) -> Callable[..., Any]:
    """The second derivative of the loss at every example's score."""
    at = loss_of(categories).bend

    def bends(me, scores):  # pragma: no cover - compiled
        check_count(len(scores), len(me.labels))
        out = np.empty(len(scores))
        for row in range(len(scores)):
            out[row] = at(scores[row], me.labels[row])
        return out

    return fast(bends)


def _slopes(categories: Categories) -> Callable[..., Any]:
    """The slope of the loss at every example's score, of all own examples or of some."""
    at = loss_of(categories).slope

    def slopes(me, scores, rows=None):  # pragma: no cover - compiled
        out = np.empty(len(scores))
        if rows is None:
            check_count(len(scores), len(me.labels))
            for row in range(len(scores)):
                out[row] = at(scores[row], me.labels[row])
        else:
            ranks = ranks_of(rows, len(me.labels))
            check_count(len(scores), len(ranks))
            for k in range(len(scores)):
                out[k] = at(scores[k], me.labels[rank_of(ranks[k], len(me.labels))])
        return out

    return fast(slopes)


@fast
def checked(rows, many):  # pragma: no cover - compiled
    """Ranks of rows from the first, all of which are there."""
    ranks = ranks_of(rows, many)
    out = np.empty(len(ranks), dtype=np.int64)
    for k in range(len(ranks)):
        out[k] = rank_of(ranks[k], many)
    return out


@fast
def itself(_, k):  # pragma: no cover - compiled
    """The rank of the k-th of all rows."""
    return k


@fast
def among(ranks, k):  # pragma: no cover - compiled
    """The rank of the k-th of some rows."""
    return ranks[k]


def _scores_of(_: Categories) -> Callable[..., Any]:
    @fast
    def score(row, model):  # pragma: no cover - compiled
        total = 0.0
        for k in range(len(model)):
            total += np.float64(row[k]) * model[k]  # a product of two float32 has no more digits
        return total

    def filling(rank):
        def fill(features, ranks, model, out):  # pragma: no cover - compiled
            if len(model) >= NARROW:
                for k in range(len(out)):
                    out[k] = score(features[rank(ranks, k)], model)
                return
            out[:] = 0.0
            for column in range(len(model)):
                weight = model[column]
                for k in range(len(out)):
                    out[k] += np.float64(features[rank(ranks, k), column]) * weight

        return fast(fill)

    of_all, of_some = filling(itself), filling(among)

    def scores_of(me, model, rows=None):  # pragma: no cover - compiled
        check_count(len(model), me.features.shape[1])
        if rows is None:
            out = np.empty(len(me.features))
            of_all(me.features, None, model, out)
        else:
            ranks = checked(rows, len(me.features))
            out = np.empty(len(ranks))
            of_some(me.features, ranks, model, out)
        return out

    return fast(scores_of)


def _sum_of_rows(_: Categories) -> Callable[..., Any]:
    @fast
    def add(row, weight, out):  # pragma: no cover - compiled
        for k in range(len(out)):
            out[k] += weight * np.float64(row[k])

    def filling(rank):
        def fill(features, ranks, weights, out):  # pragma: no cover - compiled
            if len(out) >= NARROW:
                out[:] = 0.0
                for k in range(len(weights)):
                    add(features[rank(ranks, k)], weights[k], out)
                return
            for column in range(len(out)):
                total = 0.0
                for k in range(len(weights)):
                    total += weights[k] * np.float64(features[rank(ranks, k), column])
                out[column] = total

        return fast(fill)

    of_all, of_some = filling(itself), filling(among)

    def sum_of_rows(me, weights, rows=None):  # pragma: no cover - compiled
        out = np.empty(me.features.shape[1])
        if rows is None:
            check_count(len(weights), len(me.features))
            of_all(me.features, None, weights, out)
        else:
            ranks = checked(rows, len(me.features))
            check_count(len(weights), len(ranks))
            of_some(me.features, ranks, weights, out)
        return out

    return fast(sum_of_rows)


def _rows_minimised(categories: Categories) -> Callable[..., Any]:
    """`hushnet.agents.optimisation.splitting.minimise_rows`, one row after the other."""
    loss = loss_of(categories)
    kind = LOSSES[categories.loss]
    if not (kind.smooth and math.isfinite(kind.lipschitz)):
        raise NoForm(f"the rows of the {categories.loss} loss have no bracket: it must be smooth, with bounded slope")
    slope, bend, lipschitz = loss.slope, loss.bend, float(kind.lipschitz)

    def rows_minimised(me, curvature, linear):  # pragma: no cover - compiled
        check_count(len(linear), len(me.labels))
        out = np.empty(len(linear))
        for row in range(len(linear)):
            label, term = me.labels[row], linear[row]
            low, high, point = (term - lipschitz) / curvature, (term + lipschitz) / curvature, term / curvature
            limit, last = TOLERANCE + 1e-14 * abs(term), math.inf
            for _ in range(STEPS):
                residual = slope(point, label) + curvature * point - term
                if abs(residual) <= limit:
                    break
                if residual < 0.0:
                    low = point
                else:
                    high = point
                trial = point - residual / (bend(point, label) + curvature)
                slow = abs(residual) > 0.5 * last or trial < low or trial > high
                last = abs(residual)
                point = 0.5 * (low + high) if slow else trial
            out[row] = point
        return out

    return fast(rows_minimised)


def _clipped(_: Categories) -> Callable[..., Any]:
    shortened = shortened_in("l2")

    def clipped(vector, bound):  # pragma: no cover - compiled
        out = np.zeros(len(vector))
        share, unit = 1.0, 1.0
        if not math.isinf(bound):
            for k in range(len(vector)):
                if not math.isfinite(vector[k]):
                    return out
            share, unit = shortened(1.0, vector, bound)
        for k in range(len(vector)):
            out[k] = share * (vector[k] * unit)
        return out

    return fast(clipped)


def _solved_by(_: Categories) -> Callable[..., Any]:
    def solved_by(factor, right):  # pragma: no cover - compiled
        size = len(right)
        if len(factor) != size * size:
            raise ValueError(OTHER_SIZE)
        out = right.copy()
        for i in range(size):
            total = out[i]
            for j in range(i):
                total -= factor[i * size + j] * out[j]
            out[i] = total / factor[i * size + i]
        for i in range(size - 1, -1, -1):
            out[i] /= factor[i * size + i]
            for j in range(i):
                out[j] -= factor[i * size + j] * out[i]
        return out

    return fast(solved_by)


SLOPES = Form(reading("labels"), _slopes)
BENDS = Form(reading("labels"), _bends)
SCORES_OF = Form(reading("features"), _scores_of)
SUM_OF_ROWS = Form(reading("features"), _sum_of_rows)
ROWS_MINIMISED = Form(reading("labels"), _rows_minimised)
CLIPPED = Form(reading(), _clipped)
SOLVED_BY = Form(reading(), _solved_by)
