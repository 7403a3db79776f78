"""The compiled forms of the words for what neighbours have said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .word_form import Categories, Form, check_count, fast, rank_of, reading

OTHER_LENGTH = "what is added to a sum has another length"
OTHER_LENGTHS = "a sum, the total that was told, and what was taken in of it have different lengths"


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
        row = me.known_[rank_of(rank, len(me.known_))]
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
        check_count(len(weights), len(me.known_))
        width = len(me.mirror_)
        out = np.zeros(width)
        for rank in range(len(me.known_)):
            row, weight = me.known_[rank], weights[rank]
            heard = me.pool_[row] if row >= 0 else me.mirror_
            for k in range(width):
                out[k] += weight * heard[k]
        return out

    return fast(weighted_sum)


def _add_scaled(_: Categories) -> Callable[..., Any]:
    def add_scaled(total, weight, vector):  # pragma: no cover - compiled
        if len(vector) != len(total):
            raise ValueError(OTHER_LENGTH)
        for k in range(len(total)):
            total[k] += weight * vector[k]

    return fast(add_scaled)


def _take_in(_: Categories) -> Callable[..., Any]:
    def take_in(total, told, taken):  # pragma: no cover - compiled
        if len(told) != len(total) or len(taken) != len(total):
            raise ValueError(OTHER_LENGTHS)
        for k in range(len(total)):
            total[k] += told[k] - taken[k]
            taken[k] = told[k]

    return fast(take_in)


ADD_SCALED = Form(reading(), _add_scaled)
AVERAGE = Form(reading("weights", "known_", "pool_", "mirror_"), _average)
HEARD_OF = Form(reading("known_", "pool_", "mirror_"), _heard_of)
HEARD_SUM = Form(reading("known_", "pool_", "mirror_"), _heard_sum)
TAKE_IN = Form(reading(), _take_in)
WEIGHTED_SUM = Form(reading("known_", "pool_", "mirror_"), _weighted_sum)
