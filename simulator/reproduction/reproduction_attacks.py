"""Lower bounds on what papers' printed noise reveals: closed forms where there are, else attacks on fresh noise.

Attacks are seeded; each bound of theirs is wrong with a probability of at most `LEVEL`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from ...protocols.privacy.budget import Privacy
from ...protocols.privacy.mechanisms import Release
from ...protocols.privacy.plans import plan
from ..audit.audit_statistics import choose_test
from ..audit.game import Shifts, alone_ratios

LEVEL = 0.001
DRAWS = 20_000
NODES = 4_000
"""Simulated nodes on either data set."""


def turned_corner(privacy: Privacy, dimension: int) -> float:
    """Epsilon, at least, of private coordinate descent with the paper's L0, on points of the cube.

    The label of the corner (1, ..., 1) is turned. Slopes of the logistic loss at the two labels add up to 1 at every
    score, so that every coordinate of a mean gradient of m points moves by 1 / m exactly, whatever the model: by
    1 / (2 L0) of what the noise was scaled for.

    Parameters
    ----------
    privacy : Privacy
        Laplace noise for a claimed sensitivity.
    dimension : int
    """
    assert privacy.updates is not None
    multipliers = plan(privacy, np.full(privacy.updates, 1 / privacy.updates)).multipliers
    shifts = []
    for multiplier in multipliers.tolist():
        scale = 2 * privacy.lipschitz * multiplier
        release = Release(0, 0.0, "laplace", "l1", 1.0, "claimed", 1.0, scale, 0.0, 0.0, 1)
        shifts.append(Shifts(release, np.zeros(dimension), np.ones(dimension)))
    ratios = alone_ratios(shifts, DRAWS, rng=np.random.default_rng(0))
    test = choose_test(*ratios, delta=privacy.reported_delta, bound="clopper-pearson")
    return test.epsilon(privacy.reported_delta, LEVEL)


def drawn_row(rows: int, rounds: int, scale: float, delta: float) -> float:
    """Epsilon, at least, of Gaussian noise on the subgradient of one of so many rows, drawn anew in every round.

    Exact, for a loss whose slope is 1 at every model: all rows but one have no features, and that one moves a
    subgradient by +1 or, on the other data set, by -1. The event is that some round lies below a threshold.

    Parameters
    ----------
    rows, rounds : int
    scale : float
        Deviation of the noise.
    delta : float
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
    have no features, so that only the row's own direction counts. The statistic is the exact likelihood ratio.

    Parameters
    ----------
    rows, rounds, scale, delta
        As of `drawn_row`.
    mu, gamma : float
        Of the algorithm: the model after t rounds is -z / (mu t (t + 1) / 2 + gamma).
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


def theorem_1_scale(rows: int, rounds: int, epsilon: float, delta: float) -> float:
    """Deviation of the noise that theorem 1 of Liu et al. (2022) prints, at L = 1."""
    return math.sqrt(12 * rounds * math.log(1 / delta)) / (rows * epsilon)
