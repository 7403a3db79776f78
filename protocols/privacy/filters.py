"""Filters: budgets for releases whose noise is chosen by what was released before.

A filter gets the cost of each release before it is made, and refuses the one that would exceed its limit; what was
made then keeps its epsilon, although the noise was chosen on the way. That holds for sums of mu^2 of Gaussian releases
(Smith, Thakurta 2022, arXiv 2210.17520; Koskela, Tobaben, Honkela 2023), of rho of zero-concentrated releases and of
Renyi divergences at one order that is fixed in advance (Feldman, Zrnic 2021; Whitehouse et al. 2023). It does not hold
for a curve that is composed numerically and compared with its budget on the way (arXiv 2602.06756), so there is no
filter of privacy loss distributions here.

An epsilon that is read off while a run goes on holds at a time that was fixed in advance.
"""

# scipy comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .charge import Charge
from .composition import gaussian_mu
from .mechanisms import Noise, PrivacyLoss

SLACK = 1 + 1e-9
"""A plan spends its limit exactly, so the comparison forgives rounding."""


def gaussian_cost(charge: Charge) -> float:
    """mu^2 of a Gaussian release, one over its squared proved multiplier; infinite for another mechanism."""
    multiplier = charge.kind.gaussian_multiplier(charge.multiplier)
    return 0.0 if charge.kind.free else math.inf if not multiplier else max(multiplier, 1e-150) ** -2.0


def gaussian_limit(epsilon: float, delta: float) -> float:
    """Sum of mu^2 that an (epsilon, delta) budget allows, epsilon > 0 and delta in (0, 1)."""
    return gaussian_mu(epsilon, delta) ** 2


def zcdp_cost(charge: Charge) -> float:
    """Rho of a release: mu^2 / 2 if it is Gaussian, epsilon^2 / 2 of a pure epsilon (Bun, Steinke 2016)."""
    loss = _loss_of(charge)
    return gaussian_cost(charge) / 2 if loss is None else loss.pure**2 / 2


def zcdp_limit(epsilon: float, delta: float) -> float:
    """Rho with rho + 2 sqrt(rho log(1 / delta)) = epsilon (Bun, Steinke 2016, proposition 1.3)."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def renyi_cost(charge: Charge, order: float) -> float:
    """Renyi divergence of a release at an order > 1; infinite where the mechanism's is not known.

    Sampling is not counted in its favour. That of Gaussian noise is order mu^2 / 2 (Mironov 2017, proposition 7).
    """
    loss = _loss_of(charge)
    return order * gaussian_cost(charge) / 2 if loss is None else loss.renyi(order)


def _loss_of(charge: Charge) -> PrivacyLoss | None:
    """Loss of a release with noise that is not Gaussian; None for all others."""
    kind = charge.kind
    if charge.multiplier == 0 or kind.gaussian or not isinstance(kind, Noise):
        return None
    return kind.loss(max(charge.multiplier, 1e-150), charge.dimension)


def renyi_limit(epsilon: float, delta: float, order: float) -> float:
    """Divergence at an order > 1 that an (epsilon, delta) budget allows, >= 0.

    Canonne, Kamath, Steinke (2020), proposition 12.
    """
    return max(0.0, epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1))


def renyi_order(epsilon: float, delta: float) -> float:
    """Order > 1 of the filter of a budget, fixed before anything is released: 1 + 2 log(1 / delta) / epsilon."""
    return 1 + 2 * math.log(1 / delta) / epsilon


def filter_of(by: str, epsilon: float, delta: float) -> tuple[Callable[[Charge], float], float]:
    """Cost of a release and limit of the costs' sum, for a budget by ``gaussian``, ``zcdp`` or ``renyi``."""
    if by == "zcdp":
        return zcdp_cost, zcdp_limit(epsilon, delta)
    if by == "renyi":
        order = renyi_order(epsilon, delta)
        return lambda charge: renyi_cost(charge, order), renyi_limit(epsilon, delta, order)
    return gaussian_cost, gaussian_limit(epsilon, delta)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon at delta in (0, 1) of releases whose rho add up to this; inverse of `zcdp_limit`."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta)) if rho < math.inf else math.inf


def renyi_epsilon(divergence: Callable[[float], float], delta: float) -> float:
    """Smallest epsilon at delta in (0, 1) over orders, of releases with ``divergence(order)``; see `renyi_limit`."""
    from scipy.optimize import minimize_scalar

    def at(log: float) -> float:
        order = 1 + math.exp(log)
        return divergence(order) + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)

    found: Any = minimize_scalar(at, bounds=(-10.0, 20.0), method="bounded", options={"xatol": 1e-9})
    return max(0.0, float(found.fun))
