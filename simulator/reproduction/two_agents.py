"""The smallest world in which the theorems of Bellet et al. (2018) about noise can be checked exactly: two agents.

They share one edge of weight 1, their losses are |theta|^2 / 2, and both start at the optimum 0, so that every excess
of the objective (2) comes from noise. With a = mu c, update (6) of agent i reads theta_i = (theta_j - a eta) / (1 + a).
Everything is linear, so expected excesses follow from a 2 x 2 covariance and nothing has to be drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...protocols.privacy.budget import Allocation
from ...protocols.privacy.plans import allocation_weights

PULL = 1.0
"""a = mu c: how much an agent trusts its own data."""


def contraction(mu_c: float = PULL) -> float:
    """C = 1 - sigma / (n L_max) of Proposition 1: sigma = a and L_i = 1 + a for both agents."""
    return 1 - mu_c / (2 * (1 + mu_c))


def expected_excess(scales: ArrayLike, dimension: int, *, order: ArrayLike | None = None, mu_c: float = PULL) -> float:
    """E[Q(Theta(T)) - Q*] after T updates with Laplace noise.

    Parameters
    ----------
    scales : (T,) array_like
        Noise scale s(t) of update t.
    dimension : int
        p; E|eta|^2 = 2 p s^2.
    order : (T,) array_like of int, optional
        Agent (0 or 1) of each update; each with probability 1/2 by default, as Poisson clocks have it.
    mu_c : float
    """
    scales = np.asarray(scales, dtype=np.float64)
    covariance = np.zeros((2, 2))
    for step, scale in enumerate(scales):
        agents = (0, 1) if order is None else (int(np.asarray(order)[step]),)
        covariance = np.mean([_updated(covariance, agent, float(scale), mu_c) for agent in agents], axis=0)
    hessian = np.array([[1 + mu_c, -1.0], [-1.0, 1 + mu_c]])
    return float(dimension * np.sum(hessian * covariance) / 2)


def noise_bound(
    scales: ArrayLike, *, dimension: int = 1, newest_counts_most: bool = False, mu_c: float = PULL
) -> float:
    """The bound of Theorem 2 from the optimum, as printed by default.

    Parameters
    ----------
    scales : (T,) array_like
    dimension : int
        Factor of the sum: 1 as printed, p as E|eta|^2 = 2 p s^2 asks for.
    newest_counts_most : bool
        Weights C^(T-1-t) instead of the printed C^t.
    mu_c : float
    """
    scales = np.asarray(scales, dtype=np.float64)
    steps = np.arange(len(scales))
    weights = contraction(mu_c) ** (steps[::-1] if newest_counts_most else steps)
    # Both agents have D = 1 and the same scale, so the sum over i doubles and cancels n = 2.
    return float(dimension * np.sum(weights * (mu_c * scales) ** 2) / (1 + mu_c))


def allocated_excess(kind: Allocation, updates: int, mu_c: float = PULL) -> float:
    """Expected excess when each of two alternating agents spreads a budget of 1 over its updates; s(t) = 1 / eps(t).

    Parameters
    ----------
    kind : {"uniform", "proposition2", "late"}
    updates : int
        Of each agent.
    mu_c : float
    """
    order = np.tile([0, 1], updates)
    scales: NDArray[np.float64] = np.empty(2 * updates)
    for agent in (0, 1):
        own = np.arange(agent, 2 * updates, 2)
        scales[own] = 1 / allocation_weights(kind, updates, contraction=contraction(mu_c), indices=own)
    return expected_excess(scales, 1, order=order, mu_c=mu_c)


def _updated(covariance: NDArray[np.float64], agent: int, scale: float, mu_c: float) -> NDArray[np.float64]:
    """Covariance of one coordinate of both models after an update."""
    move = np.eye(2)
    move[agent] = 0.0
    move[agent, 1 - agent] = 1 / (1 + mu_c)
    noise = np.zeros((2, 2))
    noise[agent, agent] = 2 * (mu_c * scale / (1 + mu_c)) ** 2
    return move @ covariance @ move.T + noise
