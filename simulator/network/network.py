"""The network: how long each message takes, and which ones are lost.

A message's fate is a pure function of (sender, receiver, tick of the sender's clock, transmission), so every protocol
of a scenario meets the same delays and losses, and raising a loss rate only adds losses. Delay distributions are scaled
by their mean: scaling the mean scales every single delay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from pydantic import Field
from typing_extensions import override

from ...agents.authors import returned, returned_numbers
from ...agents.compilation import compiled, form_of, part
from ...agents.kinds import Bare, KindOf
from ...agents.parameters import Interval, NotNegative, Parameters, Positive
from . import delay_files  # noqa: F401 - registers its kinds
from .latency import Constant, LatencyParameters, delay_of
from .links import UNASKED, Bursts, is_lost, state_now, under_way
from .randomness import Draws, Purpose, check_transmission, draw_one

KINDS = 2**8
"""Most message kinds of a protocol; a transmission = attempt within the tick times this + rank of the kind."""


MESSAGE = int(Purpose.MESSAGE)

LossProbabilities = Callable[[int, NDArray[np.int64], float], NDArray[np.float64]]
"""``(sender, receivers, now)`` -> (k,) probabilities that copies to k receivers are lost; times never decrease."""


class LossModel(Parameters, ABC):
    """Model of the loss of messages on links."""

    @property
    def lossless(self) -> bool:
        """True if no message is ever lost; counts only if the very class defines it (`form_of`)."""
        return False

    @property
    def chance(self) -> float | None:
        """The compiled form: the probability of every loss, if it is one number. By default there is none.

        It serves the very class that defines it (`hushnet.agents.compilation.form_of`).
        """
        return None

    @property
    def bursts(self) -> Bursts | None:
        """The compiled form of links that are good and bad in turn, as `GilbertElliott`. By default there is none.

        It serves the very class that defines it.
        """
        return None

    @abstractmethod
    def begin(self, numbers: NDArray[np.uint64], draws: Draws) -> LossProbabilities:
        """The losses of one run, of agents with these stable (n,) numbers."""


LOSS_MODELS = KindOf("loss process", LossModel)
LossParameters = Annotated[LossModel, LOSS_MODELS, Bare("bernoulli", "probability")]


@LOSS_MODELS.register
class Bernoulli(LossModel):
    """Every message is lost independently with the same probability."""

    kind: Literal["bernoulli"]
    probability: float = Field(ge=0, lt=1, examples=[0.05])
    """Probability that a message is lost on one link."""

    @property
    @override
    def lossless(self) -> bool:
        return self.probability == 0

    @property
    @override
    def chance(self) -> float:
        return self.probability

    @override
    def begin(self, numbers: NDArray[np.uint64], draws: Draws) -> LossProbabilities:
        return lambda sender, receivers, now: np.full(len(receivers), self.probability)


@LOSS_MODELS.register
class GilbertElliott(LossModel):
    """Bursts of loss: each directed link is an on/off process in time (Gilbert 1960, Elliott 1963)."""

    kind: Literal["gilbert_elliott"]
    mean_good: Interval = Field(examples=[10.0])
    """Mean duration of a link's good state in time units."""
    mean_bad: Interval = Field(examples=[1.0])
    """Mean duration of a link's bad state in time units."""
    loss_good: float = Field(default=0.0, ge=0, le=1)
    """Loss probability in the good state."""
    loss_bad: float = Field(default=1.0, ge=0, le=1)
    """Loss probability in the bad state."""

    @property
    @override
    def lossless(self) -> bool:
        return self.loss_good == self.loss_bad == 0

    @property
    @override
    def bursts(self) -> Bursts:
        return self.mean_good, self.mean_bad, self.loss_good, self.loss_bad

    @override
    def begin(self, numbers: NDArray[np.uint64], draws: Draws) -> LossProbabilities:
        return _Links(self, numbers, draws)


class NetworkParameters(Parameters):
    """Delay, loss, bandwidth, and what neighbours know at the start."""

    latency: LatencyParameters = Field(default_factory=lambda: Constant(kind="constant", value=0.0))
    """Delay of each message: a number (constant) or a distribution by ``kind``."""
    loss: LossParameters = Field(default_factory=lambda: Bernoulli(kind="bernoulli", probability=0.0))
    """Loss on each link: a probability, or a model by ``kind``."""
    bandwidth: Positive | None = None
    """Bytes per time unit and message; adds size / bandwidth to the delay, without queueing."""
    uplink: Positive | None = None
    """Bytes per time unit that an agent sends: its copies of messages take turns, in the order of sending, each for
    size / uplink, and are then as late as ``latency`` says. By default all leave at once."""
    downlink: Positive | None = None
    """Bytes per time unit that an agent receives: copies take turns, in the order in which they reach it."""
    energy_per_byte: NotNegative = 0.0
    """Joules that a byte takes on a link; for the metric ``energy``."""
    header_bytes: int = Field(default=0, ge=0, le=10**9)
    """Bytes that every message carries besides its numbers (8 bytes each, or 4 in float32)."""
    start: Literal["known", "own", "zero"] = "known"
    """What an agent knows of its neighbours before hearing from them: their start message (exchanged reliably
    beforehand and counted apart), its own model, or zeros."""

    @property
    def lossless(self) -> bool:
        """True if no message is ever lost on its way."""
        return bool(form_of(self.loss, "lossless"))


class Network:
    """The fate of every message of one run, of agents by the user's ids and their stable numbers (`stable_ids`)."""

    def __init__(
        self,
        parameters: NetworkParameters,
        ids: Sequence[int | str],
        numbers: NDArray[np.uint64],
        draws: Draws,
        base: Path | None = None,
        precision: DTypeLike = np.float64,
    ) -> None:
        self.parameters, self.numbers, self.draws = parameters, numbers, draws
        self.precision: np.dtype[Any] = np.dtype(precision)
        self._fixed = parameters.latency.links(ids, base)
        self._read = parameters.latency.read(ids, base)
        self._loss_probabilities = returned(parameters.loss.begin(numbers, draws), Callable, parameters.loss.begin)
        # Copies whose delay and loss are drawn by distributions that compile: each message takes one call.
        distribution = None if self._fixed is not None else form_of(parameters.latency, "distribution")
        self._distribution, self._chance = distribution, form_of(parameters.loss, "chance")
        # By sender, for the last tick: by kind, the receivers of its one message, or how many each receiver was sent.
        self._attempts: dict[int, tuple[int, dict[int, NDArray[np.int64] | dict[int, int]]]] = {}

    def check_links(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> None:
        """Raise an `InputError` if a link that a run may use has no delay."""
        self.link_delays(tails, heads)
        if self._read is not None:
            for sender in np.unique(tails).tolist():
                receivers = heads[tails == sender]
                self._read.draw(sender, receivers, np.zeros((len(receivers), 3)), 0.0)

    def link_delays(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """(E,) delay of each link before rounding; None where delays are not fixed per link."""
        return None if self._fixed is None else self._fixed.of(tails, heads)

    def size(self, numbers: int) -> int:
        """Bytes of a message that carries this many numbers of the run's precision."""
        return self.precision.itemsize * numbers + self.parameters.header_bytes

    def mean_delay(self, size: int) -> float:
        """Mean delay in time units of a message of this many bytes; of links, over those that have a known one."""
        given = self.parameters
        delay = (self._fixed or self._read or given.latency).average
        return delay + sum(size / rate for rate in (given.bandwidth, given.uplink, given.downlink) if rate is not None)

    def attempts(self, sender: int, receivers: NDArray[np.int64], tick: int, kind: int) -> list[int]:
        """Number of earlier messages of this kind, by rank, to each receiver within this tick; counts these, too."""
        last, made = self._attempts.get(sender, (None, {}))
        if last != tick:
            made = {}
            self._attempts[sender] = tick, made
        if kind not in made:
            made[kind] = receivers
            return [0] * len(receivers)
        counts = made[kind]
        if not isinstance(counts, dict):
            counts = made[kind] = dict.fromkeys(counts.tolist(), 1)
        attempts = []
        for receiver in receivers.tolist():
            attempts.append(counts.get(receiver, 0))
            counts[receiver] = attempts[-1] + 1
        return attempts

    def delays_and_losses(
        self, sender: int, receivers: NDArray[np.int64], tick: int, transmission: int, now: float, size: int
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Delays (k,) in time units, multiples of 2^-30, and losses (k,) of one message to k receivers."""
        own = 0.0 if self.parameters.bandwidth is None else size / self.parameters.bandwidth
        if self._distribution is not None and self._chance is not None:
            check_transmission(transmission)
            ends = self.numbers[sender], self.numbers[receivers]
            return _fates_of(
                *self.draws.key, *ends, tick & 0xFFFFFFFF, transmission, *self._distribution, own, self._chance
            )
        uniforms = self.draws.messages(int(self.numbers[sender]), self.numbers[receivers], tick, transmission)
        begun, chances = self.parameters.loss.begin, self._loss_probabilities(sender, receivers, now)
        chances = returned_numbers(chances, (len(receivers),), begun, 0.0, 1.0)
        return _settled(uniforms, self._delays(sender, receivers, uniforms, now), own, chances)

    def delay_and_loss(
        self, sender: int, receiver: int, tick: int, transmission: int, now: float, size: int
    ) -> tuple[float, bool]:
        """Delay in time units and loss of a message to one receiver, as `delays_and_losses` has them, in one call."""
        if self._distribution is None or self._chance is None:
            delays, losses = self.delays_and_losses(sender, np.array([receiver]), tick, transmission, now, size)
            return float(delays[0]), bool(losses[0])
        check_transmission(transmission)
        own = 0.0 if self.parameters.bandwidth is None else size / self.parameters.bandwidth
        ends = self.numbers[sender], self.numbers[receiver]
        return _fate_now(
            *self.draws.key, *ends, tick & 0xFFFFFFFF, transmission, *self._distribution, own, self._chance
        )

    def _delays(
        self, sender: int, receivers: NDArray[np.int64], uniforms: NDArray[np.float64], now: float
    ) -> NDArray[np.float64]:
        if self._read is not None:
            return self._read.draw(sender, receivers, uniforms, now)
        if self._fixed is None:
            made = self.parameters.latency.delays
            return returned_numbers(made(uniforms), (len(receivers),), made, 0.0)
        return self._fixed.of(np.full(len(receivers), sender), receivers)


@compiled
def _settled(uniforms, delays, own, chances):  # pragma: no cover - compiled
    """Times under way of copies with these delays, and whether each is lost; ``own`` is what its bytes take."""
    times, lost = np.empty(len(delays)), np.empty(len(delays), dtype=np.bool_)
    for k in range(len(delays)):
        times[k] = under_way(delays[k], own)
        lost[k] = is_lost(uniforms[k, 2], chances[k])
    return times, lost


@part(forceinline=False)
def _fate_of_one(
    key0, key1, sender, receiver, tick, transmission, code, first, second, own, chance
):  # pragma: no cover
    """Return the time that one copy is in flight, and whether it is lost."""
    u, v, uniforms = draw_one(key0, key1, sender, receiver, tick, MESSAGE, transmission)
    return under_way(delay_of(code, first, second, u, v), own), is_lost(uniforms, chance)


_fate_now = compiled(_fate_of_one)


@compiled
def _fates_of(key0, key1, sender, receivers, tick, transmission, code, first, second, own, chance):  # pragma: no cover
    """The same of copies to several receivers."""
    times, lost = np.empty(len(receivers)), np.empty(len(receivers), dtype=np.bool_)
    for k in range(len(receivers)):
        ends = sender, receivers[k]
        times[k], lost[k] = _fate_of_one(key0, key1, *ends, tick, transmission, code, first, second, own, chance)
    return times, lost


class _Links:
    """The links' good/bad processes of one run."""

    def __init__(self, loss: GilbertElliott, numbers: NDArray[np.uint64], draws: Draws) -> None:
        self.loss, self.numbers, self.key = loss, numbers, draws.key
        self.links: dict[tuple[int, int], tuple[int, int, float]] = {}

    def __call__(self, sender: int, receivers: NDArray[np.int64], now: float) -> NDArray[np.float64]:
        loss = self.loss
        good = [self._is_good(sender, receiver, now) for receiver in receivers.tolist()]
        return np.where(good, loss.loss_good, loss.loss_bad)

    def _is_good(self, sender: int, receiver: int, now: float) -> bool:
        ends = self.numbers[sender], self.numbers[receiver]
        last = self.links.get((sender, receiver), UNASKED)
        state = state_now(*self.key, self.loss.mean_good, self.loss.mean_bad, *ends, now, *last)
        self.links[sender, receiver] = state
        return bool(state[1])
