"""What a number of releases cost together: from releases to (epsilon, delta).

`hushnet.protocols.privacy.composition` has the formulas; here they are applied to what a ledger has counted.
``verified`` is the closed form where there is one, and numerical composition of privacy loss distributions elsewhere.

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
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from .composition import gaussian, gaussian_epsilon, kairouz, remaining_delta
from .loss_distribution import SMALLEST_DELTA, Parts, composed_epsilon

Composition = Literal["basic", "kairouz", "gaussian", "verified"]


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


def verified(histogram: Histogram, delta: float, *, claimed: bool = False) -> float:
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
    return math.inf if parts is None else _verified(parts, delta, replaced)


def claimed(histogram: Histogram, delta: float, by: Composition) -> float:
    """Epsilon as the authors of a protocol would state it, on the *claimed* parameters.

    Parameters
    ----------
    histogram : mapping of Charge to int
        How often each charge was made.
    delta : float
        In [0, 1). The releases' own deltas come out of it first, 1 - (1 - slack) prod(1 - delta_k) = delta (Bellet et
        al. 2018, Remark 4); where they exceed it the formula says nothing, and epsilon is infinite.
    by : {"basic", "kairouz", "gaussian", "verified"}
        Composition used: the first two take the claimed epsilons, the others the claimed multipliers.
    """
    charges = {charge: count for charge, count in histogram.items() if count and charge.mechanism != "public"}
    if by == "verified":
        return verified(charges, delta, claimed=True)
    if by == "gaussian":
        return gaussian_bound({c._replace(multiplier=c.claimed_multiplier): k for c, k in charges.items()}, delta)
    spent = math.fsum(count * math.log1p(-charge.claimed_delta) for charge, count in charges.items())
    slack = remaining_delta(delta, spent)
    if slack is None:
        return math.inf
    eps = [charge.claimed_epsilon for charge in charges]
    return kairouz(eps, slack if by == "kairouz" else 0.0, list(charges.values()))


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
def _verified(parts: Parts, delta: float, replaced: bool) -> float:
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
    """Epsilon of a histogram under one of ``claimed`` (composed ``by``), basic, kairouz, gaussian, verified."""
    if which == "claimed":
        return claimed(histogram, delta, by)
    bounds = {"basic": basic_bound, "kairouz": kairouz_bound, "gaussian": gaussian_bound, "verified": verified}
    if which not in bounds:
        raise ValueError(f"epsilon is one of claimed, {', '.join(bounds)}, not {which}.")
    return bounds[which](histogram, delta)
