"""The losses of `hushnet.agents.losses` row by row, compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from .compilation.compiled import inlined
from .losses import LOSSES, RowForms


class CompiledLoss(NamedTuple):
    """One loss, compiled for inlining.

    Attributes
    ----------
    slope, bend : callable
        ``slope(score, label)`` and ``bend(score, label)``: first and second derivative with respect to the score.
    summed : callable
        ``summed(scores, labels, rows)``: the sum of the losses of the first rows.
    """

    slope: Callable[..., Any]
    bend: Callable[..., Any]
    summed: Callable[..., Any]

    @classmethod
    def of(cls, name: str) -> CompiledLoss:
        """The loss of a name, which has `hushnet.agents.losses.Loss.rows`."""
        rows = LOSSES[name].rows
        assert rows is not None, "only losses that have rows are compiled"
        return _made(rows)


@cache
def _made(rows: RowForms) -> CompiledLoss:
    add = inlined(rows.add)

    def summed(scores, labels, rows):  # pragma: no cover - compiled
        total, factor = 0.0, 1.0
        for row in range(rows):
            total, factor = add(scores[row], labels[row], total, factor)
        return total + math.log(factor)

    return CompiledLoss(inlined(rows.slope), inlined(rows.bend), inlined(summed))
