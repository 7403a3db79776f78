"""Delay and loss of a copy on its link, defined once for both engines.

Links that are good and bad in turn (Gilbert 1960, Elliott 1963) are advanced as far as they are asked about.
"""

from __future__ import annotations

import math

import numpy as np

from ...agents.compilation import compiled, part
from .randomness import Purpose, draw_one, lasting

Bursts = tuple[float, float, float, float]
"""Mean durations of a link's good and bad state, and its loss probabilities in them."""
NO_BURSTS: Bursts = (0.0, 0.0, 0.0, 0.0)
LINK_STATE = int(Purpose.LINK_STATE)
UNASKED = 0, 0, 0.0
"""The state of a link that nobody has asked about."""


@part
def under_way(delay, own):  # pragma: no cover - compiled
    """Time that a copy is in flight, in time units: its link's delay, and ``own``, the time that its bytes take."""
    return lasting(delay + own)


@part
def is_lost(uniforms, chance):  # pragma: no cover - compiled
    """True if a copy is lost, by its uniform; a greater chance only adds losses."""
    return uniforms < chance


@part(forceinline=False)
def state_of_link(key0, key1, mean_good, mean_bad, sender, receiver, now, period, good, until):  # pragma: no cover
    """The state of a directed link at a time, from the last that was asked for; times must not decrease.

    The key is the run's, and ends have stable numbers. States are good and bad in turn, for exponential durations of
    these means in time units: number of the period, 1 if it is good, and when it ends; `UNASKED` at first.
    """
    if period == 0:
        u, _, _ = draw_one(key0, key1, sender, receiver, np.uint64(0), LINK_STATE, 0)
        period, good, until = 1, 1 if u < mean_good / (mean_good + mean_bad) else 0, 0.0
        u, _, _ = draw_one(key0, key1, sender, receiver, np.uint64(period), LINK_STATE, 0)
        until = lasting(-(mean_good if good else mean_bad) * math.log(u))
    while until <= now:
        period, good = period + 1, 1 - good
        u, _, _ = draw_one(key0, key1, sender, receiver, np.uint64(period), LINK_STATE, 0)
        until += lasting(-(mean_good if good else mean_bad) * math.log(u))
    return period, good, until


state_now = compiled(state_of_link)
"""`state_of_link`, for Python."""
