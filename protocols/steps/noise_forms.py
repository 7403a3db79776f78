"""The compiled forms of the words that draw: noise for a release, and samples of the own rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...agents import streams
from ...agents.compilation.deferred import Deferred
from ...agents.compilation.fetching import prefetch, prefetch_row
from . import tape
from .word_form import Categories, Form, NoForm, fast, reading

NOISES = {
    "gaussian": ("normal", Deferred(lambda: streams.fill_normal)),
    "laplace": ("Laplace", Deferred(lambda: streams.fill_laplace)),
    "gamma": ("spherical", Deferred(lambda: streams.fill_spherical)),
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

    return tape.keeping(draw_growing if categories.growing else draw)


def noise_fields(categories: Categories) -> tuple[str, ...]:
    """What `noise_of` reads of the record."""
    if not categories.mechanism:
        return ()
    fields = ("updates", "degree", "scales_", "drawn_", "draws_", "noise_", *tape.FIELDS)
    return (*fields, "growth_") if categories.growing else fields


def _perturbed(categories: Categories) -> Callable[..., Any]:
    if not categories.mechanism:
        return fast(lambda me, vector: vector)
    draw = noise_of(categories)

    def perturbed(me, vector):  # pragma: no cover - compiled
        if not me.noisy_:
            return vector
        width = len(vector)
        if me.dimension_ > 0 and width != me.dimension_:
            raise ValueError("the vector to be perturbed has not the dimension that the release declares")
        out = np.empty(width)
        draw(me, out)
        for k in range(width):
            out[k] = vector[k] + out[k]
        return out

    return tape.noting(fast(perturbed))


def _affords(categories: Categories) -> Callable[..., Any]:
    if categories.mechanism:
        return fast(lambda me: me.draws_.sum() < me.affordable_)
    return fast(lambda me: me.affordable_ > 0)


def _post_processed(_: Categories) -> Callable[..., Any]:
    def post_processed(me):  # pragma: no cover - compiled
        me.free_[0] = 1

    return fast(post_processed)


@fast
def fetch_rows(me, ranks):  # pragma: no cover - compiled
    """Ask for the memory of rows that were drawn, which comes while a step does something else."""
    for rank in ranks:
        prefetch_row(me.features, rank)
        prefetch(me.labels, rank)


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
        fetch_rows(me, out)
        return out

    return fast(draw_rows)


def _draw_each(_: Categories) -> Callable[..., Any]:
    _agreed("uniform")

    def draw_each(me, share):  # pragma: no cover - compiled
        uniforms = np.empty(len(me.labels))
        streams.fill_uniform(me.sampling_, uniforms)
        ranks = np.flatnonzero(uniforms < share)
        fetch_rows(me, ranks)
        return ranks

    return fast(draw_each)


PERTURBED = Form(
    lambda categories: ("noisy_", "dimension_", *noise_fields(categories)) if categories.mechanism else (), _perturbed
)
AFFORDS = Form(lambda categories: ("affordable_", "draws_") if categories.mechanism else ("affordable_",), _affords)
POST_PROCESSED = Form(reading("free_"), _post_processed)
DRAW_ROWS = Form(reading("features", "labels", "sampling_"), _draw_rows)
DRAW_EACH = Form(reading("features", "labels", "sampling_"), _draw_each)
