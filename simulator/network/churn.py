"""Times at which agents join and leave, come up and go down: drawn once, the same for every protocol."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...agents.authors import place_of, returned
from ...agents.availability import Availability, Timeline
from ...agents.errors import InputError
from .randomness import Purpose, quantise
from .setting import Setting


def check_rounds(availability: Availability, *, intervals: bool, kind: str) -> None:
    """Refuse absences, and clocks without intervals that rounds can last, of a protocol that runs in rounds.

    Raises `InputError` if clocks have no intervals, or agents join or leave.
    """
    if not intervals:
        raise InputError(
            "a recorded order of agents leaves no intervals for rounds to last; use poisson or periodic clocks",
            field=("clock", "kind"),
        )
    for window in ("joins", "leaves"):
        if getattr(availability, window) is not None:
            raise InputError(
                f"agents of the protocol {kind!r} wait for each other in rounds, "
                "so none may join or leave; use on_off, diurnal or trace for absences",
                field=("availability", window),
            )


def churn(setting: Setting, numbers: Sequence[int]) -> tuple[list[float], list[float], list[Timeline]]:
    """Draw the times at which each agent, by stable number, joins and leaves, and its up and down times.

    Returns (n,) joins, 0 for those who are there from the start, (n,) leaves, infinite for those who never do, and n
    timelines.
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
    if len(returned(timelines, Sequence, availability.timelines)) != len(numbers):
        raise InputError(
            f"{place_of(availability.timelines)}: must return a timeline for each of {len(numbers)} agents, "
            f"not {len(timelines)}"
        )
    return joins, leaves, timelines
