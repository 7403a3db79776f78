"""Ranks that an author's text gives to words, compiled: of what is not there they are refused, as NumPy does.

Words are compiled without checks of their indices. So whatever a text gives them to read with goes through here, or,
where it is a vector, through `hushnet.protocols.steps.word_form.check_count`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import overload

from ...agents.compilation.compiled import INLINED

ABSENT = "there is none of that rank"
MASK = "a mask has not as many entries as there are rows"
NO_RANKS = "ranks of rows are whole numbers, or a mask of all rows"


def rank_of(rank, many):  # noqa: ARG001 - as compiled
    """One of so many by its rank, which may be counted from the last: its rank from the first.

    Its forms are named here, for what is compiled with it is stored by all that it mentions.
    """
    return _rank, _form_of_rank


def ranks_of(rows, many):  # noqa: ARG001 - as compiled
    """Some of so many rows, as a text gives them: whole numbers, each still to be checked, or a mask of all rows."""
    return _as_given, _chosen, _form_of_rows


def _form_of_rank(rank, many):  # noqa: ARG001 - as `rank_of`
    """The form of `rank_of` for these types."""
    if not isinstance(rank, types.Integer):
        raise TypingError(NO_RANKS)
    return _rank


def _form_of_rows(rows, many):  # noqa: ARG001 - as `ranks_of`
    """The form of `ranks_of` for these types."""
    of = getattr(rows, "dtype", None)
    if isinstance(rows, types.Array) and rows.ndim == 1 and isinstance(of, types.Boolean):
        return _chosen
    if not isinstance(of, types.Integer) or getattr(rows, "ndim", 1) != 1:
        raise TypingError(NO_RANKS)
    return _as_given


_overload: Any = overload
_overload(rank_of, jit_options=INLINED)(_form_of_rank)
_overload(ranks_of, jit_options=INLINED)(_form_of_rows)


def _rank(rank, many):  # pragma: no cover - compiled
    if not -many <= rank < many:
        raise IndexError(ABSENT)
    return rank if rank >= 0 else rank + many


def _as_given(rows, many):  # noqa: ARG001 - as `ranks_of`  # pragma: no cover - compiled
    return rows


def _chosen(rows, many):  # pragma: no cover - compiled
    if len(rows) != many:
        raise IndexError(MASK)
    return np.flatnonzero(rows)
