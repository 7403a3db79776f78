"""A mechanism's draws, density and loss have to belong together before anything is verified about it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hushnet.protocols.privacy.accounting import (
    Charge,
    advanced_composition_bound,
    basic_composition_bound,
    claimed,
    verified,
)
from hushnet.protocols.privacy.ledger import Ledger
from hushnet.protocols.privacy.mechanisms import (
    GAUSSIAN,
    LAPLACE,
    Noise,
    PrivacyLoss,
    RandomisedResponse,
    Release,
    mechanism_of,
    noise_of,
    noises,
    register,
)
from hushnet.protocols.privacy.mechanisms import (
    mechanism_registry as registry,
)
from hushnet.protocols.privacy.mechanisms.contract import MechanismViolation, check_mechanism, unproved
from hushnet.protocols.privacy.mechanisms.laplace import LaplaceLoss

# All draws are seeded; the false alarm of every comparison is 1e-9, and there are below 10,000 in a contract.


class Blend(Noise):
    """Coordinates that are Laplace noise of scale b or 2 b, by chance: a user's mechanism of pure epsilon 1 / b."""

    name = "blend"
    norm = "l1"

    def draw(self, size: int | tuple[int, ...], scale: float, *, rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(0.0, scale, size) * rng.integers(1, 3, size)

    def log_density(self, noise: np.ndarray, scale: float) -> np.ndarray:
        x = np.abs(noise) / scale
        return (np.logaddexp(-x, -x / 2 - math.log(2)) - math.log(4 * scale)).sum(axis=-1)

    def loss(self, multiplier: float, dimension: int = 0) -> PrivacyLoss:
        return RandomisedResponse(1 / multiplier)


class DrawsTooLittle(Blend):
    def draw(self, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
        return super().draw(size, 0.96 * scale, rng=rng)


class DrawsOneForAll(Blend):
    def draw(self, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
        return np.broadcast_to(super().draw(size, scale, rng=rng)[..., :1], size).copy()


class DrawsAlikeInPairs(Blend):
    """Coordinates differ, but come in pairs that give each other away."""

    def draw(self, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
        noise = super().draw(size, scale, rng=rng)
        if noise.shape[-1] > 1:
            noise[..., 1] = -noise[..., 0]
        return noise


class IgnoresItsStream(Blend):
    def draw(self, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
        return super().draw(size, scale, rng=np.random.default_rng(1))


class DensityTooWide(Blend):
    def log_density(self, noise: np.ndarray, scale: float) -> np.ndarray:
        return super().log_density(noise, 1.05 * scale)


class DensityUnscaled(Blend):
    def log_density(self, noise: np.ndarray, scale: float) -> np.ndarray:
        return super().log_density(noise, 1.0)


class LossTooSmall(Blend):
    def loss(self, multiplier: float, dimension: int = 0) -> PrivacyLoss:
        return RandomisedResponse(0.7 / multiplier)


class LossShaved(Blend):
    """The pure epsilon is right, but not the curve."""

    def loss(self, multiplier: float, dimension: int = 0) -> PrivacyLoss:
        class Shaved(RandomisedResponse):
            def delta(self, epsilons: np.ndarray) -> np.ndarray:
                return 0.6 * super().delta(epsilons)

        return Shaved(1 / multiplier)


class Raises(Blend):
    def log_density(self, noise: np.ndarray, scale: float) -> np.ndarray:
        raise ZeroDivisionError("no density\nat all")


class Staircase(Noise):
    """Steps as wide as the scale: a ratio of e a step, on the line; a shift over p coordinates crosses p steps."""

    name = "staircase"
    norm = "l1"

    def draw(self, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
        steps = rng.geometric(1 - math.exp(-1), size) - 1 + rng.random(size)
        return scale * steps * rng.choice([-1.0, 1.0], size)

    def log_density(self, noise: np.ndarray, scale: float) -> np.ndarray:
        top = math.log((1 - math.exp(-1)) / (2 * scale))
        return (top - np.floor(np.abs(noise) / scale)).sum(axis=-1)

    def loss(self, multiplier: float, dimension: int = 0) -> PrivacyLoss:
        return RandomisedResponse(float(math.ceil(1 / multiplier)))


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is unknown to the next one."""
    monkeypatch.setattr(registry, "_known", dict(registry._known))


@pytest.mark.parametrize("name", noises())
def test_every_shipped_mechanism_fulfils_the_contract(name: str) -> None:
    check_mechanism(noise_of(name))


def test_a_users_mechanism_is_verified_once_it_has_fulfilled_the_contract_here() -> None:
    register(Blend())
    charge = Charge("blend", 10.0, 1.0, 10.0, 0.1, 0.0)
    assert basic_composition_bound({charge: 3}, 0.0) == pytest.approx(0.3)
    assert verified({charge: 30}, 1e-5) == pytest.approx(verified({charge._replace(mechanism="gamma"): 30}, 1e-5))
    assert unproved(mechanism_of("blend")) == ""


@pytest.mark.parametrize(
    ("liar", "sentence"),
    [
        (DrawsTooLittle, "the draws at scale 0.5 and the density have distribution functions"),
        (DrawsOneForAll, "coordinates share one draw"),
        (DrawsAlikeInPairs, "draws at scale 1.5 in 2 dimensions repeat: 250000 of 500000 numbers occur before"),
        (IgnoresItsStream, "a stream gives the same noise again"),
        (DensityTooWide, "the draws at scale 0.5 and the density have distribution functions"),
        (DensityUnscaled, "its density at scale 0.5 is not its density at scale 1, stretched"),
        (LossTooSmall, "its densities have delta"),
        (LossShaved, "its densities have delta"),
        (Staircase, "its densities have a ratio of e"),
    ],
)
def test_a_lie_in_draws_density_or_loss_is_found_out(liar: type[Noise], sentence: str) -> None:
    with pytest.raises(MechanismViolation, match=sentence) as caught:
        check_mechanism(liar())
    assert "\n" not in str(caught.value)


def test_nothing_is_verified_about_a_liar_and_the_ledger_says_why() -> None:
    register(DrawsOneForAll())
    ledger = Ledger(2)
    for _ in range(3):
        ledger.commit(Release(1, 0.0, "blend", "l1", 1.0, "clip", 1.0, 10.0, 0.1, 0.0, 2))
    assert ledger.verified(1e-5).tolist() == [0.0, math.inf]
    for which in ("basic_composition", "advanced_composition"):
        assert ledger.epsilon(which, 1e-5)[1] == math.inf
    assert ledger.epsilon("claimed", 1e-5)[1] == pytest.approx(0.3)
    (reason,) = ledger.unverified([1])
    assert reason == "blend noise is not what it says: coordinates share one draw"
    assert ledger.unverified([0]) == ()


def test_a_mechanism_that_cannot_be_checked_is_not_verified_either() -> None:
    register(Raises())
    charge = Charge("blend", 10.0, 1.0, 10.0, 0.1, 0.0)
    assert verified({charge: 1}, 1e-5) == advanced_composition_bound({charge: 1}, 1e-5) == math.inf
    assert claimed({charge: 1}, 1e-5, "basic_composition") == pytest.approx(0.1)
    assert unproved(mechanism_of("blend")).endswith("it raises ZeroDivisionError: no density at all")


def test_a_name_that_is_taken_is_refused() -> None:
    class Impostor(Blend):
        name = "gaussian"

    with pytest.raises(ValueError, match="the name 'gaussian' is taken"):
        register(Impostor())
    with pytest.raises(TypeError, match="instance of a subclass of Mechanism"):
        register(Blend)  # type: ignore[type-var]
    assert mechanism_of("gaussian") is GAUSSIAN
    assert register(Blend()).name in noises()
    again = register(Blend())
    assert mechanism_of("blend") is again


def test_a_user_may_not_claim_to_merge_like_gaussian_noise() -> None:
    class Merging(Blend):
        def gaussian_multiplier(self, multiplier: float) -> float:
            return multiplier

    with pytest.raises(MechanismViolation, match="more than the Gaussian ones"):
        check_mechanism(Merging())


def test_a_sampled_loss_of_a_users_curve_is_that_of_the_shipped_one() -> None:
    # The generic route, from a curve alone, against the one of the accounting library.
    class Curve(LaplaceLoss):
        distribution = PrivacyLoss.distribution

    for sampling in (1.0, 0.2):
        library = LAPLACE.loss(2.0).distribution(0.001, sampling).self_compose(20)
        generic = Curve(2.0).distribution(0.001, sampling).self_compose(20)
        assert generic.get_epsilon_for_delta(1e-5) == pytest.approx(library.get_epsilon_for_delta(1e-5), rel=1e-6)
