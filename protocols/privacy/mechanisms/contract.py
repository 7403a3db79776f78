"""Contract that every mechanism, shipped or a user's, has to fulfil before anything is verified about it.

Its draws are compared with its density, its density with its loss, and the loss with what is composed of it: at usual
scales, multipliers and dimensions, and at those in use. All draws are seeded, so that a mechanism passes always or
never; the false alarm of each comparison is `FALSE_ALARM`, of which there are below 10,000.

What is not seen: a part of the noise with a probability below 5e-7 on the line, or 2e-5 at a scale in use; a scale less
than 2 % off, or less than 20 % off in one of more than 1,000 coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from .draw_checks import FALSE_ALARM, MechanismViolation, check_noise, check_repeatable, check_tails
from .loss_checks import check_loss
from .mechanism import Mechanism, Noise
from .mechanism_registry import shipped

__all__ = ["FALSE_ALARM", "MechanismViolation", "Use", "check_mechanism", "doubt", "proved", "unproved"]

USUAL_NOISE = ((0.5, 1), (3.0, 1), (1.5, 2), (1.5, 8), (0.02, 40), (60.0, 300))
"""Scales and dimensions at which every mechanism is looked at."""
USUAL_LOSSES = (
    (0.5, 1.0, 1),
    (0.5, 0.3, 8),
    (2.0, 0.3, 2),
    (20.0, 0.3, 1),
    (20.0, 0.3, 8),
    (0.2, 0.01, 3),
    (500.0, 1.0, 1),
)
"""Multipliers, samplings and dimensions likewise."""
MOST_NOISE, MOST_LOSSES = 8, 12
"""Different uses up to which each is looked at; of more, the extremes and some between."""
CELL = math.log(2) / 8
"""Step of the logarithmic grid that many values are rounded to, outwards."""


class Use(NamedTuple):
    """Parameters with which a mechanism is used."""

    multiplier: float
    """Noise scale over sensitivity, > 0; inf where nothing is revealed."""
    sampling: float = 1.0
    """Probability that a given record takes part, in (0, 1]."""
    dimension: int = 0
    """Number of coordinates of a vector of noise; 0 if it is not known."""
    scale: float = 0.0
    """Scale of its noise; 0 if it is not known."""


def check_mechanism(mechanism: Noise, uses: Iterable[Use] = ()) -> None:
    """Check that a mechanism's draws, density and loss belong together; it is not changed, and need not be registered.

    It is looked at besides the usual scales, multipliers and dimensions at these uses: at each, or, where they are
    many, at the extremes and some between. Raises `MechanismViolation` with one sentence that says what does not fit.
    """
    for check, *place in _checks(tuple(uses)):
        check(mechanism, *place)


def doubt(mechanism: Noise, uses: Iterable[Use] = ()) -> str:
    """Return the reason why `check_mechanism` does not pass, in one sentence; empty if it does.

    Each check is made once in a process, by mechanism, scale, multiplier, sampling and dimension.
    """
    return next(filter(None, (_said(mechanism, *check) for check in _checks(tuple(uses)))), "")


def unproved(mechanism: Mechanism, uses: Iterable[Use] = ()) -> str:
    """Return the reason why nothing can be verified about a mechanism's releases; empty if it is shipped or passes."""
    return "" if shipped(mechanism) or not isinstance(mechanism, Noise) else doubt(mechanism, uses)


def proved(mechanism: Mechanism, uses: Iterable[Use] = ()) -> bool:
    """True if a mechanism is shipped or passes `check_mechanism`."""
    return not unproved(mechanism, uses)


def around(value: float) -> tuple[float, float]:
    """The next smaller and the next larger value on the grid that many values > 0 are rounded to."""
    cell = math.floor(math.log(value) / CELL + 1e-9)
    return math.exp(cell * CELL), math.exp((cell + 1) * CELL)


@cache
def _said(mechanism: Noise, check: Callable[..., None], *place: float) -> str:
    """Return the sentence by which a check fails at one place; empty if it passes."""
    try:
        check(mechanism, *place)
    except MechanismViolation as violation:
        return f"{mechanism.name} noise is not what it says: {violation}"
    except Exception as error:
        text = " ".join(str(error).split())
        return f"{mechanism.name} noise could not be checked: it raises {type(error).__name__}: {text}"
    return ""


def _checks(uses: tuple[Use, ...]) -> Iterator[tuple[Callable[..., None], *tuple[float, ...]]]:
    """All checks of a mechanism, each with a place: where it is in use first."""
    yield (check_repeatable,)
    noise = _chosen({(use.scale, use.dimension) for use in uses if use.scale and use.dimension}, MOST_NOISE)
    losses = _chosen({use[:3] for use in uses if 0 < use.multiplier < math.inf}, MOST_LOSSES)
    for scale, dimension in (*noise, *USUAL_NOISE):
        yield check_noise, scale, int(dimension)
    for multiplier, sampling, dimension in (*losses, *USUAL_LOSSES):
        yield check_loss, multiplier, sampling, int(dimension)
    yield (check_tails,)


def _chosen(places: set[tuple[float, ...]], most: int) -> list[tuple[float, ...]]:
    """All places; or, of more than so many, those at the corners, and others between.

    The first number of a place is rounded outwards then, so that a run whose noise falls from step to step is not
    looked at anew in every step.
    """
    if len(places) <= most:
        return sorted(places)
    first, *others = (sorted(set(column)) for column in zip(*places, strict=True))
    cells = sorted({around(value)[0] for value in first} | {around(first[-1])[1]})
    return list(product(_spread(cells, 4), *(_spread(column, 3) for column in others)))


def _spread(values: list[float], most: int) -> list[float]:
    """Choose at most so many of sorted values, the first and the last among them."""
    if len(values) <= most:
        return values
    return [values[round(rank * (len(values) - 1) / (most - 1))] for rank in range(most)]
