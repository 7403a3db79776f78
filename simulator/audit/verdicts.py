"""Verdicts on a claim of privacy: proved, not proved or refuted, in audits and on the pages of reproductions.

An upper bound above a claim proves nothing about it: the accountant may be loose, or the sensitivity generous. To
refute a claim takes a *lower* bound above it: by an attack, whose numbers hold with a stated confidence, or by an exact
counterexample, two neighbouring data sets that some event tells apart better than is claimed.
"""

from __future__ import annotations

import math
from typing import Literal

Word = Literal["proved", "not proved", "refuted", "no claim"]

ROUNDING = 1e-6
"""Relative excess of a verified epsilon over a claim that is rounding."""


def verdict(claimed: float, verified: float, *, lower: float = 0.0) -> Word:
    """The word for a claim of an epsilon, infinite where nothing is claimed, by bounds that are known at its delta.

    They are the smallest upper bound that can be proved, and the largest lower one.

    >>> verdict(1.0, 0.9), verdict(1.0, 3.0, lower=0.7), verdict(1.0, math.inf, lower=1.2)
    ('proved', 'not proved', 'refuted')
    """
    if math.isinf(claimed):
        return "no claim"
    if lower > claimed:
        return "refuted"
    return "proved" if verified <= claimed * (1 + ROUNDING) else "not proved"
