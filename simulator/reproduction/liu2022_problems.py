"""Numbers that decide claims of Liu, Johansson and Shi (2022): the bound of theorem 2, and attacks on printed noise.

Attacks are seeded; each bound of theirs is wrong with a probability of at most `LEVEL`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import norm

from ...protocols.algorithms.subgradient_noise import verified_epsilon as verified_epsilon
from ..audit.audit_statistics import choose_test
from .reproduction_runs import Runs

LEVEL = 0.001
NODES = 4_000
"""Simulated nodes on either data set."""


def theorem_1_scale(rows: int, rounds: int, epsilon: float, delta: float) -> float:
    """Deviation of the noise that theorem 1 of Liu et al. (2022) prints, at L = 1."""
    return math.sqrt(12 * rounds * math.log(1 / delta)) / (rows * epsilon)


def drawn_row(rows: int, rounds: int, scale: float, delta: float) -> float:
    """Epsilon, at least, of Gaussian noise on the subgradient of one of so many rows, drawn anew in every round.

    Exact, for a loss whose slope is 1 at every model: all rows but one have no features, and that one moves a
    subgradient by +1 or, on the other data set, by -1; the scale is the noise's deviation. The event is that some
    round lies below a threshold.
    """
    share, threshold = 1 / rows, np.linspace(0, 3, 3001)
    below = [
        (1 - share) * norm.sf(threshold / scale) + share * norm.sf((threshold + shift) / scale) for shift in (1, -1)
    ]
    never, often = (-np.expm1(rounds * np.log1p(-each)) for each in below)
    known = (often > delta) & (never > 0)
    return max(0.0, float(np.log((often[known] - delta) / never[known]).max(initial=0.0)))


def hinged_row(rows: int, rounds: int, scale: float, delta: float, *, mu: float, gamma: float) -> float:
    """The same for the hinge loss of a node alone with its rows, by an attack on `NODES` of them.

    Its slope is 0 where the margin is kept, which noise brings about now and then. As in `drawn_row` the other rows
    have no features, so that only the row's own direction counts. The statistic is the exact likelihood ratio. The
    model after t rounds is -z / (mu t (t + 1) / 2 + gamma).
    """
    rng, ratios = np.random.default_rng(0), []
    for label in (1.0, -1.0):
        dual, ratio = np.zeros(NODES), np.zeros(NODES)
        for t in range(1, rounds + 1):
            model = dual / -(mu * t * (t + 1) / 2 + gamma)
            slopes = {sign: np.where(sign * model < 1, -sign, 0.0) for sign in (1.0, -1.0)}
            seen = scale * rng.normal(size=NODES) + slopes[label] * (rng.random(NODES) < 1 / rows)
            for sign, slope in slopes.items():
                ratio += sign * np.log1p(np.expm1((seen * slope - slope * slope / 2) / scale**2) / rows)
            dual += t * seen
        ratios.append(ratio)
    test = choose_test(ratios[0], ratios[1], delta=delta, bound="clopper-pearson")
    return test.epsilon(delta, LEVEL)


def second_value(runs: Runs) -> float:
    """beta, the second largest singular value of the ring's mixing matrix with weights 1/3."""
    nodes = len(runs.collection.agents["agent"].unique())
    return (1 + 2 * math.cos(2 * math.pi / nodes)) / 3


def bound_7(runs: Runs, key: str, rounds: int) -> Any:
    """(t,) right side of (7) for t = 1 .. rounds at L = 1, without gamma d(x*) / A(t), which makes it larger."""
    given = runs.given(key)
    t = np.arange(1, max(int(rounds), 1) + 1, dtype=np.float64)
    total, gap = t * (t + 1) / 2, 1 - second_value(runs)
    scale = 2 * runs.ledgers(key)[0]["multiplier"].max() if given.get("privacy") else 0.0
    m = int(runs.manifests(key)[0]["task"]["dimension"])
    each = 0.5 + 2 / gap + m * scale**2 / 2 + 2 * math.sqrt(m) * scale / gap
    return np.cumsum(t**2 / (given["mu"] * total + given["gamma"])) * each / total


def over_bound(runs: Runs, key: str) -> Any:
    """The largest ratio of the suboptimality to the bound (7) at any record, by seed."""

    def largest(_: int, places: Any, gaps: Any) -> float:
        known, bound = places >= 1, bound_7(runs, key, places[-1])
        return np.max(gaps[known] / bound[places[known].astype(np.int64) - 1], initial=0.0)

    return runs.along(key, "gap", "updates", largest)


def slope(runs: Runs, key: str) -> Any:
    """Slope of the logarithm of the suboptimality over that of t, in the last nine tenths of the runs, by seed."""

    def fitted(_: int, places: Any, gaps: Any) -> float:
        late = (places >= places[-1] / 10) & (gaps > 0)
        return np.polyfit(np.log(places[late]), np.log(gaps[late]), 1)[0]

    return runs.along(key, "gap", "updates", fitted)


def hinged(runs: Runs, key: str) -> float:
    """Lower bound on the epsilon of a node alone, with the noise and the constants of a private protocol's runs."""
    given, charge = runs.given(key), runs.ledgers(key)[0].iloc[0]
    rows, delta = round(1 / charge["sampling"]), given["privacy"]["budget"]["delta"]
    scale = 2 * charge["multiplier"]
    return hinged_row(rows, int(charge["count"]), scale, delta, mu=given["mu"], gamma=given["gamma"])
