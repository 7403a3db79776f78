"""Small problems that decide printed statements of Bellet, Guerraoui, Taziki and Tommasi (2018)."""

from __future__ import annotations

import numpy as np

from ...agents.losses import Logistic, local_gradient
from ...agents.tables import Shard
from ...protocols.privacy.budget import Privacy
from ...protocols.privacy.composition import gaussian
from ...protocols.privacy.plans import plan
from .two_agents import expected_excess, noise_bound

UPDATES = 20
"""Updates in the exact checks of theorem 2."""


def largest_gradient(dimension: int) -> float:
    """l1 norm of the logistic gradient at the corner (1, ..., 1) of the cube, for a model that gets it wrong."""
    corner = Shard(np.ones((1, dimension)), np.array([1.0]))
    return float(np.abs(local_gradient(np.full(dimension, -100.0 / dimension), corner, Logistic(), 0.0)).sum())


def gaussian_step(claimed: float, rows: int, delta: float) -> float:
    """Exact epsilon of one step with the Gaussian noise of remark 4, for gradients of norm at most L0 = 1.

    Parameters
    ----------
    claimed : float
        The remark's epsilon.
    rows : int
        m; the mean of so many gradients moves by 2 / m.
    delta : float
    """
    deviation = 2 * np.sqrt(2 * np.log(2 / delta)) / claimed
    return gaussian([deviation * rows / 2], delta)


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


def excess_over_bound(noise: str, dimension: int, mended: bool = False) -> float:
    """Expected excess over the bound of theorem 2, exact for two agents with quadratic losses and `UPDATES` updates.

    Parameters
    ----------
    noise : {"even", "late"}
        Noise in all updates, or in the last one.
    dimension : int
    mended : bool
        With the factor p, and weights that fall with age.
    """
    scales = np.ones(UPDATES) if noise == "even" else np.eye(UPDATES)[-1]
    bound = noise_bound(scales, dimension=dimension if mended else 1, newest_counts_most=mended)
    return expected_excess(scales, dimension) / bound


def laplace_scale(privacy: Privacy, rows: float) -> float:
    """Median scale of the Laplace noise on the mean of gradients over rows, with equal shares of the budget.

    Parameters
    ----------
    privacy : Privacy
        With a budget and updates; its clip bounds a gradient's l1 norm, or else the claimed L0.
    rows : float
        How many rows the mean is over, > 0.
    """
    if privacy.updates is None or privacy.budget is None:
        raise ValueError("the noise of an update needs a budget and a number of updates")
    shares = np.full(privacy.updates, 1 / privacy.updates)
    sensitivity = 2 * (privacy.lipschitz if privacy.clip is None else privacy.clip)
    return sensitivity * float(np.median(plan(privacy, shares).multipliers)) / rows
