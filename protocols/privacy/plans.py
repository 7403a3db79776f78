"""Plans of an agent's releases: the share of each in the budget, and its noise.

Equation map (Bellet, Guerraoui, Taziki, Tommasi 2018): `plan` inverts Theorem 1 (Laplace) and Remark 4 (Gaussian);
`allocation_weights` is Proposition 2, printed and corrected. Two departures: sensitivities carry the 1/m_i that
Remark 4 leaves out, so only the ratio of noise to sensitivity appears here; and Theorem 2 should weigh the noise of
iteration t by C^(T-1-t), not C^t, so that the best allocation spends on *late* iterations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accounting import Charge, verified
from .budget import Allocation, Budget, Privacy
from .composition import advanced_composition, gaussian_mu, root
from .filters import filter_of, renyi_order
from .mechanisms.mechanism_registry import edition


def allocation_weights(
    kind: Allocation, updates: int, *, contraction: float, indices: ArrayLike
) -> NDArray[np.float64]:
    """Return the (T,) shares of an agent's releases in its epsilon, positive and summing to 1.

    They are even (uniform); proportional to C^(t/3) as Proposition 2 of Bellet et al. (2018) prints it; or, late,
    proportional to C^(-t/3), which minimises sum C^(T-1-t) / eps_t^2 at a fixed sum of eps_t. The contraction C = 1 -
    sigma / (n L_max) is in (0, 1]; at 1, the limit of links that hardly pull, shares are even. Indices t are global,
    one per release. No weight is below 1e-100 of the largest, so that noise scales stay finite.

    Raises `ValueError` if the contraction is outside (0, 1] or there is not one index per release.
    """
    if kind == "uniform":
        return np.full(updates, 1.0 / updates)
    steps = np.asarray(indices, dtype=float)
    if not 0 < contraction <= 1 or steps.shape != (updates,):
        raise ValueError(f"allocation {kind} needs a contraction in (0, 1] and {updates} indices.")
    logs = steps * (math.log(contraction) / 3) * (1.0 if kind == "proposition2" else -1.0)
    weights = np.exp(np.maximum(logs - logs.max(), math.log(1e-100)))
    return weights / weights.sum()


@dataclass(frozen=True, eq=False)
class Plan:
    """Privacy cost and noise of each of an agent's T releases; all arrays are read-only."""

    epsilons: NDArray[np.float64]
    """(T,) claimed epsilon of each release."""
    deltas: NDArray[np.float64]
    """(T,) claimed delta of each release."""
    multipliers: NDArray[np.float64]
    """(T,) noise scale over sensitivity."""


def plan(privacy: Privacy, weights: ArrayLike, *, dimension: int = 0) -> Plan:
    """Turn an amount of privacy into the noise of each release, by (T,) shares as of `allocation_weights`.

    A ``budget`` is spent exactly under its composition (``verified``: to 1e-4 from below), a ``target`` is reached to
    1e-3 from below, a ``multiplier`` is used as it is; the dimension is what a target or a budget by ``verified``
    composes.

    Laplace, gamma and other pure noise: eps_k proportional to the weights, multiplier 1 / eps_k, delta_k = 0. Gaussian
    under basic or advanced composition: Remark 4, multiplier sqrt(2 log(2 / delta_k)) / eps_k, where the releases share
    the whole (basic) or half (advanced) of delta equally. Gaussian otherwise: multipliers proportional to 1 / weight on
    the exact curve; the claim of a release is its exact epsilon at its share of half of delta. Other noise that needs a
    delta: as Gaussian noise under basic or advanced composition, with its own multiplier at (eps_k, delta_k).
    """
    shares = np.ascontiguousarray(weights, dtype=float)
    return _plan(privacy, shares.tobytes(), dimension if privacy.noise.per_dimension else 0, edition())


@lru_cache(maxsize=65536)
def _plan(privacy: Privacy, raw: bytes, dimension: int, edition: int) -> Plan:  # noqa: ARG001  # for the cache
    weights = np.frombuffer(raw, dtype=float)
    if privacy.multiplier is not None:
        return _given(privacy, np.full(weights.shape, privacy.multiplier))
    if privacy.noise.pure:
        return _split(privacy, _pure_total(privacy, weights, dimension) * weights, np.zeros_like(weights))
    epsilon, delta = _amount(privacy)
    budget = privacy.budget
    if budget is not None and budget.by in ("basic_composition", "advanced_composition"):
        return _remark4(privacy, budget, weights)
    if not privacy.noise.gaussian:
        return _searched(privacy, weights, dimension)
    mu = gaussian_mu(epsilon, delta) if budget is None else _filtered_mu(budget)
    mu *= 1 - 1e-12  # so that rounding never lifts epsilon above the amount
    return _given(privacy, math.sqrt(float(weights @ weights)) / (mu * weights))


def _filtered_mu(budget: Budget) -> float:
    """mu of all Gaussian releases together that spend a budget as it is counted."""
    _, limit = filter_of(budget.by, budget.epsilon, budget.delta)
    orders = {"zcdp": 1.0, "renyi": renyi_order(budget.epsilon, budget.delta)}  # which cost order mu^2 / 2
    return math.sqrt(2 * limit / orders[budget.by]) if budget.by in orders else math.sqrt(limit)


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
    if privacy.noiseless:
        return _frozen(np.full_like(multipliers, math.inf), np.zeros_like(multipliers), multipliers)
    delta = privacy.reported_delta if privacy.multiplier is not None else _amount(privacy)[1]
    share = 0.0 if privacy.noise.pure else -math.expm1(math.log1p(-delta) / (2 * len(multipliers)))
    eps = np.array([privacy.noise.loss(multiplier).epsilon(share) for multiplier in multipliers.tolist()])
    return _frozen(eps, np.full_like(multipliers, share), multipliers)


def _split(privacy: Privacy, eps: NDArray[np.float64], deltas: NDArray[np.float64]) -> Plan:
    """Plan with given claims; the multipliers are those at which papers make them."""
    pairs = zip(eps.tolist(), deltas.tolist(), strict=True)
    return _frozen(eps, deltas, np.array([privacy.noise.printed_multiplier(*pair) for pair in pairs]))


def _remark4(privacy: Privacy, budget: Budget, weights: NDArray[np.float64]) -> Plan:
    """Bellet et al. (2018), Remark 4, with the sensitivity of the mean gradient."""
    pieces = 1 if budget.by == "basic_composition" else 2
    deltas = np.full_like(weights, -math.expm1(math.log1p(-budget.delta) / (pieces * len(weights))))
    slack = 0.0 if budget.by == "basic_composition" else -math.expm1(math.log1p(-budget.delta) / 2)
    eps = _advanced_total(budget.epsilon, slack, weights) * weights
    return _split(privacy, eps, deltas)


def _searched(privacy: Privacy, weights: NDArray[np.float64], dimension: int) -> Plan:
    """Plan with multipliers proportional to 1 / weight that spend the amount as it is verified."""
    epsilon, delta = _amount(privacy)

    def composed(level: float) -> float:
        return _composed(privacy, _given(privacy, 1 / (level * weights)), delta, dimension)

    level = 1.0
    while composed(level) > epsilon:
        level /= 2
    return _given(privacy, 1 / (_largest_below(composed, epsilon, level) * weights))


def _composed(privacy: Privacy, spread: Plan, delta: float, dimension: int) -> float:
    counts: Counter[Charge] = Counter()
    columns = (spread.multipliers.tolist(), spread.epsilons.tolist(), spread.deltas.tolist())
    for multiplier, eps, share in zip(*columns, strict=True):
        counts[Charge(privacy.mechanism, multiplier, 1.0, multiplier, eps, share, dimension=dimension)] += 1
    return verified(counts, delta)


def _pure_total(privacy: Privacy, weights: NDArray[np.float64], dimension: int) -> float:
    """Sum of the epsilons of pure releases that spend the amount."""
    epsilon, delta = _amount(privacy)
    budget = privacy.budget
    total = _advanced_total(epsilon, 0.0 if budget is not None and budget.by == "basic_composition" else delta, weights)
    if budget is not None and budget.by in ("zcdp", "renyi"):
        cost, limit = filter_of(budget.by, epsilon, delta)
        unit = Charge(privacy.mechanism, 1.0, 1.0, 1.0, 1.0, 0.0)

        def spent(candidate: float) -> float:
            return math.fsum(cost(unit._replace(multiplier=1 / (candidate * share))) for share in weights.tolist())

        while spent(total) > limit:
            total /= 2
        return _largest_below(spent, limit, total)
    if budget is not None and budget.by != "verified":
        return total

    def composed(candidate: float) -> float:
        spread = _split(privacy, candidate * weights, np.zeros_like(weights))
        return _composed(privacy, spread, delta, dimension)

    return _largest_below(composed, epsilon, total)


def _advanced_total(epsilon: float, slack: float, weights: NDArray[np.float64]) -> float:
    """Factor s at which the three-way minimum of s * weights equals epsilon; basic composition at slack 0."""
    if advanced_composition(epsilon * weights, slack) > epsilon or slack == 0:
        return epsilon
    high = 2 * epsilon
    while advanced_composition(high * weights, slack) < epsilon:
        high *= 2
    return root(lambda total: advanced_composition(total * weights, slack) - epsilon, epsilon, high)


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
