"""Small problems that decide claims of Bellet, Guerraoui, Taziki and Tommasi (2018), and an attack on printed noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agents.losses import Logistic, local_gradient
from ...agents.tables import Shard
from ...protocols.privacy.budget import Allocation, Privacy
from ...protocols.privacy.composition import gaussian
from ...protocols.privacy.mechanisms import Release
from ...protocols.privacy.plans import allocation_weights, plan
from ..audit.audit_statistics import choose_test
from ..audit.game import Shifts, alone_ratios
from .reproduction_runs import Point, Runs

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


def corner_bound(privacy: Privacy, dimension: int) -> float:
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


def turned_corner(runs: Runs, key: str) -> float:
    """The same for the noise and the dimension of a private protocol's runs."""
    return corner_bound(_privacy(runs, key), runs.manifests(key)[0]["task"]["dimension"])


def rows_of(runs: Runs, key: str) -> float:
    """How many rows the median agent has."""
    return float(runs.of_agents(key)["samples"].median())


def few_noise(runs: Runs, key: str) -> float:
    """Scale of the Laplace noise on a coordinate of the median agent's gradient at the fewest updates swept."""
    fewest_updates = {**runs.point, "T": min(runs.values("T"))}
    return laplace_scale(_privacy(runs, key, fewest_updates), rows_of(runs, key))


def divisor(runs: Runs, more: str, less: str) -> float:
    """Return by how much the noise of a protocol is smaller than that of another one."""
    return _privacy(runs, more).lipschitz / _privacy(runs, less).lipschitz


def _privacy(runs: Runs, key: str, at: Point | None = None) -> Privacy:
    return Privacy.model_validate(runs.given(key, "privacy", at=at))
