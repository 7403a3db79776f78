"""The losses of `hushnet.agents.losses` by number, for kernels that serve all of them."""

from __future__ import annotations

import math
from typing import Any

from .compilation import REASSOCIATED, part
from .losses import LOSSES, Loss

CODES = {"logistic": 0, "squared": 1, "smoothed_hinge": 2, "hinge": 3}
"""Numbers of the losses that kernels know."""
UNKNOWN = -1
"""The number of all others."""

_FORMS = {name: LOSSES[name].rows for name in CODES}


def _small(function: Any) -> Any:
    return part(function, fastmath=REASSOCIATED, error_model="numpy")


_logistic_slope, _logistic_bend, _logistic_add = map(_small, _FORMS["logistic"])  # type: ignore[arg-type]
_squared_slope, _squared_bend, _squared_add = map(_small, _FORMS["squared"])  # type: ignore[arg-type]
_smoothed_slope, _smoothed_bend, _smoothed_add = map(_small, _FORMS["smoothed_hinge"])  # type: ignore[arg-type]
_hinge_slope, _hinge_bend, _hinge_add = map(_small, _FORMS["hinge"])  # type: ignore[arg-type]


def code_of(loss: Loss) -> int:
    """The number of a loss; `UNKNOWN` for one that is not hushnet's own."""
    known = LOSSES.get(loss.name)
    own = known is not None and type(loss) is type(known) and loss == known
    return CODES.get(loss.name, UNKNOWN) if own else UNKNOWN


@_small
def slope_of(code, score, label):  # pragma: no cover - compiled
    """First derivative of a loss with respect to the score."""
    if code == 0:
        return _logistic_slope(score, label)
    if code == 1:
        return _squared_slope(score, label)
    if code == 2:
        return _smoothed_slope(score, label)
    return _hinge_slope(score, label)


@_small
def bend_of(code, score, label):  # pragma: no cover - compiled
    """Second derivative of a loss with respect to the score."""
    if code == 0:
        return _logistic_bend(score, label)
    if code == 1:
        return _squared_bend(score, label)
    if code == 2:
        return _smoothed_bend(score, label)
    return _hinge_bend(score, label)


@_small
def summed(code, scores, labels, rows):  # pragma: no cover - compiled
    """Sum of the losses of the first rows."""
    total, factor = 0.0, 1.0
    for row in range(rows):
        if code == 0:
            total, factor = _logistic_add(scores[row], labels[row], total, factor)
        elif code == 1:
            total, factor = _squared_add(scores[row], labels[row], total, factor)
        elif code == 2:
            total, factor = _smoothed_add(scores[row], labels[row], total, factor)
        else:
            total, factor = _hinge_add(scores[row], labels[row], total, factor)
    return total + math.log(factor)
