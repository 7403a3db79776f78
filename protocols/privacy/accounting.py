"""Accounting of the joint privacy cost of a number of releases: from releases to (epsilon, delta).

`hushnet.protocols.privacy.composition` has the formulas; here they are applied to what a ledger has counted.
``verified`` is the closed form where there is one, and numerical composition of privacy loss distributions elsewhere.

``multiplier`` is always noise scale over sensitivity, for the adjacency that the sensitivity was computed for. A
release is dominated by the pair of distributions whose `PrivacyLoss` its mechanism gives, and dominating pairs compose,
also where later releases depend on earlier ones (Zhu, Dong, Wang 2022, Theorem 10).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, get_args

from .charge import Charge
from .composition import advanced_composition, gaussian, remaining_delta
from .filters import renyi_cost, renyi_epsilon, zcdp_cost, zcdp_epsilon
from .loss_distribution import SMALLEST_DELTA, Part, Parts, composed_epsilon
from .mechanisms import Mechanism
from .mechanisms.contract import Use, around, proved
from .mechanisms.mechanism_registry import edition

Composition = Literal["basic_composition", "advanced_composition", "gaussian", "zcdp", "renyi", "verified"]


COMPOSITIONS: tuple[Composition, ...] = get_args(Composition)


def check_composition(by: str) -> None:
    """Refuse a word that names no composition; raises `ValueError` with those that there are."""
    if by not in COMPOSITIONS:
        raise ValueError(f"claimed epsilons are composed by one of {', '.join(COMPOSITIONS)}, not {by}.")


Histogram = Mapping[Charge, int]


def basic_composition_bound(histogram: Histogram, delta: float) -> float:
    """Verified epsilon by basic composition, at ``delta`` in [0, 1).

    Gaussian releases share delta equally, 1 - prod(1 - delta_k) = delta, and cost their exact epsilon at delta_k. A
    sampled release is amplified: log(1 + q (e^eps - 1)) at q delta (Balle, Barthe, Gaboardi 2018, Theorem 8).
    """
    parts = _parts(histogram)
    return math.inf if parts is None else _composed(parts, delta, 0.0)


def advanced_composition_bound(histogram: Histogram, delta: float) -> float:
    """Verified epsilon by the three-way minimum, at ``delta`` in [0, 1).

    If there are Gaussian releases, half of delta is the slack of the composition and the other half theirs, so that
    1 - (1 - slack) prod(1 - delta_k) = delta (Bellet et al. 2018, Remark 4). Never above `basic_composition_bound`.
    """
    parts = _parts(histogram)
    return math.inf if parts is None else _best_composed(parts, delta)


def gaussian_bound(histogram: Histogram, delta: float) -> float:
    """Verified epsilon by the exact Gaussian curve, sampling ignored; inf if a release is not Gaussian."""
    parts = _parts(histogram)
    return math.inf if parts is None else _gaussian_curve(parts, delta)


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
        In [0, inf]. Exact for Gaussian releases and for a single one of any pure mechanism, otherwise an upper bound:

        - numerical composition adds less than 2e-4 of the value (1e-5 for Laplace noise; for 2 to 4 gamma releases in 2
          or 3 dimensions up to 2.4e-3 at delta 1e-5 and 1e-2 at 1e-9), and up to 1 % where more than 128 different
          scales occur, which are then rounded; more where sampled releases have next to no noise (multipliers below
          .1), whose grid is made coarser;
        - gamma releases without a dimension count as randomised responses of the same epsilons;
        - sampled releases under replace-one count as removing a record in every respect (Zhu, Dong, Wang 2022, Theorem
          11), and the bound lies above the largest value that is known to be reached, that of adding or removing a
          record: for 1, 10, 100, 1,000 and 3,000 Gaussian releases of multiplier 1 at delta 1e-5 by 0, 3, 11, 23 and
          29 % where they are sampled at .1, by 0, 1, 7, 20 and 26 % at .01; at multiplier 2 by at most 18 %.
    """
    parts = _parts(histogram, claimed=claimed)
    replaced = any(charge.sampling < 1 and charge.adjacency == "replace-one" for charge in histogram)
    return math.inf if parts is None else max(0.0, _verified(parts, delta, replaced, edition()))


def claimed(histogram: Histogram, delta: float, by: Composition) -> float:
    """Epsilon as the authors of a protocol would state it, on the *claimed* parameters of charges and their numbers.

    Basic and advanced composition take the claimed epsilons, the others the claimed multipliers; ``renyi`` at the best
    order. Releases' own deltas come out of `delta`, in [0, 1), first, 1 - (1 - slack) prod(1 - delta_k) = delta
    (Bellet et al. 2018, Remark 4); where they exceed it the formula says nothing, and epsilon is infinite.
    """
    check_composition(by)
    charges = {charge: count for charge, count in histogram.items() if count and not charge.kind.free}
    if by == "verified":
        return verified(charges, delta, claimed=True)
    stated = {charge._replace(multiplier=charge.claimed_multiplier): count for charge, count in charges.items()}
    if by == "gaussian":
        return gaussian_bound(stated, delta)
    if by == "zcdp":
        return zcdp_epsilon(math.fsum(count * zcdp_cost(charge) for charge, count in stated.items()), delta)
    if by == "renyi" and stated:
        return renyi_epsilon(lambda order: sum(k * renyi_cost(charge, order) for charge, k in stated.items()), delta)
    spent = math.fsum(count * math.log1p(-charge.claimed_delta) for charge, count in charges.items())
    slack = remaining_delta(delta, spent)
    if slack is None:
        return math.inf
    eps = [charge.claimed_epsilon for charge in charges]
    return advanced_composition(eps, slack if by == "advanced_composition" else 0.0, list(charges.values()))


def _parts(histogram: Histogram, *, claimed: bool = False) -> Parts | None:
    """Count the releases that cost something; None if one of them is unprotected."""
    counts: dict[Part, int] = {}
    uses: dict[Mechanism, set[Use]] = {}
    for charge, count in histogram.items():
        multiplier = charge.claimed_multiplier if claimed else charge.multiplier
        if not count or charge.kind.free:
            continue
        if not charge.kind.noisy or multiplier == 0:
            return None
        used = uses.setdefault(charge.kind, set())
        if not math.isinf(multiplier):
            part = Part(charge.mechanism, multiplier, charge.sampling, charge.dimension)
            counts[part] = counts.get(part, 0) + count
            used |= {Use(near, charge.sampling, charge.dimension) for near in around(multiplier)}
    if not claimed and not all(proved(kind, used) for kind, used in uses.items()):
        return None
    return tuple(sorted(counts.items()))


def _best_composed(parts: Parts, delta: float) -> float:
    impure = any(not part.noise.pure for part, _ in parts)
    slack = -math.expm1(math.log1p(-delta) / 2) if impure else delta
    return min(_composed(parts, delta, 0.0), _composed(parts, delta, slack))


def _composed(parts: Parts, delta: float, slack: float) -> float:
    """Three-way minimum at ``slack``; releases that need a delta share what that leaves of ``delta``."""
    impure = sum(count for part, count in parts if not part.noise.pure)
    share = -math.expm1((math.log1p(-delta) - math.log1p(-slack)) / impure) if impure else 0.0
    losses = [(part.noise.pure, part.loss()) for part, _ in parts]
    eps = [loss.pure if pure else loss.epsilon(share) for pure, loss in losses]
    return advanced_composition(eps, slack, [count for _, count in parts]) if parts else 0.0


def _gaussian_curve(parts: Parts, delta: float) -> float:
    """The exact curve of Gaussian releases, sampling ignored; inf if one is not Gaussian."""
    equal = [part.noise.gaussian_multiplier(part.multiplier) for part, _ in parts]
    multipliers = [multiplier for multiplier in equal if multiplier is not None]
    if len(multipliers) < len(parts):
        return math.inf
    return gaussian(multipliers, delta, [count for _, count in parts]) if parts else 0.0


@lru_cache(maxsize=4096)
def _verified(parts: Parts, delta: float, replaced: bool, edition: int) -> float:  # noqa: ARG001  # for the cache
    if not parts:
        return 0.0
    exact = _gaussian_curve(parts, delta)
    unsampled = all(part.sampling == 1 for part, _ in parts)
    if unsampled and exact < math.inf:
        return exact
    (part, count), *rest = parts
    if unsampled and count == 1 and not rest:
        return part.loss().epsilon(delta)
    bound = min(_best_composed(parts, delta), exact)
    if delta < SMALLEST_DELTA:
        return bound
    return min(bound, composed_epsilon(parts, delta, replaced=replaced))


def evaluate(which: str, histogram: Histogram, delta: float, by: Composition) -> float:
    """Epsilon of a histogram under one of ``claimed`` (composed ``by``) or a composition."""
    if which == "claimed":
        return claimed(histogram, delta, by)
    bounds = {
        "basic_composition": basic_composition_bound,
        "advanced_composition": advanced_composition_bound,
        "gaussian": gaussian_bound,
        "verified": verified,
    }
    if which not in bounds:
        raise ValueError(f"epsilon is one of claimed, {', '.join(bounds)}, not {which}.")
    return bounds[which](histogram, delta)
