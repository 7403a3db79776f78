"""Small problems that decide claims of Bellet, Guerraoui, Taziki and Tommasi (2018), and an attack on printed noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agents.losses import Logistic, local_gradient
from ...agents.tables import Shard
from ...protocols.privacy.budget import Allocation, GradientPrivacy
from ...protocols.privacy.composition import gaussian as gaussian
from ...protocols.privacy.mechanisms import Release
from ...protocols.privacy.plans import allocation_weights, plan
from ..audit.audit_statistics import choose_test
from ..audit.game import Shifts, alone_ratios

PULL = 1.0
"""a = mu c: how much an agent trusts its own data, in the smallest world in which noise can be followed exactly.

Two agents share one edge of weight 1, their losses are |theta|^2 / 2, and both start at the optimum 0, so that every
excess of the objective (2) comes from noise. Update (6) of agent i reads theta_i = (theta_j - a eta) / (1 + a).
Everything is linear, so expected excesses follow from a 2 x 2 covariance and nothing has to be drawn.
"""

UPDATES = 20
"""Updates in the exact checks of theorem 2."""

LEVEL, DRAWS = 0.001, 20_000
"""With which probability the bound of an attack may be wrong, and of how many draws it is."""


def largest_gradient(dimension: int) -> float:
    """l1 norm of the logistic gradient at the corner (1, ..., 1) of the cube, for a model that gets it wrong."""
    corner = Shard(np.ones((1, dimension)), np.array([1.0]))
    return float(np.abs(local_gradient(np.full(dimension, -100.0 / dimension), corner, Logistic(), 0.0)).sum())


def shrinking(agents: int) -> float:
    """Expected factor of the excess by one update of a random agent from the worst start, over proposition 1's bound.

    Exact for quadratic losses with weights and confidences at random: the largest eigenvalue of the expected excess
    after one update, relative to the excess before.
    """
    rng = np.random.default_rng(agents)
    weights = rng.uniform(0.2, 1.0, (agents, agents))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    hessian = np.diag(weights.sum(axis=1) * (1 + rng.uniform(0.1, 2.0, agents))) - weights
    steps, sigma = 1 / np.diag(hessian), np.linalg.eigvalsh(hessian)[0]
    # E (I - e e'H / L)' H (I - e e'H / L) = H - H diag(1 / L) H / n, an agent drawn from n.
    after = hessian - hessian @ np.diag(steps) @ hessian / agents
    root = np.linalg.inv(np.linalg.cholesky(hessian))
    worst = float(np.linalg.eigvalsh(root @ after @ root.T)[-1])
    return worst / float(1 - sigma / (agents * np.diag(hessian).max()))


def contraction() -> float:
    """C = 1 - sigma / (n L_max) of Proposition 1: sigma = a and L_i = 1 + a for both agents."""
    return 1 - PULL / (2 * (1 + PULL))


def expected_excess(scales: ArrayLike, dimension: int, *, order: Sequence[int] = ()) -> float:
    """E[Q(Theta(T)) - Q*] after T updates with Laplace noise of (T,) scales s(t); E|eta|^2 = 2 p s^2.

    Each update is of either agent with probability 1/2, as Poisson clocks have it, or of the agents (0 or 1) in order.
    """
    covariance: NDArray[np.float64] = np.zeros((2, 2))
    for step, scale in enumerate(np.asarray(scales, dtype=np.float64)):
        after = []
        for agent in order[step : step + 1] or (0, 1):
            move, noise = np.eye(2), np.zeros((2, 2))
            move[agent, agent], move[agent, 1 - agent] = 0.0, 1 / (1 + PULL)
            noise[agent, agent] = 2 * (PULL * scale / (1 + PULL)) ** 2
            after.append(move @ covariance @ move.T + noise)
        covariance = np.mean(after, axis=0)
    hessian = np.array([[1 + PULL, -1.0], [-1.0, 1 + PULL]])
    return float(dimension * np.sum(hessian * covariance) / 2)


def noise_bound(scales: ArrayLike, dimension: int, *, mended: bool = False) -> float:
    """The bound of Theorem 2 from the optimum for (T,) noise scales, as printed.

    Mended, it has the factor p that E|eta|^2 = 2 p s^2 asks for, and weights C^(T-1-t) in place of C^t.
    """
    steps = np.arange(np.size(scales))
    weights = dimension * contraction() ** steps[::-1] if mended else contraction() ** steps
    # Both agents have D = 1 and the same scale, so the sum over i doubles and cancels n = 2.
    return float(np.sum(weights * (PULL * np.asarray(scales)) ** 2) / (1 + PULL))


def allocated_excess(kind: Allocation, updates: int) -> float:
    """Expected excess when each of two alternating agents spreads a budget of 1 over its updates; s(t) = 1 / eps(t)."""
    scales: NDArray[np.float64] = np.empty(2 * updates)
    for agent in (0, 1):
        own = np.arange(agent, 2 * updates, 2)
        scales[own] = 1 / allocation_weights(kind, updates, contraction=contraction(), indices=own)
    return expected_excess(scales, 1, order=[0, 1] * updates)


def laplace_scale(given: Mapping[str, Any], rows: float) -> float:
    """Median scale of the Laplace noise on the mean of gradients over rows, with equal shares of the given budget.

    A gradient's l1 norm is bounded by the clip, or else by the claimed L0.
    """
    privacy, multipliers = _noise(given)
    sensitivity = 2 * (privacy.lipschitz if privacy.clip is None else privacy.clip)
    return sensitivity * float(np.median(multipliers)) / rows


def corner_bound(given: Mapping[str, Any], dimension: int) -> float:
    """Epsilon, at least, of private coordinate descent with the paper's L0 and Laplace noise, on points of the cube.

    The label of the corner (1, ..., 1) is turned. Slopes of the logistic loss at the two labels add up to 1 at every
    score, so that every coordinate of a mean gradient of m points moves by 1 / m exactly, whatever the model: by
    1 / (2 L0) of what the noise was scaled for.
    """
    (privacy, multipliers), shifts = _noise(given), []
    for multiplier in multipliers:
        scale = 2 * privacy.lipschitz * multiplier
        release = Release(0, 0.0, "laplace", "l1", 1.0, "claimed", 1.0, scale, 0.0, 0.0, 1)
        shifts.append(Shifts(release, np.zeros(dimension), np.ones(dimension)))
    ratios = alone_ratios(shifts, DRAWS, rng=np.random.default_rng(0))
    test = choose_test(*ratios, delta=privacy.reported_delta, bound="clopper-pearson")
    return test.epsilon(privacy.reported_delta, LEVEL)


def _noise(given: Mapping[str, Any]) -> tuple[GradientPrivacy, list[float]]:
    privacy = GradientPrivacy.model_validate(given)
    assert privacy.updates is not None, "noise is spread over a number of updates"
    return privacy, plan(privacy, np.full(privacy.updates, 1 / privacy.updates)).multipliers.tolist()
