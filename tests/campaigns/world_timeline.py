"""When agents are there, and what becomes of each message: computed anew from the laws' draws, without an engine.

Only draws and the laws of single delays are the product's; nothing here looks at a run.
"""

from __future__ import annotations

import bisect
import csv
import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from hushnet.simulator.network.randomness import Draws, Purpose, stable_ids
from hushnet.simulator.network.setting import Setting

QUANTUM = 2.0**-30
SIGNAL = 255
"""Rank of messages without numbers among the kinds of a tick."""


def rounded(duration: float) -> float:
    """A duration as the nearest multiple of the quantum."""
    return round(duration / QUANTUM) * QUANTUM


class AvailabilityArrays:
    """Who is there when, as stretches of time.

    An agent is there from the instant ``start`` to the instant ``end`` of a stretch; at these very instants messages
    come before and wake-ups after the change.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.numbers = [int(number) for number in stable_ids(setting.task.ids)]
        self.horizon = float(setting.stop.time or 0.0) + 1.0
        law = setting.availability
        self.joins = [self._instant(law.joins, Purpose.JOIN, number) for number in self.numbers]
        self.leaves = [self._instant(law.leaves, Purpose.LEAVE, number) for number in self.numbers]
        joins = [0.0 if time is None else time for time in self.joins]
        leaves = [math.inf if time is None else time for time in self.leaves]
        self.joins, self.leaves = joins, leaves
        self.ups = [self._ups(agent) for agent in range(len(self.numbers))]
        self.stretches = [self._stretches(agent) for agent in range(len(self.numbers))]

    def _instant(self, window, purpose: Purpose, number: int) -> float | None:
        if window is None:
            return None
        place, luck = self.setting.draws.pair(purpose, number)
        low, high = window.between
        return rounded(low + (high - low) * place) if luck < window.share else None

    def _stretches(self, agent: int) -> list[tuple[float, float]]:
        """When it is up, and has joined and not left."""
        join, leave = self.joins[agent], self.leaves[agent]
        up = [(max(a, join), min(b, leave)) for a, b in self.ups[agent]]
        return [(a, b) for a, b in up if a < b]

    def _ups(self, agent: int) -> list[tuple[float, float]]:
        """When it is up by the law of its absences, apart from joining and leaving."""
        law = self.setting.availability
        if law.kind == "always":
            return [(0.0, math.inf)]
        if law.kind == "trace":
            return self._recorded(agent)
        changes = self._diurnal(agent) if law.kind == "diurnal" else self._on_off(agent)
        ups, since, up = [], 0.0, False
        for time, now_up in changes:
            if up and not now_up:
                ups.append((since, time))
            if now_up and not up:
                since = time
            up = now_up
            if time > self.horizon:
                break
        # Beyond the horizon nobody asks; such laws never end.
        return [*ups, (since if up else math.inf, math.inf)]

    def _recorded(self, agent: int) -> list[tuple[float, float]]:
        law, name = self.setting.availability, str(self.setting.task.ids[agent])
        with open((self.setting.base or Path()) / law.path) as file:
            rows = [row for row in csv.DictReader(file) if row["agent"] == name]
        if not rows:
            return [(0.0, math.inf)] if law.others == "up" else []
        found: list[tuple[float, float]] = []
        for start, end in sorted((rounded(float(row["up_from"])), rounded(float(row["up_to"]))) for row in rows):
            if found and found[-1][1] == start:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
        return found

    def _diurnal(self, agent: int) -> Iterator[tuple[float, bool]]:
        law = self.setting.availability
        first = self._luck(agent, 0)[0] * law.spread * law.period
        changes = [(rounded(first + day * law.period), True) for day in range(-1, int(self.horizon / law.period) + 2)]
        changes += [
            (rounded(day * law.period + first + law.online * law.period), False)
            for day in range(-1, int(self.horizon / law.period) + 2)
        ]
        yield 0.0, max(change for change in changes if change[0] <= 0)[1]
        yield from sorted(change for change in changes if change[0] > 0)

    def _on_off(self, agent: int) -> Iterator[tuple[float, bool]]:
        law = self.setting.availability
        means = {False: law.mean_down, True: law.mean_down * law.online / (1 - law.online)}
        luck, age = self._luck(agent, 0)
        up, now, period = luck < law.online, 0.0, 0
        yield now, up
        while True:
            period += 1
            first, second = self._luck(agent, period)
            if law.distribution == "exponential":
                length = -means[up] * math.log(first)
            else:
                # The first stretch is a uniform share of one that is drawn in proportion to its length.
                shift = 0.5 * law.sigma**2 * (1 if period == 1 else -1)
                normal = math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)
                length = means[up] * math.exp(law.sigma * normal + shift) * (age if period == 1 else 1.0)
            now, up = now + rounded(length), not up
            yield now, up

    def _luck(self, agent: int, period: int) -> tuple[float, float]:
        return self.setting.draws.pair(Purpose.AVAILABILITY, self.numbers[agent], 0, period)

    def before(self, agent: int, now: float) -> bool:
        """Whether an agent is there just before the changes of an instant, when messages arrive."""
        stretches = self.stretches[agent]
        place = bisect.bisect_left(stretches, (now, -math.inf)) - 1
        return (now == 0.0 and self.after(agent, now)) or (place >= 0 and now <= stretches[place][1])

    def after(self, agent: int, now: float) -> bool:
        """Whether an agent is there just after the changes of an instant, when clocks wake and timers ring."""
        stretches = self.stretches[agent]
        place = bisect.bisect_right(stretches, (now, math.inf)) - 1
        return place >= 0 and now < stretches[place][1]

    def next_up(self, agent: int, now: float) -> float:
        """The first instant from ``now`` on at which an agent can step; infinite if there is none."""
        if self.after(agent, now):
            return now
        return min((start for start, _ in self.stretches[agent] if start > now), default=math.inf)

    def joined(self, agent: int, now: float) -> bool:
        """Whether an agent has joined and not left, just after the changes of an instant."""
        return self.joins[agent] <= now < self.leaves[agent]


class Fates:
    """Delay and loss of every message, from its place in the random draws."""

    def __init__(self, setting: Setting, ranks: dict[str, int]) -> None:
        self.network, self.draws, self.ranks = setting.network, setting.draws, ranks
        self.numbers = stable_ids(setting.task.ids)
        self.setting = setting
        self._links: dict[tuple[int, int], _Link] = {}

    def transmission(self, kind: str, attempt: int) -> int:
        """Which draw of its tick a message has: the attempt of its kind, or of messages without numbers."""
        return attempt * 256 + self.ranks.get(kind, SIGNAL)

    def of(self, sender: int, receiver: int, tick: int, transmission: int, now: float, size: int) -> tuple[float, bool]:
        """Delay in time units, and whether the message is lost."""
        luck = self.draws.messages(int(self.numbers[sender]), self.numbers[[receiver]], tick, transmission)
        latency = self.network.latency
        delay = (
            self._given.get((sender, receiver), latency.default)
            if latency.kind == "matrix"
            else float(latency.delays(luck)[0])
        )
        if self.network.bandwidth is not None:
            delay += size / self.network.bandwidth
        return rounded(delay), bool(luck[0, 2] < self._chance(sender, receiver, now))

    @cached_property
    def _given(self) -> dict[tuple[int, int], float]:
        """The delays that the file gives."""
        ids = [str(name) for name in self.setting.task.ids]
        with open((self.setting.base or Path()) / self.network.latency.path) as file:
            rows = list(csv.DictReader(file))
        return {(ids.index(row["sender"]), ids.index(row["receiver"])): float(row["delay"]) for row in rows}

    def mean_delay(self, numbers: int) -> float:
        """Mean delay of a message of so many numbers, from which timers are set."""
        network, latency = self.network, self.network.latency
        if latency.kind == "matrix":
            given = [*self._given.values()] or [latency.default or 0.0]
            delay = sum(given) / len(given)
        else:
            delay = latency.average
        size = 8 * numbers + network.header_bytes
        return delay + (size / network.bandwidth if network.bandwidth is not None else 0.0)

    def _chance(self, sender: int, receiver: int, now: float) -> float:
        loss = self.network.loss
        if loss.kind == "bernoulli":
            return loss.probability
        if (sender, receiver) not in self._links:
            numbers = int(self.numbers[sender]), int(self.numbers[receiver])
            self._links[sender, receiver] = _Link(loss, self.draws, *numbers)
        return loss.loss_good if self._links[sender, receiver].good(now) else loss.loss_bad


class _Link:
    """Good and bad times of one directed link."""

    def __init__(self, loss, draws: Draws, sender: int, receiver: int) -> None:
        means = {True: loss.mean_good, False: loss.mean_bad}
        share = loss.mean_good / (loss.mean_good + loss.mean_bad)
        self.first = draws.pair(Purpose.LINK_STATE, sender, receiver, 0)[0] < share
        self.length = lambda good, period: rounded(
            -means[good] * math.log(draws.uniform(Purpose.LINK_STATE, sender, receiver, period))
        )
        self.changes: list[float] = []

    def good(self, now: float) -> bool:
        """Whether the link is good just after the changes of an instant."""
        while not self.changes or self.changes[-1] <= now:
            good = self.first == (len(self.changes) % 2 == 0)
            since = self.changes[-1] if self.changes else 0.0
            self.changes.append(since + self.length(good, len(self.changes) + 1))
        return self.first == (bisect.bisect_right(self.changes, now) % 2 == 0)
