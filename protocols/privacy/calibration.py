"""Calibration of noise to a verified epsilon, where no formula gives it."""

# SciPy comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable


def smallest_multiplier(verified: Callable[[float], float], target: float) -> float:
    """The smallest noise multiplier, to 0.03 %, at which a verified epsilon is within its target.

    Epsilon decreases with the multiplier, and falls below the target somewhere.
    """
    from scipy.optimize import root_scalar

    def excess(logarithm: float) -> float:
        return verified(math.exp(logarithm)) - target

    high = 0.0
    while excess(high) > 0:
        high += 1.0
    while excess(high - 1.0) <= 0:
        high -= 1.0
    found = float(root_scalar(excess, bracket=(high - 1.0, high), method="brentq", xtol=1e-4).root)
    while excess(found) > 0:
        found += 1e-4
    return math.exp(found)
