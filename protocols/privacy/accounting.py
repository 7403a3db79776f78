"""What a number of releases cost together: from releases to (epsilon, delta).

Bounds, from cheap to exact:

- basic composition (Dwork, Roth 2014, Theorem 3.16);
- advanced composition (Dwork, Rothblum, Vadhan 2010, Theorem III.3);
- the three-way minimum of Kairouz, Oh, Viswanath (2015), Theorem 3.5, as in Bellet et al. (2018), Theorem 1. The braces
  of its third term close around the whole sum: it is sum(eps tanh(eps/2)) + sqrt(2 sum(eps^2) log(1/delta));
- the exact curve of composed Gaussian mechanisms (Balle, Wang 2018, Theorem 8; Dong, Roth, Su 2022, Corollary 3.3);
- ``tight``: numerical composition of privacy loss distributions where no closed form exists.

``multiplier`` is always noise scale over sensitivity, for the adjacency that the sensitivity was computed for. A
sampled release (``sampling < 1``) is the pair (1 - q) Q + q P against Q, in both orders: Poisson sampling under
add-or-remove-one. Under replace-one it is bounded, whether records are drawn without replacement or by Poisson
sampling, by the curve of that pair in its worse order at every epsilon, negative ones included (Zhu, Dong, Wang 2022,
Theorem 11): one order alone has not been proved to bound adaptive compositions. Of a gamma release only its epsilon
1 / multiplier is used, and it is composed as randomised response of that epsilon, from which every release of that
epsilon can be simulated (Kairouz, Oh, Viswanath 2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root_scalar
from scipy.special import log_ndtr

from .loss_distribution import SMALLEST_DELTA, Parts, composed_epsilon

Composition = Literal["basic", "kairouz", "gaussian", "tight"]


class Charge(NamedTuple):
    """What a release costs, without saying who made it or when; releases with equal charges are counted together."""

    mechanism: str
    """``public``, ``none``, ``laplace``, ``gaussian`` or ``gamma``."""
    multiplier: float
    """Noise scale over the sensitivity that can be proved, in [0, inf]."""
    sampling: float
    """Probability that a given record takes part, in (0, 1]."""
    claimed_multiplier: float
    """Noise scale over the claimed sensitivity, in [0, inf]."""
    claimed_epsilon: float
    """The paper's epsilon of this one release, in [0, inf]."""
    claimed_delta: float
    """The paper's delta of this one release, in [0, 1)."""
    adjacency: str = "add-or-remove-one"
    """What a sampled release is accounted for: ``add-or-remove-one`` or ``replace-one``; no matter without sampling."""


Histogram = Mapping[Charge, int]


def basic(epsilons: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Sum of (T,) epsilons, each taken ``counts`` times."""
    return kairouz_bounds(epsilons, 0.0, counts)[0]


def advanced(epsilon: float, count: int, delta: float) -> float:
    """Dwork, Rothblum, Vadhan (2010): ``count`` releases of ``epsilon`` each, at ``delta`` in (0, 1)."""
    return epsilon * math.sqrt(2 * count * math.log(1 / delta)) + count * epsilon * math.expm1(epsilon)


def kairouz(epsilons: ArrayLike, delta: float, counts: ArrayLike | None = None) -> float:
    """Three-way minimum of Bellet et al. (2018), Theorem 1; see `kairouz_bounds`."""
    return min(kairouz_bounds(epsilons, delta, counts))


def kairouz_bounds(epsilons: ArrayLike, delta: float, counts: ArrayLike | None = None) -> tuple[float, float, float]:
    """The three bounds on the epsilon of composed pure releases.

    Parameters
    ----------
    epsilons : (T,) array
        Epsilon of each release, ``>= 0``.
    delta : float
        Slack of the composition, in [0, 1); at 0 only the first bound is finite.
    counts : (T,) array, optional
        How often each is made; once by default.

    Returns
    -------
    tuple of three floats
        In the order of Theorem 1.
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
    """`kairouz_bounds` from the running sums of eps, eps tanh(eps/2) and eps^2."""
    if delta <= 0:
        return total, math.inf, math.inf
    second = drift + math.sqrt(2 * square * math.log(math.e + math.sqrt(square) / delta))
    third = drift + math.sqrt(2 * square * math.log(1 / delta))
    return total, second, third


def gaussian(multipliers: ArrayLike, delta: float, counts: ArrayLike | None = None) -> float:
    """Exact epsilon of composed Gaussian mechanisms.

    Parameters
    ----------
    multipliers : (T,) array
        Noise standard deviation over L2 sensitivity of each release, in [0, inf].
    delta : float
        In [0, 1).
    counts : (T,) array, optional
        How often each is made; once by default.
    """
    sigma = np.atleast_1d(np.asarray(multipliers, dtype=float))
    if (sigma == 0).any():
        return math.inf
    times = np.ones_like(sigma) if counts is None else np.asarray(counts, dtype=float)
    with np.errstate(over="ignore", under="ignore"):
        return gaussian_epsilon(math.sqrt(float(times @ sigma**-2.0)), delta)


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


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which N(0, 1) and N(mu, 1) are (epsilon, delta)-close; inverse of `gaussian_epsilon`."""
    low = high = 1.0
    while _gaussian_log_delta(epsilon, low) > math.log(delta):
        low /= 2
    while _gaussian_log_delta(epsilon, high) < math.log(delta):
        high *= 2
    return root(lambda mu: _gaussian_log_delta(epsilon, mu) - math.log(delta), low, high)


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Zero of a function between two points where its signs differ, by Brent's method to 1e-14 relative."""
    return float(root_scalar(function, bracket=(low, high), method="brentq", xtol=1e-300, rtol=1e-14).root)


def _gaussian_log_delta(epsilon: float, mu: float) -> float:
    """Logarithm of Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    upper = float(log_ndtr(mu / 2 - epsilon / mu))
    gap = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)) - upper
    return upper + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def basic_bound(histogram: Histogram, delta: float) -> float:
    """Verified epsilon by basic composition, at ``delta`` in [0, 1).

    Gaussian releases share delta equally, 1 - prod(1 - delta_k) = delta, and cost their exact epsilon at delta_k. A
    sampled release is amplified: log(1 + q (e^eps - 1)) at q delta (Balle, Barthe, Gaboardi 2018, Theorem 8).
    """
    parts = _parts(histogram)
    return math.inf if parts is None else _composed(parts, delta, 0.0)


def kairouz_bound(histogram: Histogram, delta: float) -> float:
    """Verified epsilon by the three-way minimum, at ``delta`` in [0, 1).

    If there are Gaussian releases, half of delta is the slack of the composition and the other half theirs, so that
    1 - (1 - slack) prod(1 - delta_k) = delta (Bellet et al. 2018, Remark 4). Never above `basic_bound`.
    """
    parts = _parts(histogram)
    return math.inf if parts is None else _best_composed(parts, delta)


def gaussian_bound(histogram: Histogram, delta: float) -> float:
    """Verified epsilon by the exact Gaussian curve, sampling ignored; inf if a release is not Gaussian."""
    parts = _parts(histogram)
    if parts is None or any(mechanism != "gaussian" for (mechanism, _, _), _ in parts):
        return math.inf
    return gaussian([part[1] for part, _ in parts], delta, [count for _, count in parts]) if parts else 0.0


def tight(histogram: Histogram, delta: float, *, claimed: bool = False) -> float:
    """The smallest epsilon that the releases are known to satisfy together.

    Parameters
    ----------
    histogram : mapping of Charge to int
        How often each charge was made.
    delta : float
        In [0, 1). Below 1e-10 numerical composition loses its digits and the best closed bound is returned.
    claimed : bool
        Use the claimed multipliers instead of those that can be proved.

    Returns
    -------
    float
        In [0, inf]: exact for Gaussian releases and for one Laplace release, otherwise an upper bound, above the exact
        value by less than 1e-4 of it, or by 0.5 % if more than 128 different scales occur. Of gamma releases the exact
        value is that of randomised responses of the same epsilons.
    """
    parts = _parts(histogram, claimed=claimed)
    replaced = any(charge.sampling < 1 and charge.adjacency == "replace-one" for charge in histogram)
    return math.inf if parts is None else _tight(parts, delta, replaced)


def claimed(histogram: Histogram, delta: float, by: Composition) -> float:
    """Epsilon as the authors of a protocol would state it, on the *claimed* parameters.

    Parameters
    ----------
    histogram : mapping of Charge to int
        How often each charge was made.
    delta : float
        In [0, 1). The releases' own deltas come out of it first, 1 - (1 - slack) prod(1 - delta_k) = delta (Bellet et
        al. 2018, Remark 4); where they exceed it the formula says nothing, and epsilon is infinite.
    by : {"basic", "kairouz", "gaussian", "tight"}
        Composition used: the first two take the claimed epsilons, the others the claimed multipliers.
    """
    charges = {charge: count for charge, count in histogram.items() if count and charge.mechanism != "public"}
    if by == "tight":
        return tight(charges, delta, claimed=True)
    if by == "gaussian":
        return gaussian_bound({c._replace(multiplier=c.claimed_multiplier): k for c, k in charges.items()}, delta)
    spent = math.fsum(count * math.log1p(-charge.claimed_delta) for charge, count in charges.items())
    slack = remaining_delta(delta, spent)
    if slack is None:
        return math.inf
    eps = [charge.claimed_epsilon for charge in charges]
    return kairouz(eps, slack if by == "kairouz" else 0.0, list(charges.values()))


def remaining_delta(delta: float, spent: float) -> float | None:
    """Slack with (1 - slack) e^spent = 1 - delta, given spent = sum log(1 - delta_k); None if overdrawn."""
    slack = -math.expm1(math.log1p(-delta) - spent)
    if slack < -1e-9 * delta:
        return None
    return slack if slack > 1e-9 * delta else 0.0


def _parts(histogram: Histogram, *, claimed: bool = False) -> Parts | None:
    """What costs something, counted by (mechanism, multiplier, sampling); None if a release is unprotected."""
    counts: dict[tuple[str, float, float], int] = {}
    for charge, count in histogram.items():
        multiplier = charge.claimed_multiplier if claimed else charge.multiplier
        if not count or charge.mechanism == "public":
            continue
        if charge.mechanism == "none" or multiplier == 0:
            return None
        if not math.isinf(multiplier):
            part = (charge.mechanism, multiplier, charge.sampling)
            counts[part] = counts.get(part, 0) + count
    return tuple(sorted(counts.items()))


def _best_composed(parts: Parts, delta: float) -> float:
    impure = any(mechanism == "gaussian" for (mechanism, _, _), _ in parts)
    slack = -math.expm1(math.log1p(-delta) / 2) if impure else delta
    return min(_composed(parts, delta, 0.0), _composed(parts, delta, slack))


def _composed(parts: Parts, delta: float, slack: float) -> float:
    """Three-way minimum at ``slack``; Gaussian releases share what that leaves of ``delta``."""
    gaussians = sum(count for (mechanism, _, _), count in parts if mechanism == "gaussian")
    share = -math.expm1((math.log1p(-delta) - math.log1p(-slack)) / gaussians) if gaussians else 0.0
    eps = [_amplified(mechanism, multiplier, sampling, share) for (mechanism, multiplier, sampling), _ in parts]
    return kairouz(eps, slack, [count for _, count in parts]) if parts else 0.0


def _amplified(mechanism: str, multiplier: float, sampling: float, delta: float) -> float:
    """Epsilon of one release, at ``delta`` if it is Gaussian."""
    if mechanism != "gaussian":
        eps = 1 / multiplier
    else:
        eps = gaussian_epsilon(1 / multiplier, delta / sampling) if delta < sampling else 0.0
    if sampling == 1:
        return eps
    return float(np.logaddexp(math.log1p(-sampling), math.log(sampling) + eps))


@lru_cache(maxsize=4096)
def _tight(parts: Parts, delta: float, replaced: bool) -> float:
    if not parts:
        return 0.0
    ((mechanism, multiplier, sampling), count), *rest = parts
    if all(part[0] == "gaussian" and part[2] == 1 for part, _ in parts):
        return gaussian([part[1] for part, _ in parts], delta, [times for _, times in parts])
    if mechanism == "laplace" and sampling == 1 and count == 1 and not rest:
        return max(0.0, 1 / multiplier + 2 * math.log1p(-delta))
    if mechanism == "gamma" and sampling == 1 and count == 1 and not rest:
        return _randomised_response(1 / multiplier, delta)
    bound = _best_composed(parts, delta)
    if all(part[0] == "gaussian" for part, _ in parts):
        bound = min(bound, gaussian([part[1] for part, _ in parts], delta, [times for _, times in parts]))
    if delta < SMALLEST_DELTA:
        return bound
    return min(bound, composed_epsilon(parts, delta, replaced=replaced))


def _randomised_response(epsilon: float, delta: float) -> float:
    """Root of (e^epsilon - e^x) / (e^epsilon + 1) = delta, or 0 where it is negative."""
    left = 1 - delta * (1 + math.exp(-epsilon))
    return max(0.0, epsilon + math.log(left)) if left > 0 else 0.0


def evaluate(which: str, histogram: Histogram, delta: float, by: Composition) -> float:
    """Epsilon of a histogram under one of ``claimed`` (composed ``by``), basic, kairouz, gaussian, tight."""
    if which == "claimed":
        return claimed(histogram, delta, by)
    bounds = {"basic": basic_bound, "kairouz": kairouz_bound, "gaussian": gaussian_bound, "tight": tight}
    if which not in bounds:
        raise ValueError(f"epsilon is one of claimed, {', '.join(bounds)}, not {which}.")
    return bounds[which](histogram, delta)
