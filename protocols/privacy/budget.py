"""What an agent may spend, and how it spreads that over its releases.

Equation map (Bellet, Guerraoui, Taziki, Tommasi 2018): `plan` inverts Theorem 1 (Laplace) and Remark 4 (Gaussian);
`allocation_weights` is Proposition 2, printed and corrected. Two departures: sensitivities carry the 1/m_i that
Remark 4 leaves out, so only the ratio of noise to sensitivity appears here; and Theorem 2 should weigh the noise of
iteration t by C^(T-1-t), not C^t, so that the best allocation spends on *late* iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from .accounting import Charge, Composition, gaussian_epsilon, gaussian_mu, kairouz, root, tight
from .mechanisms import NORM_OF, Norm

Allocation = Literal["uniform", "proposition2", "late"]


class RuleError(ValueError):
    """A rule about several fields, broken; ``field`` is the path of the one to change."""

    def __init__(self, message: str, *field: str) -> None:
        super().__init__(message)
        self.field = field


class Terms(BaseModel, frozen=True):
    """Frozen, strict parameters: an unknown field or a value of another type is an error."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Budget(Terms, frozen=True):
    """What an agent may spend by the claimed parameters of its releases."""

    epsilon: float = Field(gt=0)
    """Total epsilon, > 0."""
    delta: float = Field(ge=0, lt=1)
    """Total delta, in [0, 1)."""
    by: Composition = "kairouz"
    """How claimed parameters are composed; at delta 0, kairouz is basic composition."""


class Target(Terms, frozen=True):
    """A verified epsilon that the noise is calibrated to."""

    verified: float = Field(gt=0)
    """Epsilon that the planned releases reach together, > 0."""
    delta: float = Field(gt=0, lt=1)
    """Delta at which they reach it, in (0, 1)."""


class Privacy(Terms, frozen=True):
    """Noise on what an agent releases: its mechanism, its amount and the sensitivity that it is scaled for."""

    mechanism: Literal["laplace", "gaussian", "gamma"]
    """Kind of noise: laplace for sensitivities in the L1 norm; gaussian, or gamma (spherical, of a pure epsilon), for
    the L2 norm."""
    budget: Budget | None = None
    """Claimed budget that the noise is calibrated to; exactly one of budget, target and multiplier is given."""
    target: Target | None = None
    """Verified epsilon that the noise is calibrated to."""
    multiplier: float | None = Field(default=None, ge=0)
    """Noise scale over sensitivity, >= 0; at 0 the protocol runs as if privacy were not set."""
    updates: int | None = Field(default=None, ge=1)
    """Number of releases that an agent makes before it falls silent; required with budget and target."""
    sensitivity: Literal["claimed", "clip", "data_check"] = "clip"
    """Where the sensitivity comes from: the paper's constant, clipping of each example, or checked features."""
    clip: float | None = Field(default=None, gt=0)
    """Bound on the norm of each example's contribution, > 0; required with sensitivity clip."""
    lipschitz: float = Field(default=1.0, gt=0)
    """The Lipschitz constant L0 that the paper claims, > 0; only with sensitivity claimed."""
    radius: float | None = Field(default=None, gt=0)
    """Declared bound on the norm of each feature row, > 0; required with sensitivity data_check."""
    allocation: Allocation = "uniform"
    """How epsilon is spread over the releases: evenly, as Proposition 2 prints it, or in the corrected order."""
    oracle_schedule: bool = False
    """Use the true global indices of an agent's wake-ups instead of the expected ones; for reproduction only."""
    strict: bool = False
    """Whether inputs computed from private data but treated as public make every verified epsilon infinite."""
    delta: float | None = Field(default=None, ge=0, lt=1)
    """Delta at which epsilons are reported, in [0, 1); by default that of budget or target, else 1e-5."""

    @model_validator(mode="after")
    def _amount_is_given_once(self) -> Privacy:
        if sum(given is not None for given in (self.budget, self.target, self.multiplier)) != 1:
            raise RuleError("privacy needs exactly one of budget, target and multiplier")
        if self.multiplier is None and self.updates is None:
            raise RuleError("updates is required with budget and target: the amount is spread over so many releases")
        if self.multiplier is not None and self.allocation != "uniform":
            raise RuleError("spreads a budget or a target; with multiplier only uniform is admissible", "allocation")
        if self.oracle_schedule and self.allocation == "uniform":
            raise RuleError("is admissible only with allocation proposition2 or late", "oracle_schedule")
        return self

    @model_validator(mode="after")
    def _sensitivity_is_complete(self) -> Privacy:
        if (self.clip is not None) != (self.sensitivity == "clip"):
            raise RuleError("clip is required with sensitivity: clip and admissible only with it", "clip")
        if (self.radius is not None) != (self.sensitivity == "data_check"):
            raise RuleError("radius is required with sensitivity: data_check and admissible only with it", "radius")
        if self.target is not None and self.sensitivity == "claimed":
            raise RuleError("must be clip or data_check with target, which is a verified epsilon", "sensitivity")
        if self.lipschitz != 1.0 and self.sensitivity != "claimed":
            raise RuleError("lipschitz is admissible only with sensitivity: claimed", "lipschitz")
        return self

    @model_validator(mode="after")
    def _composition_fits_mechanism(self) -> Privacy:
        if self.budget is None:
            return self
        if self.budget.by == "gaussian" and self.mechanism != "gaussian":
            raise RuleError("budget by: gaussian is admissible only with mechanism: gaussian", "budget", "by")
        if self.budget.delta == 0 and self.mechanism == "gaussian":
            raise RuleError("Gaussian noise needs a budget with delta > 0", "budget", "delta")
        return self

    @property
    def norm(self) -> Norm:
        """Norm in which sensitivities, ``clip`` and ``radius`` are measured: l1 for laplace, l2 for the others."""
        return NORM_OF[self.mechanism]

    @property
    def noiseless(self) -> bool:
        """Whether the noise is nil, so that a protocol neither clips nor draws."""
        return self.multiplier == 0

    @property
    def reported_delta(self) -> float:
        """Delta at which epsilons are reported."""
        if self.delta is not None:
            return self.delta
        amount = self.budget or self.target
        return 1e-5 if amount is None else amount.delta

    @property
    def claimed_by(self) -> Composition:
        """How the claimed epsilon is composed: as the budget says; else tight for a target, and the usual bound."""
        if self.budget is not None:
            return self.budget.by
        if self.target is not None:
            return "tight"
        return "gaussian" if self.mechanism == "gaussian" else "kairouz"


def allocation_weights(
    kind: Allocation, updates: int, *, contraction: float, indices: ArrayLike
) -> NDArray[np.float64]:
    """How an agent spreads epsilon over its releases.

    Parameters
    ----------
    kind : {"uniform", "proposition2", "late"}
        Even; proportional to C^(t/3) as Proposition 2 of Bellet et al. (2018) prints it; or proportional to C^(-t/3),
        which minimises sum C^(T-1-t) / eps_t^2 at a fixed sum of eps_t.
    updates : int
        Number T of releases, ``>= 1``.
    contraction : float
        C = 1 - sigma / (n L_max), in (0, 1); not used by ``uniform``.
    indices : (T,) array
        Global index t of each release; not used by ``uniform``.

    Returns
    -------
    (T,) array
        Positive, summing to 1. No weight is below 1e-100 of the largest, so that noise scales stay finite.

    Raises
    ------
    ValueError
        If the contraction is outside (0, 1) or there is not one index per release.
    """
    if kind == "uniform":
        return np.full(updates, 1.0 / updates)
    steps = np.asarray(indices, dtype=float)
    if not 0 < contraction < 1 or steps.shape != (updates,):
        raise ValueError(f"allocation {kind} needs a contraction in (0, 1) and {updates} indices.")
    logs = steps * (math.log(contraction) / 3) * (1.0 if kind == "proposition2" else -1.0)
    weights = np.exp(np.maximum(logs - logs.max(), math.log(1e-100)))
    return weights / weights.sum()


@dataclass(frozen=True, eq=False)
class Plan:
    """What each of an agent's T releases costs and how noisy it is; all arrays are read-only."""

    epsilons: NDArray[np.float64]
    """(T,) claimed epsilon of each release."""
    deltas: NDArray[np.float64]
    """(T,) claimed delta of each release."""
    multipliers: NDArray[np.float64]
    """(T,) noise scale over sensitivity."""


def plan(privacy: Privacy, weights: ArrayLike) -> Plan:
    """Turn an amount of privacy into the noise of each release.

    Parameters
    ----------
    privacy : Privacy
        The amount: ``budget`` is spent exactly under its composition (``tight``: to 1e-4 from below), ``target`` is
        reached to 1e-3 from below, ``multiplier`` is used as it is.
    weights : (T,) array
        Share of each release, positive and summing to 1; see `allocation_weights`.

    Returns
    -------
    Plan
        Laplace and gamma: eps_k proportional to the weights, multiplier 1 / eps_k, delta_k = 0. Gaussian under basic or
        kairouz: Remark 4, multiplier sqrt(2 log(2 / delta_k)) / eps_k, where the releases share the whole (basic) or
        half (kairouz) of delta equally. Gaussian otherwise: multipliers proportional to 1 / weight on the exact curve;
        the claim of a release is its exact epsilon at its share of half of delta.
    """
    shares = np.ascontiguousarray(weights, dtype=float)
    return _plan(privacy, shares.tobytes())


@lru_cache(maxsize=65536)
def _plan(privacy: Privacy, raw: bytes) -> Plan:
    weights = np.frombuffer(raw, dtype=float)
    if privacy.multiplier is not None:
        return _given(privacy, np.full(weights.shape, privacy.multiplier))
    if privacy.mechanism != "gaussian":
        eps = _pure_total(privacy, weights) * weights
        return _frozen(eps, np.zeros_like(eps), 1 / eps)
    budget = privacy.budget
    if budget is not None and budget.by in ("basic", "kairouz"):
        return _remark4(budget, weights)
    epsilon, delta = _amount(privacy)
    mu = gaussian_mu(epsilon, delta) * (1 - 1e-12)  # so that rounding never lifts epsilon above the amount
    return _given(privacy, math.sqrt(float(weights @ weights)) / (mu * weights))


def _amount(privacy: Privacy) -> tuple[float, float]:
    if privacy.target is not None:
        return privacy.target.verified, privacy.target.delta
    assert privacy.budget is not None
    return privacy.budget.epsilon, privacy.budget.delta


def _frozen(*arrays: NDArray[np.float64]) -> Plan:
    for array in arrays:
        array.setflags(write=False)
    return Plan(*arrays)


def _given(privacy: Privacy, multipliers: NDArray[np.float64]) -> Plan:
    """Plan with given multipliers; claims are exact for each release."""
    if privacy.mechanism != "gaussian" or privacy.noiseless:
        eps = np.divide(1.0, multipliers, out=np.full_like(multipliers, math.inf), where=multipliers > 0)
        return _frozen(eps, np.zeros_like(eps), multipliers)
    delta = privacy.reported_delta if privacy.multiplier is not None else _amount(privacy)[1]
    deltas = np.full_like(multipliers, -math.expm1(math.log1p(-delta) / (2 * len(multipliers))))
    eps = np.array([gaussian_epsilon(1 / sigma, share) for sigma, share in zip(multipliers, deltas, strict=True)])
    return _frozen(eps, deltas, multipliers)


def _remark4(budget: Budget, weights: NDArray[np.float64]) -> Plan:
    """Bellet et al. (2018), Remark 4, with the sensitivity of the mean gradient."""
    pieces = 1 if budget.by == "basic" else 2
    deltas = np.full_like(weights, -math.expm1(math.log1p(-budget.delta) / (pieces * len(weights))))
    slack = 0.0 if budget.by == "basic" else -math.expm1(math.log1p(-budget.delta) / 2)
    eps = _kairouz_total(budget.epsilon, slack, weights) * weights
    return _frozen(eps, deltas, np.sqrt(2 * np.log(2 / deltas)) / eps)


def _pure_total(privacy: Privacy, weights: NDArray[np.float64]) -> float:
    """Sum of the epsilons of Laplace or gamma releases that spend the amount."""
    epsilon, delta = _amount(privacy)
    budget = privacy.budget
    total = _kairouz_total(epsilon, 0.0 if budget is not None and budget.by == "basic" else delta, weights)
    if budget is not None and budget.by != "tight":
        return total

    def composed(candidate: float) -> float:
        counts: dict[Charge, int] = {}
        for eps in candidate * weights:
            charge = Charge(privacy.mechanism, float(1 / eps), 1.0, float(1 / eps), float(eps), 0.0)
            counts[charge] = counts.get(charge, 0) + 1
        return tight(counts, delta)

    return _largest_below(composed, epsilon, total)


def _kairouz_total(epsilon: float, slack: float, weights: NDArray[np.float64]) -> float:
    """Factor s at which the three-way minimum of s * weights equals epsilon; basic composition at slack 0."""
    if kairouz(epsilon * weights, slack) > epsilon or slack == 0:
        return epsilon
    high = 2 * epsilon
    while kairouz(high * weights, slack) < epsilon:
        high *= 2
    return root(lambda total: kairouz(total * weights, slack) - epsilon, epsilon, high)


def _largest_below(composed: Callable[[float], float], goal: float, start: float) -> float:
    """Nearly the largest argument at which an increasing function is at most ``goal``, knowing one that is.

    Secant steps in logarithms, aimed just below the goal; stops within 1e-4 of it or after 40 evaluations (4 or 5 are
    usual). Logarithms are cut at 1e-300, as small epsilons at a large delta are composed to nothing.
    """
    aim, low, high = math.log(goal * (1 - 4e-5)), math.log(start), math.inf
    x, y, slope = low, math.log(max(composed(start), 1e-300)), 1.5
    for _ in range(40):
        if y <= math.log(goal):
            low = max(low, x)
            if y >= math.log(goal * (1 - 1e-4)):
                break
        else:
            high = min(high, x)
        step = min(x + (aim - y) / slope, x + 1)
        if not low < step < high:
            step = (low + high) / 2 if math.isfinite(high) else low + 0.1
        value = math.log(max(composed(math.exp(step)), 1e-300))
        if step != x and value != y:
            slope = min(max((value - y) / (step - x), 0.5), 4.0)
        x, y = step, value
    return math.exp(low)
