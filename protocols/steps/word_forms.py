"""The compiled forms of the words, made for a run's loss, noise and type of rows.

Numbers (a clipping bound, a regulariser) are read from the record, so that a sweep over them compiles once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...agents import streams
from ...agents.compiled import inlined
from ...agents.compiled_losses import CompiledLoss
from . import tape


class NoForm(Exception):
    """Something has no compiled form; the message says what."""


@dataclass(frozen=True)
class Categories:
    """What a run's compiled words are chosen by.

    Parameters
    ----------
    loss : str
        Name of one of `hushnet.agents.losses.LOSSES`, or "" for one of somebody's own.
    mechanism : str
        Of the noise; "" without.
    clip : {"", "l1", "l2"}
        The norm in which gradients of examples are clipped.
    growing : bool
        Whether the noise's scale grows from step to step (`hushnet.protocols.steps.noise.StepNoise.growth`).
    taped : bool
        Whether draws of noise are written on a tape (`hushnet.protocols.steps.tape`).
    """

    loss: str
    mechanism: str
    clip: str
    growing: bool = False
    taped: bool = False


@dataclass(frozen=True)
class Form:
    """The compiled form of a word.

    Parameters
    ----------
    fields : callable
        Which fields of the record it reads, by categories. Those of the engine end with an underscore.
    make : callable
        The function, by categories.
    """

    fields: Callable[[Categories], tuple[str, ...]]
    make: Callable[[Categories], Callable[..., Any]]


def fast(function: Callable[..., Any]) -> Any:
    """Compile a part of a step, for inlining."""
    return inlined(function)


def _loss(categories: Categories) -> CompiledLoss:
    if not categories.loss:
        raise NoForm("the task's loss is not one of hushnet's own")
    return CompiledLoss.of(categories.loss)


def _average(_: Categories) -> Callable[..., Any]:
    def average(me):  # pragma: no cover - compiled
        width = len(me.mirror_)
        out = np.zeros(width)
        total, missing = 0.0, 0.0
        for rank in range(len(me.weights)):
            weight = me.weights[rank]
            total += weight
            row = me.known_[rank]
            if row < 0:
                missing += weight
                continue
            heard = me.pool_[row]
            for k in range(width):
                out[k] += weight * heard[k]
        if missing > 0.0:
            for k in range(width):
                out[k] += missing * me.mirror_[k]
        for k in range(width):
            out[k] /= total
        return out

    return fast(average)


def _heard_of(_: Categories) -> Callable[..., Any]:
    def heard_of(me, rank):  # pragma: no cover - compiled
        row = me.known_[rank]
        return me.pool_[row, : len(me.mirror_)] if row >= 0 else me.mirror_

    return fast(heard_of)


def _heard_sum(_: Categories) -> Callable[..., Any]:
    def heard_sum(me):  # pragma: no cover - compiled
        width = len(me.mirror_)
        out = np.zeros(width)
        for rank in range(len(me.known_)):
            row = me.known_[rank]
            heard = me.pool_[row] if row >= 0 else me.mirror_
            for k in range(width):
                out[k] += heard[k]
        return out

    return fast(heard_sum)


def _weighted_sum(_: Categories) -> Callable[..., Any]:
    def weighted_sum(me, weights):  # pragma: no cover - compiled
        width = len(me.mirror_)
        out = np.zeros(width)
        for rank in range(len(me.known_)):
            row, weight = me.known_[rank], weights[rank]
            heard = me.pool_[row] if row >= 0 else me.mirror_
            for k in range(width):
                out[k] += weight * heard[k]
        return out

    return fast(weighted_sum)


ORDINARY, EXTREME = 1e-40, 1e100
"""As in `hushnet.agents.clipping`: between these, products of two numbers and their squares are ordinary."""
SHORT = 1.0 - 2.0**-47


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


def _local_gradient(categories: Categories) -> Callable[..., Any]:
    add_row = _add_row(categories)

    def local_gradient(me, model):  # pragma: no cover - compiled
        width, rows = len(model), len(me.labels)
        out = np.empty(width)
        decay = 2.0 * me.regularisation if rows > 0 else 0.0
        for k in range(width):
            out[k] = decay * model[k]
        for row in range(rows):
            add_row(me.features[row], me.labels[row], model, me.bound_, 1.0 / rows, out)
        return out

    return fast(local_gradient)


def _noting_gradient(categories: Categories) -> Callable[..., Any]:
    """`local_gradient` at the model that a step finds: the loss there is noted where the recorder asks for it."""
    add_row, summed = _add_row(categories), _loss(categories).summed

    def noting_gradient(me, model):  # pragma: no cover - compiled
        width, rows = len(model), len(me.labels)
        out = np.empty(width)
        decay = 2.0 * me.regularisation if rows > 0 else 0.0
        for k in range(width):
            out[k] = decay * model[k]
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


def _slopes(categories: Categories) -> Callable[..., Any]:
    slope = _loss(categories).slope

    def slopes(me, scores):  # pragma: no cover - compiled
        out = np.empty(len(scores))
        for row in range(len(scores)):
            out[row] = slope(scores[row], me.labels[row])
        return out

    return fast(slopes)


def _bends(categories: Categories) -> Callable[..., Any]:
    bend = _loss(categories).bend

    def bends(me, scores):  # pragma: no cover - compiled
        out = np.empty(len(scores))
        for row in range(len(scores)):
            out[row] = bend(scores[row], me.labels[row])
        return out

    return fast(bends)


NOISES = {
    "gaussian": ("normal", streams.fill_normal),
    "laplace": ("Laplace", streams.fill_laplace),
    "gamma": ("spherical", streams.fill_spherical),
}
"""Mechanisms with compiled draws: the law of `hushnet.agents.streams.disagreement`, and what fills a vector."""


def _agreed(law: str) -> None:
    """Refuse compiled draws that are not NumPy's."""
    why = streams.disagreement(law)
    if why is not None:
        raise NoForm(why)


def noise_of(categories: Categories) -> Callable[..., Any]:
    """``draw(me, out)``: fill a vector with the noise of this step's release, and count it."""
    if categories.mechanism not in NOISES:
        raise NoForm(f"{categories.mechanism} noise has no compiled form")
    law, fill = NOISES[categories.mechanism]
    _agreed(law)

    @fast
    def draw(me, out):  # pragma: no cover - compiled
        stage = min(me.updates, len(me.scales_) - 1)
        me.drawn_[0] += 1
        if me.degree > 0:
            me.draws_[stage] += 1
        fill(me.noise_, me.scales_[stage], out)

    @fast
    def draw_growing(me, out):  # pragma: no cover - compiled
        me.drawn_[0] += 1
        if me.degree > 0:
            if me.draws_[0] != me.updates:
                raise ValueError("its noise grows from step to step, and one of its steps has drawn none")
            me.draws_[0] += 1
        fill(me.noise_, me.scales_[0] * me.growth_**me.updates, out)

    made = draw_growing if categories.growing else draw
    return tape.keeping(made) if categories.taped else made


def noise_fields(categories: Categories) -> tuple[str, ...]:
    """What `noise_of` reads of the record."""
    if not categories.mechanism:
        return ()
    fields = ("updates", "degree", "scales_", "drawn_", "draws_", "noise_", *(tape.FIELDS if categories.taped else ()))
    return (*fields, "growth_") if categories.growing else fields


def _perturbed(categories: Categories) -> Callable[..., Any]:
    if not categories.mechanism:
        return fast(lambda me, vector: vector)
    draw = noise_of(categories)

    def perturbed(me, vector):  # pragma: no cover - compiled
        if len(me.labels) == 0:
            return vector
        width = len(vector)
        if me.dimension_ > 0 and width != me.dimension_:
            raise ValueError("the vector to be perturbed has not the dimension that the release declares")
        out = np.empty(width)
        draw(me, out)
        for k in range(width):
            out[k] = vector[k] + out[k]
        return out

    return tape.noting(fast(perturbed)) if categories.taped else fast(perturbed)


def _draw_rows(_: Categories) -> Callable[..., Any]:
    _agreed("integer")
    _agreed("sampled")

    def draw_rows(me, count):  # pragma: no cover - compiled
        rows = len(me.labels)
        out = np.empty(min(count, rows), dtype=np.int64)
        if len(out) == 1:
            out[0] = streams.integers(me.sampling_, rows)
        elif len(out) > 1:
            streams.choose(me.sampling_, rows, out)
        return out

    return fast(draw_rows)


def _draw_each(_: Categories) -> Callable[..., Any]:
    _agreed("uniform")

    def draw_each(me, share):  # pragma: no cover - compiled
        luck = np.empty(len(me.labels))
        streams.fill_uniform(me.sampling_, luck)
        return np.flatnonzero(luck < share)

    return fast(draw_each)


def _reading(*names: str) -> Callable[[Categories], tuple[str, ...]]:
    return lambda _: names


_GRADIENT = ("features", "labels", "bound_")
AVERAGE = Form(_reading("weights", "known_", "pool_", "mirror_"), _average)
HEARD_OF = Form(_reading("known_", "pool_", "mirror_"), _heard_of)
HEARD_SUM = Form(_reading("known_", "pool_", "mirror_"), _heard_sum)
WEIGHTED_SUM = Form(_reading("known_", "pool_", "mirror_"), _weighted_sum)
LOCAL_GRADIENT = Form(_reading(*_GRADIENT, "regularisation"), _local_gradient)
NOTING_GRADIENT = Form(_reading(*_GRADIENT, "regularisation", "scores_", "noted_"), _noting_gradient)
LOSS_GRADIENT = Form(_reading(*_GRADIENT), _loss_gradient)
SLOPES = Form(_reading("labels"), _slopes)
BENDS = Form(_reading("labels"), _bends)
PERTURBED = Form(
    lambda categories: ("labels", "dimension_", *noise_fields(categories)) if categories.mechanism else (), _perturbed
)
DRAW_ROWS = Form(_reading("labels", "sampling_"), _draw_rows)
DRAW_EACH = Form(_reading("labels", "sampling_"), _draw_each)
