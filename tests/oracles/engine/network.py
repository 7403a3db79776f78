"""The network: how long each message takes, and which ones are lost.

A message's fate is a pure function of (sender, receiver, tick of the sender's clock, leg). What is taken from the
project is the law of a single delay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..laws import QUANTUM, Draws, Purpose, latency_of, quantise

KINDS = 2**8
"""Most message kinds of a protocol; leg of a message = attempt within the tick times this + rank of its kind."""


class Network:
    """The fate of every message of one run.

    Parameters
    ----------
    parameters : mapping
        ``latency``, ``loss``, ``bandwidth``, ``header_bytes``, ``start``; a matrix has its links in it.
    ids : list of int or str
    numbers : (n,) uint64
        Their stable numbers.
    draws : Draws
    """

    def __init__(
        self, parameters: Mapping[str, Any], ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws
    ) -> None:
        self.numbers, self.draws = numbers, draws
        self.bandwidth, self.header_bytes = parameters["bandwidth"], parameters["header_bytes"]
        self.start = parameters["start"]
        latency, loss = parameters["latency"], parameters["loss"]
        self._matrix: dict[tuple[int, int], float] | None = None
        if latency["kind"] == "matrix":
            position = {str(name): index for index, name in enumerate(ids)}
            self._matrix = {(position[str(a)], position[str(b)]): delay for a, b, delay in latency["links"]}
            self._default = latency["default"]
        else:
            self._latency = latency_of(latency)
        self._loss = loss
        self._links: dict[tuple[int, int], _LinkState] = {}
        self._attempts: list[tuple[int, dict[tuple[int, int], int]]] = [(-1, {}) for _ in ids]

    def size(self, numbers: int) -> int:
        """Bytes of a message that carries this many float64 numbers."""
        return 8 * numbers + self.header_bytes

    def mean_delay(self, size: int) -> float:
        """Mean delay in time units of a message of this many bytes; of a matrix, the mean of the delays it lists."""
        if self._matrix is not None:
            delay = float(np.mean([*self._matrix.values()] or [self._default or 0.0]))
        else:
            delay = self._latency.average
        return delay + (size / self.bandwidth if self.bandwidth is not None else 0.0)

    def attempts(self, sender: int, receivers: NDArray[np.int64], tick: int, kind: int) -> list[int]:
        """How many messages of the kind of this rank each receiver was sent before within this tick; counts these."""
        if self._attempts[sender][0] != tick:
            self._attempts[sender] = (tick, {})
        made = self._attempts[sender][1]
        attempts = [made.get((kind, receiver), 0) for receiver in receivers.tolist()]
        made.update({(kind, receiver): a + 1 for receiver, a in zip(receivers.tolist(), attempts, strict=True)})
        return attempts

    def fates(
        self, sender: int, receivers: NDArray[np.int64], tick: int, leg: int, now: float, size: int
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Delays (k,) in time units, multiples of 2^-30, and losses (k,) of one message to k receivers."""
        luck = self.draws.messages(int(self.numbers[sender]), self.numbers[receivers], tick, leg)
        delays = self._delays(sender, receivers, luck)
        if self.bandwidth is not None:
            delays = delays + size / self.bandwidth
        lost = luck[:, 2] < self._loss_probabilities(sender, receivers, now)
        return np.rint(delays / QUANTUM) * QUANTUM, lost

    def _delays(self, sender: int, receivers: NDArray[np.int64], luck: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._matrix is None:
            return self._latency.delays(luck)
        delays = [self._matrix.get((sender, int(receiver)), self._default) for receiver in receivers]
        return np.array(delays, dtype=np.float64)

    def _loss_probabilities(self, sender: int, receivers: NDArray[np.int64], now: float) -> NDArray[np.float64]:
        if self._loss["kind"] == "bernoulli":
            return np.full(len(receivers), self._loss["probability"])
        links = [self._link(sender, int(receiver)) for receiver in receivers]
        good, bad = self._loss["loss_good"], self._loss["loss_bad"]
        return np.array([good if link.good_at(now) else bad for link in links])

    def _link(self, sender: int, receiver: int) -> _LinkState:
        key = (sender, receiver)
        if key not in self._links:
            self._links[key] = _LinkState(self._loss, int(self.numbers[sender]), int(self.numbers[receiver]), self.draws)
        return self._links[key]


class _LinkState:
    """The good/bad process of one directed link, advanced as far as it is asked about."""

    def __init__(self, loss: Mapping[str, Any], sender: int, receiver: int, draws: Draws) -> None:
        self.means = {True: loss["mean_good"], False: loss["mean_bad"]}
        self.sender, self.receiver, self.draws = sender, receiver, draws
        start, _ = draws.pair(Purpose.LINK_STATE, sender, receiver, 0)
        self.good = start < loss["mean_good"] / (loss["mean_good"] + loss["mean_bad"])
        self.period = 1
        self.until = self._duration()

    def _duration(self) -> float:
        uniform = self.draws.uniform(Purpose.LINK_STATE, self.sender, self.receiver, self.period)
        return quantise(-self.means[self.good] * math.log(uniform))

    def good_at(self, now: float) -> bool:
        """Whether the link is in its good state; times must not decrease."""
        while self.until <= now:
            self.good = not self.good
            self.period += 1
            self.until += self._duration()
        return self.good
