"""When agents join and leave, come up and go down: drawn once, the same for every protocol."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...agents.availability import Timeline
from .randomness import Purpose, quantise
from .setting import Setting


def churn(setting: Setting, numbers: Sequence[int]) -> tuple[list[float], list[float], list[Timeline]]:
    """When each agent joins and leaves, and its up and down times.

    Parameters
    ----------
    setting : Setting
    numbers : (n,) int
        The agents' stable numbers.

    Returns
    -------
    joins, leaves : (n,) float
        0 for those who are there from the start; infinite for those who never leave.
    timelines : (n,) Timeline
    """
    availability, draws = setting.availability, setting.draws
    joins = [0.0] * len(numbers)
    leaves = [math.inf] * len(numbers)
    for window, purpose, times in (
        (availability.joins, Purpose.JOIN, joins),
        (availability.leaves, Purpose.LEAVE, leaves),
    ):
        for index, number in enumerate(numbers):
            time = window.time(draws.pair(purpose, number)) if window else None
            if time is not None:
                times[index] = quantise(time)
    timelines = availability.timelines(
        setting.task.ids,
        numbers,
        draw=lambda number, index: draws.pair(Purpose.AVAILABILITY, number, 0, index),
        round_time=quantise,
        base=setting.base,
    )
    return joins, leaves, timelines
