"""Filters under adversaries who choose the noise of each release by all that was released before."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hushnet.protocols.privacy.accounting import Charge
from hushnet.protocols.privacy.composition import gaussian
from hushnet.protocols.privacy.filters import (
    gaussian_cost,
    gaussian_limit,
    renyi_cost,
    renyi_limit,
    zcdp_cost,
    zcdp_limit,
)

EPSILON, DELTA, ORDER, STEPS, SEQUENCES = 1.0, 0.05, 5.0, 40, 10_000
MULTIPLIERS = np.array([0.8, 1.5, 3.0, 6.0, 12.0])


def charge(mechanism: str, multiplier: float) -> Charge:
    return Charge(mechanism, multiplier, 1.0, multiplier, 1 / multiplier, 0.0)


FILTERS = {
    "gaussian": ("gaussian", gaussian_cost, gaussian_limit(EPSILON, DELTA)),
    "zcdp": ("gaussian", zcdp_cost, zcdp_limit(EPSILON, DELTA)),
    "zcdp of laplace": ("laplace", zcdp_cost, zcdp_limit(EPSILON, DELTA)),
    "renyi": ("gaussian", partial(renyi_cost, order=ORDER), renyi_limit(EPSILON, DELTA, ORDER)),
    "renyi of laplace": ("laplace", partial(renyi_cost, order=ORDER), renyi_limit(EPSILON, DELTA, ORDER)),
}


def test_limits_are_those_of_the_formulas():
    assert gaussian_limit(EPSILON, DELTA) == pytest.approx(gaussian_mu_squared())
    rho = zcdp_limit(2.0, 1e-5)
    assert rho + 2 * math.sqrt(rho * math.log(1e5)) == pytest.approx(2.0)
    # Mironov 2017, table II: 8 / (2 2^2), and log(4/7 e^{3/2} + 3/7 e^{-4/2}) / 3 at order 4.
    assert renyi_cost(charge("gaussian", 2.0), 8.0) == pytest.approx(1.0)
    laplace = math.log(4 / 7 * math.exp(1.5) + 3 / 7 * math.exp(-2.0)) / 3
    assert renyi_cost(charge("laplace", 2.0), 4.0) == pytest.approx(laplace)
    plain = Charge("none", 0.0, 1.0, 0.0, math.inf, 0.0)
    assert all(math.isinf(cost(plain)) for _, cost, _ in FILTERS.values())


def gaussian_mu_squared() -> float:
    low, high = 0.0, 10.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian([1 / math.sqrt(middle)], DELTA) < EPSILON else (low, middle)
    return low


@pytest.mark.parametrize("name", FILTERS)
def test_no_adaptive_sequence_overspends(name):
    """10,000 sequences of 40 releases asked for; noise is chosen by the loss so far, the worse the bolder.

    The mean of (1 - e^(epsilon - loss))+ is delta at most; one seed, false alarm at five deviations 3e-7.
    """
    mechanism, cost, limit = FILTERS[name]
    costs = np.array([cost(charge(mechanism, m)) for m in MULTIPLIERS.tolist()])
    rng = np.random.default_rng(5)
    spent, loss, precision = np.zeros((3, SEQUENCES))
    for _ in range(STEPS):
        bold = np.clip(2 - (2 * loss).astype(int) + rng.integers(-1, 2, SEQUENCES), 0, len(MULTIPLIERS) - 1)
        bold = np.where(rng.random(SEQUENCES) < 0.1, rng.integers(0, len(MULTIPLIERS), SEQUENCES), bold)
        taken = spent + costs[bold] <= limit
        spent += taken * costs[bold]
        mu = 1 / MULTIPLIERS[bold]
        if mechanism == "gaussian":
            step = mu**2 / 2 + mu * rng.normal(size=SEQUENCES)
        else:
            noise = rng.laplace(size=SEQUENCES)
            step = np.abs(noise + mu) - np.abs(noise)
        loss, precision = loss + taken * step, precision + taken * mu**2
    if mechanism == "gaussian":
        exact = np.array([0.0 if p == 0 else gaussian([p**-0.5], DELTA) for p in np.unique(precision).tolist()])
        assert (exact <= EPSILON * (1 + 1e-9)).all()
    beyond = np.maximum(0.0, -np.expm1(EPSILON - loss))
    assert (precision > 0).all()
    assert beyond.mean() <= DELTA + 5 * beyond.std() / math.sqrt(SEQUENCES)
