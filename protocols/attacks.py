"""Attacks: messages that byzantine agents send in place of those that the protocol would have them send.

A byzantine agent takes the protocol's steps, and sends something else. It knows its own honest message m and h_1, ...,
h_k, the newest messages of the same kind that it has received from its honest neighbours; the sets of Baruch et al.,
Xie et al. and Karimireddy et al. are taken over what one agent of a graph can know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..agents.kinds import KindOf
from ..agents.parameters import NotNegative, Parameters, Positive

Array = NDArray[np.float64]


class Attack(Parameters, ABC):
    """Base of all attacks."""

    listens: ClassVar[bool] = False
    """Whether it needs messages of honest neighbours, which exchanges in pairs do not keep."""
    flips_labels: ClassVar[bool] = False
    """Whether byzantine agents learn from labels of the opposite sign."""

    @abstractmethod
    def message(self, own: Array, received: Array, rng: np.random.Generator) -> Array:
        """Return the (width,) float64 message that is sent in place of the honest one, m.

        The own vector is m, finite; the (k, width) received ones are h_1, ..., h_k in the order of the neighbours'
        indices, none where the attack does not listen. The generator is of this message alone.
        """


ATTACKS = KindOf("attack", Attack)
AttackParameters = Annotated[Attack, ATTACKS]


@ATTACKS.register
class SignFlip(Attack):
    """Own message with the opposite sign, -scale m (Li et al. 2019)."""

    kind: Literal["sign_flip"]
    scale: Positive = 1.0
    """Factor of the message."""

    @override
    def message(self, own: Array, received: Array, rng: np.random.Generator) -> Array:
        return -self.scale * own


@ATTACKS.register
class GaussianAttack(Attack):
    """Own message plus Gaussian noise, m + N(0, deviation^2 I)."""

    kind: Literal["noise"]
    deviation: Positive = 1.0
    """Standard deviation of every coordinate."""

    @override
    def message(self, own: Array, received: Array, rng: np.random.Generator) -> Array:
        return own + rng.normal(scale=self.deviation, size=own.shape)


@ATTACKS.register
class LabelFlip(Attack):
    """Honest messages about flipped training labels: of the opposite sign, of K > 2 classes K - 1 - y."""

    flips_labels: ClassVar[bool] = True

    kind: Literal["label_flip"]

    @override
    def message(self, own: Array, received: Array, rng: np.random.Generator) -> Array:
        return own


@ATTACKS.register
class ALittleIsEnough(Attack):
    """Mean of the honest messages less some standard deviations, by coordinate (Baruch et al. 2019, algorithm 3)."""

    listens: ClassVar[bool] = True

    kind: Literal["a_little_is_enough"]
    deviations: NotNegative = 1.5
    """z of mean - z std, both over m, h_1, ..., h_k; Baruch et al. use 1.5 for 24 % of 50 workers."""

    @override
    def message(self, own: Array, received: Array, rng: np.random.Generator) -> Array:
        honest = np.vstack((own, received))
        return honest.mean(axis=0) - self.deviations * honest.std(axis=0)


@ATTACKS.register
class InnerProduct(Attack):
    """Mean of the honest messages with the opposite sign, -scale mean(m, h_1, ..., h_k) (Xie et al. 2020)."""

    listens: ClassVar[bool] = True

    kind: Literal["inner_product"]
    scale: Positive = 0.5
    """Xie et al.'s epsilon."""

    @override
    def message(self, own: Array, received: Array, rng: np.random.Generator) -> Array:
        return -self.scale * np.vstack((own, received)).mean(axis=0)


@ATTACKS.register
class Mimic(Attack):
    """Copy of the message of one honest neighbour, who counts twice (Karimireddy et al. 2022).

    It is h_1, the neighbour of the smallest index that was heard; m as long as none was.
    """

    listens: ClassVar[bool] = True

    kind: Literal["mimic"]

    @override
    def message(self, own: Array, received: Array, rng: np.random.Generator) -> Array:
        return received[0] if len(received) else own
