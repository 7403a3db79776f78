"""The tape of a watched step: its compiled form writes down what noise it has drawn, and goes on with what it is given.

There is one compiled form, which everybody runs. Behind each word that draws noise it asks whether it is watched; if
so, `written_at` copies to the tape what went in, what came out and the noise between them, and gives the result that
the step is led to, if there is one, in place of its own. It is called by its address and is no part of the step.

===============  ======================================================================================================
field            what it is
===============  ======================================================================================================
``tape_``        float64, the draws of this step, one after the other: kind, width, three terms, then four vectors
``taped_``       int64: whether steps are watched, numbers on the tape, draws of this step, results that are given, and
                 where each of these begins
``led_``         float64, the results that are given
``lately_``      float64, the noise that was drawn last
``writer_``      the address of what writes; 0 where nobody watches
===============  ======================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.compilation.compiled import inlined
from ...agents.compilation.deferred import Deferred
from .tape_places import DRAWS, HEAD, LED, MOST, PLACES, SUM, USED, WATCHED

Array = NDArray[np.float64]

ARRAYS = ("tape_", "taped_", "led_", "lately_")
FIELDS = (*ARRAYS, "writer_")
"""What words that draw noise read of the record."""


@dataclass(frozen=True)
class Taped:
    """One draw of noise by a compiled step.

    Parameters
    ----------
    kind : float
        `SUM` or `MINIMISER`.
    terms : (3,) float64
        Of a minimiser: weight of the mean loss, curvature, influence of the noise.
    exact : (p,) float64
        What noise was added to, or the linear term.
    noise : (p,) float64
        As it was drawn.
    found : (p,) float64
        The sum, or the minimiser, as the word found it.
    used : (p,) float64
        What the step went on with: the same, or what it was led to.
    """

    kind: float
    terms: Array
    exact: Array
    noise: Array
    found: Array
    used: Array


class Tape:
    """The arrays through which one run's steps are watched.

    Parameters
    ----------
    width : int
        Of the longest vector that noise is drawn for.
    watched : bool
        Whether anybody reads it; otherwise nothing is ever written.

    Attributes
    ----------
    arrays : dict of str to (k,) array
        By field.
    streams : dict of str to (WORDS,) uint64
        The streams that steps draw from, by purpose; see `hushnet.agents.streams`.
    """

    def __init__(self, width: int = 1, *, watched: bool = True) -> None:
        self.width, self.watched = width, watched
        self.tape = np.zeros(MOST * (HEAD + 4 * width))
        self.taped = np.zeros(PLACES + MOST + 1, dtype=np.int64)
        self.taped[WATCHED] = watched
        self.led, self.lately = np.zeros(MOST * width), np.zeros(width)
        arrays = (self.tape, self.taped, self.led, self.lately)
        self.arrays: dict[str, NDArray[Any]] = dict(zip(ARRAYS, arrays, strict=True))
        self.streams: dict[str, NDArray[np.uint64]] = {}

    def begin(self, results: Sequence[Array]) -> None:
        """Begin a step: its first draws are to have these results, as far as there are any and they fit."""
        self.taped[USED:PLACES] = 0
        place = 0
        for rank, result in enumerate(results[:MOST]):
            if result.ndim != 1 or len(result) > self.width:
                break
            self.led[place : place + len(result)] = result
            place += len(result)
            self.taped[LED], self.taped[PLACES + rank + 1] = rank + 1, place

    def drawn(self) -> list[Taped]:
        """The draws of the step that was made, in order."""
        found, place = [], 0
        for _ in range(int(self.taped[DRAWS])):
            kind, width = float(self.tape[place]), int(self.tape[place + 1])
            terms = self.tape[place + 2 : place + HEAD].copy()
            place += HEAD
            vectors = [self.tape[place + k * width : place + (k + 1) * width].copy() for k in range(4)]
            found.append(Taped(kind, terms, *vectors))
            place += 4 * width
        return found


def keeping(draw: Callable[..., Any]) -> Callable[..., Any]:
    """``draw(me, out)`` that keeps the noise of a watched step for `written_at`."""

    def draw_and_keep(me, out):  # pragma: no cover - compiled
        draw(me, out)
        if me.taped_[WATCHED] != 0:
            if len(out) > len(me.lately_):
                raise ValueError("a watched step draws noise for a vector that is longer than any block or message")
            for k in range(len(out)):
                me.lately_[k] = out[k]

    return inlined(draw_and_keep)


def _called_writer() -> Any:
    from .tape_writer import called_writer

    return called_writer


called_writer: Any = Deferred(_called_writer)


@inlined
def written_at(me, kind, weight, curvature, influence, exact, found):  # pragma: no cover - compiled
    """Write a draw of a watched step down; what the step is to go on with."""
    before, after = np.ascontiguousarray(exact), np.ascontiguousarray(found)
    return called_writer(
        me.writer_, me.tape_, me.taped_, me.led_, me.lately_, kind, weight, curvature, influence, before, after
    )


def noting(perturbed: Callable[..., Any]) -> Callable[..., Any]:
    """``perturbed(me, vector)`` that a watched step writes down where it has drawn noise."""

    def perturbed_and_noted(me, vector):  # pragma: no cover - compiled
        before = me.drawn_[0]
        noisy = perturbed(me, vector)
        if me.taped_[WATCHED] == 0 or me.drawn_[0] == before:
            return noisy
        return written_at(me, SUM, 0.0, 0.0, 0.0, vector, noisy)

    return inlined(perturbed_and_noted)
