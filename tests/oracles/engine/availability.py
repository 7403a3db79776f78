"""When an agent is up: always, on/off, diurnal, from a trace; and when agents join and leave.

A down agent neither wakes nor receives; its clock keeps ticking. Every duration is a pure function of the agent's id
and a period index.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..laws import Draws, Purpose, quantise

Timeline = Iterator[tuple[float, bool]]
"""(time, up) pairs with times that never decrease; the first is the state at time 0."""
Draw = Callable[[int, int], tuple[float, float]]


def window_time(window: Mapping[str, Any], pair: tuple[float, float]) -> float | None:
    """The agent's time within a window, or None if it is not concerned."""
    low, high = window["between"]
    return low + (high - low) * pair[0] if pair[1] < window["share"] else None


def timelines(
    availability: Mapping[str, Any], ids: Sequence[int | str], numbers: Sequence[int], draws: Draws
) -> list[Timeline]:
    """Up and down times of every agent, apart from joining and leaving."""

    def draw(number: int, index: int) -> tuple[float, float]:
        return draws.pair(Purpose.AVAILABILITY, number, 0, index)

    kind = availability["kind"]
    if kind == "always":
        return [iter([(0.0, True)]) for _ in ids]
    if kind == "on_off":
        return [OnOff(availability).timeline(number, draw) for number in numbers]
    if kind == "diurnal":
        return [diurnal(availability, number, draw) for number in numbers]
    listed: dict[str, list[tuple[float, float]]] = {str(name): [] for name in ids}
    for name, start, end in availability["up"]:
        listed[str(name)].append((quantise(start), quantise(end)))
    return [trace(sorted(listed[str(name)]), availability["others"] == "up") for name in ids]


class OnOff:
    """Alternating up and down periods with a stationary start."""

    def __init__(self, availability: Mapping[str, Any]) -> None:
        self.online, self.mean_down = availability["online"], availability["mean_down"]
        self.distribution, self.sigma = availability["distribution"], availability["sigma"]

    def timeline(self, agent: int, draw: Draw) -> Timeline:
        """The first period is a stationary residual life."""
        up = draw(agent, 0)[0] < self.online
        yield 0.0, up
        if self.online == 1:
            return
        means = {False: self.mean_down, True: self.mean_down * self.online / (1 - self.online)}
        now, index = 0.0, 1
        while True:
            length = (
                self._residual(means[up], agent, draw) if index == 1 else self._duration(means[up], draw(agent, index))
            )
            now += quantise(length)
            up = not up
            index += 1
            yield now, up

    def _duration(self, mean: float, pair: tuple[float, float]) -> float:
        if self.distribution == "exponential":
            return -mean * math.log(pair[0])
        return mean * math.exp(self.sigma * _normal(pair) - 0.5 * self.sigma**2)

    def _residual(self, mean: float, agent: int, draw: Draw) -> float:
        """What is left of a period that is under way: a uniform share of a length-biased duration."""
        if self.distribution == "exponential":
            return -mean * math.log(draw(agent, 1)[0])
        length_biased = mean * math.exp(self.sigma * _normal(draw(agent, 1)) + 0.5 * self.sigma**2)
        return draw(agent, 0)[1] * length_biased


def diurnal(availability: Mapping[str, Any], agent: int, draw: Draw) -> Timeline:
    """Every agent is up for the same share of each day, with its own phase."""
    period, online = availability["period"], availability["online"]
    phase = draw(agent, 0)[0] * availability["spread"] * period
    at_start, started = True, False
    for day in itertools.count(-1):
        for offset, up in ((0.0, True), (online * period, False)):
            time = quantise(day * period + phase + offset)
            if time <= 0:
                at_start = up
                continue
            if not started:
                yield 0.0, at_start
                started = True
            yield time, up


def trace(intervals: list[tuple[float, float]], others_up: bool) -> Timeline:
    """Up intervals of one agent; without any, it is always or never up."""
    if not intervals:
        return iter([(0.0, others_up)])
    points = [(0.0, intervals[0][0] == 0.0)]
    for start, end in intervals:
        if start > 0 and points[-1] != (start, False):
            points.append((start, True))
        elif start > 0:
            points.pop()
        points.append((end, False))
    return iter(points)


def _normal(pair: tuple[float, float]) -> float:
    """A standard normal from two uniforms (Box-Muller)."""
    return math.sqrt(-2 * math.log(pair[0])) * math.cos(2 * math.pi * pair[1])


def attendance(
    availability: Mapping[str, Any], ids: Sequence[int | str], numbers: Sequence[int], draws: Draws
) -> tuple[list[float], list[float], list[Timeline]]:
    """When each agent joins (0: there from the start) and leaves (infinite: never), and its up and down times."""
    joins = [0.0] * len(numbers)
    leaves = [math.inf] * len(numbers)
    for window, purpose, times in (
        (availability["joins"], Purpose.JOIN, joins),
        (availability["leaves"], Purpose.LEAVE, leaves),
    ):
        for index, number in enumerate(numbers):
            time = window_time(window, draws.pair(purpose, number)) if window else None
            if time is not None:
                times[index] = quantise(time)
    return joins, leaves, timelines(availability, ids, numbers, draws)
