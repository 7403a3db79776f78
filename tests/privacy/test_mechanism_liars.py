"""Mechanisms that lie in a corner only are found out where they are in use, and honest ones are not.

All draws are seeded. The false alarm of one comparison is 1e-9 (`FALSE_ALARM`), and a check at one scale and dimension
makes below 200 of them: an honest mechanism of another seed would be refused here with a probability below 1e-4 in all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hushnet.protocols.privacy.ledger import Ledger
from hushnet.protocols.privacy.mechanisms import (
    GAUSSIAN,
    Noise,
    PrivacyLoss,
    Release,
    contract,
    noise_of,
    register,
)
from hushnet.protocols.privacy.mechanisms import (
    mechanism_registry as registry,
)
from hushnet.protocols.privacy.mechanisms.contract import Use, check_mechanism, doubt
from hushnet.protocols.privacy.mechanisms.gamma import GammaNoise
from hushnet.protocols.privacy.mechanisms.gaussian import GaussianLoss

from .test_mechanism_contract import Blend


class Normal(Noise):
    """A user's Gaussian noise."""

    name = "normal"
    norm = "l2"
    independent = True
    pure = False

    def draw(self, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
        return scale * rng.normal(size=size)

    def log_density(self, noise: np.ndarray, scale: float) -> np.ndarray:
        return GAUSSIAN.log_density(noise, scale)

    def loss(self, multiplier: float, dimension: int = 0) -> PrivacyLoss:
        return GaussianLoss(multiplier)


class Ball(Noise):
    """A user's spherical noise, whose coordinates depend on each other."""

    name = "ball"
    norm = "l2"
    per_dimension = True

    def draw(self, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
        return GammaNoise().draw(size, scale, rng=rng)

    def log_density(self, noise: np.ndarray, scale: float) -> np.ndarray:
        return GammaNoise().log_density(noise, scale)

    def loss(self, multiplier: float, dimension: int = 0) -> PrivacyLoss:
        return GammaNoise().loss(multiplier, dimension)


def lying(base: type[Noise], change: Any) -> Noise:
    """A mechanism whose draws are changed: ``change(noise, scale, rng)``."""

    class Liar(base):
        def draw(self, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
            return change(super().draw(size, scale, rng=rng), scale, rng)

    return Liar()


def of_loss(base: type[Noise], change: Any) -> Noise:
    """A mechanism whose loss is another one: ``change(loss, multiplier, dimension)`` takes the honest function."""

    class Liar(base):
        def loss(self, multiplier: float, dimension: int = 0) -> PrivacyLoss:
            return change(super().loss, multiplier, dimension)

    return Liar()


def without(noise: np.ndarray, where: Any, factor: float = 0.0) -> np.ndarray:
    noise = noise.copy()
    noise[..., where] *= factor
    return noise


def redrawn(noise: np.ndarray, most: float, rng: np.random.Generator) -> np.ndarray:
    """Values of another size are drawn again: a cut tail without an atom."""
    while (far := np.abs(noise) > most).any():
        noise[far] = rng.normal(size=int(far.sum())) * most / 5
    return noise


class Repeats(Normal):
    """Every thousandth vector that is drawn alone is the last one again."""

    def __init__(self) -> None:
        self.count, self.last = 0, np.zeros(1)

    def draw(self, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
        noise = super().draw(size, scale, rng=rng)
        self.count += 1
        if self.count % 1000 == 0 and self.last.shape == noise.shape:
            return self.last.copy()
        self.last = noise.copy()
        return noise


class Sampling(GaussianLoss):
    """Right in every respect, but for what sampled releases are composed of."""

    def distribution(self, interval: float, sampling: float = 1.0) -> Any:
        return super().distribution(interval, sampling / 4 if sampling < 0.1 else sampling)


def doubled_back(noise: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Every third sign is that of the two before, in more than 20 dimensions: no pair is correlated."""
    if noise.shape[-1] > 20:
        signs, size = np.sign(noise), noise.shape[-1]
        third = np.abs(noise[..., 2::3])
        noise[..., 2::3] = third * signs[..., 0 : size - 2 : 3] * signs[..., 1 : size - 1 : 3]
    return noise


class Shallow(GaussianLoss):
    """Right in its curve, but not in the epsilons that are read off it at small deltas."""

    def epsilon(self, delta: float) -> float:
        return super().epsilon(delta) * (0.9 if delta < 1e-7 else 1.0)


Where = tuple[float, float, int, float]
"""Multiplier, scale, dimension, sampling."""
LIARS: dict[str, tuple[Noise, Where]] = {
    "cut at 5 deviations": (lying(Normal, lambda x, b, rng: np.clip(x, -5 * b, 5 * b)), (3.0, 1.0, 5, 1.0)),
    "redrawn beyond 5 deviations": (lying(Normal, lambda x, b, rng: redrawn(x, 5 * b, rng)), (3.0, 1.0, 5, 1.0)),
    "a mass point": (
        lying(Normal, lambda x, b, rng: np.where(rng.random(x.shape) < 1e-4, 1e-3, x)),
        (3.0, 1.0, 5, 1.0),
    ),
    "no noise in coordinate 77": (
        lying(Normal, lambda x, b, rng: without(x, [77]) if x.shape[-1] > 77 else x),
        (3.0, 1.0, 100, 1.0),
    ),
    "spherical, a coordinate missing": (
        lying(Ball, lambda x, b, rng: without(x, [11]) if x.shape[-1] > 11 else x),
        (3.0, 1.0, 50, 1.0),
    ),
    "spherical, cut at its norm": (
        lying(Ball, lambda x, b, rng: x * np.minimum(1, 15 * b / np.linalg.norm(x, axis=-1, keepdims=True))),
        (3.0, 1.0, 4, 1.0),
    ),
    "a sign of two others": (lying(Normal, doubled_back), (3.0, 1.0, 30, 1.0)),
    "one tail cut": (lying(Blend, lambda x, b, rng: np.maximum(x, -20 * b)), (3.0, 1.0, 5, 1.0)),
    "too far, rarely": (
        lying(Normal, lambda x, b, rng: np.where(rng.random(x.shape) < 1e-5, 50 * x, x)),
        (3.0, 1.0, 5, 1.0),
    ),
    "noise again every thousandth time": (Repeats(), (3.0, 1.0, 5, 1.0)),
    "less noise drawn one by one": (
        lying(Normal, lambda x, b, rng: 0.8 * x if x.ndim == 1 else x),
        (3.0, 1.0, 5, 1.0),
    ),
    "a loss wrong where sampled": (of_loss(Normal, lambda loss, m, p: Sampling(m)), (3.0, 1.0, 5, 0.05)),
    "epsilon wrong at small deltas": (of_loss(Normal, lambda loss, m, p: Shallow(m)), (3.0, 1.0, 5, 1.0)),
}


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is unknown to the next one."""
    monkeypatch.setattr(registry, "_known", dict(registry._known))


def charged(mechanism: Noise, *places: Where) -> Ledger:
    """A ledger in which agent 0 made one release at each place."""
    register(mechanism)
    ledger = Ledger(1)
    for multiplier, scale, dimension, sampling in places:
        bound, given = scale / multiplier, (mechanism.name, mechanism.norm)
        ledger.commit(
            Release(0, 0.0, *given, bound, "clip", bound, scale, 1.0, 0.0, 2, sampling, dimension=dimension),
            np.zeros(dimension),
        )
    return ledger


@pytest.mark.parametrize("lie", LIARS)
def test_a_mechanism_that_lies_where_it_is_in_use_has_no_verified_epsilon(lie: str) -> None:
    liar, where = LIARS[lie]
    ledger = charged(liar, where)
    assert ledger.verified(1e-5)[0] == math.inf
    (reason,) = ledger.unverified([0])
    assert reason.startswith(f"{liar.name} noise is not what it says: ")
    assert "\n" not in reason


HONEST = [*(noise_of(name) for name in ("gamma", "gaussian", "laplace")), Ball(), Blend(), Normal()]
PLACES = [
    Use(0.01, 0.001, 1, 1e-6),
    Use(0.3, 1.0, 3, 0.39),
    Use(1.0, 0.5, 9, 1.0),
    Use(7.0, 0.02, 33, 0.05),
    Use(30.0, 1.0, 100, 12.0),
    Use(2e3, 0.1, 600, 250.0),
    Use(1e5, 1.0, 2000, 1e6),
]


@pytest.mark.parametrize("places", [PLACES[::6], pytest.param(PLACES, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("mechanism", HONEST, ids=lambda one: one.name)
def test_honest_mechanisms_pass_at_every_scale_multiplier_sampling_and_dimension(
    mechanism: Noise, places: list[Use]
) -> None:
    check_mechanism(mechanism, places)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, ...]]:
    """Where mechanisms are looked at, instead of looking."""
    places: list[tuple[float, ...]] = []
    monkeypatch.setattr(contract, "check_noise", lambda _, *place: places.append(place))
    monkeypatch.setattr(contract, "check_loss", lambda _, *place: places.append(place))
    monkeypatch.setattr(contract, "check_tails", lambda _: None)
    return places


def test_a_mechanism_is_looked_at_once_where_it_is_in_use(checked: list[tuple[float, ...]]) -> None:
    ledger = charged(Normal(), (3.0, 1.0, 5, 0.25), (2.0, 7.0, 600, 1.0))
    assert ledger.verified(1e-5)[0] < math.inf
    assert {(1.0, 5), (7.0, 600), (3.0, 0.25, 5), (2.0, 1.0, 600)} <= set(checked)
    before = len(checked)
    for delta in (1e-5, 1e-6):
        ledger.verified(delta)
    assert ledger.unverified([0]) == ()
    assert len(checked) == len(set(checked)) == before


def test_a_shipped_mechanism_is_looked_at_once_at_each_place_for_all_who_ask(checked: list[tuple[float, ...]]) -> None:
    here, there = Use(3.0, 1.0, 5, 0.25), Use(3.0, 1.0, 5, 0.5)
    for uses in ([here], [here], [here, there]):
        assert doubt(noise_of("laplace"), uses) == ""
    assert {(0.25, 5), (0.5, 5), (3.0, 1.0, 5)} <= set(checked)
    assert len(checked) == len(set(checked))


def test_noise_that_falls_from_step_to_step_is_not_looked_at_anew_in_every_step(
    checked: list[tuple[float, ...]],
) -> None:
    register(Normal())
    ledger = Ledger(1)
    for step in range(400):
        scale = 0.99**step
        release = Release(0, step, "normal", "l2", 1.0, "clip", 1.0, scale, 1.0, 0.0, 2, dimension=5)
        ledger.commit(release, np.zeros(5))
        if step % 4 == 0:
            ledger.verified(1e-5)
    assert len([place for place in checked if len(place) == 2]) < 120
