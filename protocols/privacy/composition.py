"""Formulas for the epsilon of several releases together, from cheap to exact.

- basic composition (Dwork, Roth 2014, Theorem 3.16), the first of three bounds;
- the three-way minimum of Kairouz, Oh, Viswanath (2015), Theorem 3.5, as in Bellet et al. (2018), Theorem 1. The braces
  of its third term close around the whole sum: it is sum(eps tanh(eps/2)) + sqrt(2 sum(eps^2) log(1/delta));
- the exact curve of composed Gaussian mechanisms (Balle, Wang 2018, Theorem 8; Dong, Roth, Su 2022, Corollary 3.3).
"""

# SciPy comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray


def advanced_composition(epsilons: ArrayLike, delta: float, counts: ArrayLike | None = None) -> float:
    """Three-way minimum of Bellet et al. (2018), Theorem 1; see `three_way_bounds`."""
    return min(three_way_bounds(epsilons, delta, counts))


def three_way_bounds(epsilons: ArrayLike, delta: float, counts: ArrayLike | None = None) -> tuple[float, float, float]:
    """The three bounds of Theorem 1 on the epsilon of (T,) composed pure releases, each made as often as counts say.

    Epsilons are >= 0 and delta, the slack of the composition, in [0, 1); at 0 only the first bound is finite.
    """
    eps = np.atleast_1d(np.asarray(epsilons, dtype=float))
    times = np.ones_like(eps) if counts is None else np.asarray(counts, dtype=float)
    if np.isinf(eps).any():
        return math.inf, math.inf, math.inf
    with np.errstate(over="ignore", under="ignore"):
        return three_bounds(
            float(times @ eps), float(times @ (eps * np.tanh(eps / 2))), float(times @ (eps * eps)), delta
        )


def three_bounds(total: float, drift: float, square: float, delta: float) -> tuple[float, float, float]:
    """`three_way_bounds` from the running sums of eps, eps tanh(eps/2) and eps^2."""
    if delta <= 0:
        return total, math.inf, math.inf
    second = drift + math.sqrt(2 * square * math.log(math.e + math.sqrt(square) / delta))
    third = drift + math.sqrt(2 * square * math.log(1 / delta))
    return total, second, third


def remaining_delta(delta: float, spent: float) -> float | None:
    """Slack with (1 - slack) e^spent = 1 - delta, given spent = sum log(1 - delta_k); None if overdrawn."""
    slack = -math.expm1(math.log1p(-delta) - spent)
    if slack < -1e-9 * delta:
        return None
    return slack if slack > 1e-9 * delta else 0.0


def gaussian(multipliers: ArrayLike, delta: float, counts: ArrayLike | None = None) -> float:
    """Exact epsilon, at a delta in [0, 1), of (T,) composed Gaussian mechanisms, each used as often as counts say.

    Multipliers are noise standard deviations over L2 sensitivity, in [0, inf].
    """
    sigma = np.atleast_1d(np.asarray(multipliers, dtype=float))
    if (sigma == 0).any():
        return math.inf
    times = np.ones_like(sigma) if counts is None else np.asarray(counts, dtype=float)
    with np.errstate(over="ignore", under="ignore"):
        return gaussian_epsilon(math.sqrt(float(times @ sigma**-2.0)), delta)


@lru_cache(maxsize=4096)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """Epsilon at ``delta`` of telling N(0, 1) from N(mu, 1): the root of Balle and Wang (2018), equation (6)."""
    if mu == 0:
        return 0.0
    if delta <= 0 or math.isinf(mu):
        return math.inf
    if _gaussian_log_delta(0.0, mu) <= math.log(delta):
        return 0.0
    upper = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return root(lambda eps: _gaussian_log_delta(eps, mu) - math.log(delta), 0.0, upper)


def gaussian_epsilons(mus: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """`gaussian_epsilon` of (k,) mus at once, by bisection from above."""
    if delta <= 0:
        return np.where(mus == 0, 0.0, math.inf)
    mu = np.where((mus > 0) & np.isfinite(mus), mus, 1.0)
    low, high = np.zeros(len(mu)), mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    for _ in range(52):
        middle = (low + high) / 2
        above = _gaussian_log_deltas(middle, mu) > math.log(delta)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    none = (mus == 0) | (_gaussian_log_deltas(np.zeros(len(mu)), mu) <= math.log(delta))
    return np.select([none, np.isinf(mus)], [0.0, math.inf], high)


def _gaussian_log_deltas(epsilons: NDArray[np.float64], mus: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import log_ndtr

    upper = log_ndtr(mus / 2 - epsilons / mus)
    gap = epsilons + log_ndtr(-mus / 2 - epsilons / mus) - upper
    with np.errstate(divide="ignore"):
        return np.where(gap < 0, upper + np.log(-np.expm1(np.minimum(gap, 0.0))), -math.inf)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which N(0, 1) and N(mu, 1) are (epsilon, delta)-close; inverse of `gaussian_epsilon`."""
    low = high = 1.0
    while _gaussian_log_delta(epsilon, low) > math.log(delta):
        low /= 2
    while _gaussian_log_delta(epsilon, high) < math.log(delta):
        high *= 2
    return root(lambda mu: _gaussian_log_delta(epsilon, mu) - math.log(delta), low, high)


def _gaussian_log_delta(epsilon: float, mu: float) -> float:
    """Logarithm of Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    from scipy.special import log_ndtr

    upper = float(log_ndtr(mu / 2 - epsilon / mu))
    gap = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)) - upper
    return upper + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Zero of a function between two points where its signs differ, by Brent's method to 1e-14 relative."""
    from scipy.optimize import root_scalar

    return float(root_scalar(function, bracket=(low, high), method="brentq", xtol=1e-300, rtol=1e-14).root)
