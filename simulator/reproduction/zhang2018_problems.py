"""Small problems that decide what Zhang, Khalili and Liu (2018) print: theorem 3.2, section 6.2, theorem 4.1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.losses import Logistic, local_gradient
from ...agents.optimisation.solvers import minimise_local
from ...agents.tables import Shard
from ...protocols.privacy.accounting import Charge, basic_composition_bound

THETA, ROUNDS, MU = 0.5, 60, 2.0
"""Dual step, iterations, and the mu of theorem 3.2."""

ROUNDING = 1e-12
"""Squared distance from the optimum below which ratios of distances are rounding."""

Array = NDArray[np.float64]


def contraction(
    penalties: Sequence[float], growth: Sequence[float], *, curvature: float, printed: bool = True
) -> float:
    """Largest ratio, over iterations, of the two sides of theorem 3.2, at the delta(t) of (23); at most 1 if it holds.

    M-ADMM on a path, for O_i(f) = curvature / 2 (f - b_i)^2 with b_i = 0, 1, 2, ..., so that m_i = M_i = curvature.
    Penalties eta_i(1) >= THETA grow by a factor a round. If not as printed, (23) lacks its 2 sigma_min beside 2 m.
    """
    n = len(penalties)
    adjacency = np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    degree = np.diag(adjacency.sum(axis=1))
    minus, plus, targets = degree - adjacency, degree + adjacency, np.arange(n, dtype=np.float64)
    values, vectors = np.linalg.eigh(minus)
    half = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    best = np.full(n, targets.mean())
    dual_best = np.linalg.pinv(half) @ (-curvature * (best - targets))
    models: Array = np.zeros(n)
    dual, worst = np.zeros(n), 0.0
    for t in range(ROUNDS):
        weights = np.diag(np.asarray(penalties) * np.asarray(growth, dtype=np.float64) ** t)
        before = _distance(models - best, dual - dual_best, weights @ plus)
        right = curvature * targets - half @ dual + weights @ plus @ models
        models = np.asarray(np.linalg.solve(curvature * np.eye(n) + 2 * weights @ degree, right), dtype=np.float64)
        dual = dual + THETA * half @ models
        after = _distance(models - best, dual - dual_best, weights @ plus)
        if before < ROUNDING:
            break
        worst = max(worst, (1 + _rate(weights, minus, plus, curvature, printed=printed)) * after / before)
    return worst


def _distance(models: Array, dual: Array, weighted: Array) -> float:
    """|Z - Z*|^2 in J(t), which has 1 / theta for Y and W (D + A) for the models."""
    return float(dual @ dual / THETA + models @ weighted @ models)


def _rate(weights: Array, minus: Array, plus: Array, curvature: float, *, printed: bool) -> float:
    """The lower bound (23) of delta(t), or the same without the smallest singular value."""
    least = np.linalg.svd(minus, compute_uv=False)
    least = least[least > 1e-12].min()
    wide = np.linalg.svd(weights @ plus, compute_uv=False).max()
    tilted = np.linalg.svd((weights - THETA * np.eye(len(weights))) @ minus, compute_uv=False)
    nonzero = tilted[tilted > 1e-12]
    narrow = nonzero.min() if len(nonzero) and printed else 0.0
    inner = (MU**2 * curvature**2 + MU * tilted.max() ** 2) / (THETA * least * (MU - 1)) + wide
    return float(min(THETA * least / (MU**2 * wide), (2 * curvature + 2 * narrow) / inner))


def recovered(seed: int, *, rows: int = 20, width: int = 5) -> float:
    """Distance of an unknown row from what an attacker of section 6.2 makes of it, who does not know the penalties.

    Two agents run M-ADMM, (10) and (11), on logistic losses of rows of at least three features; penalties are theirs.
    The attacker knows what the section grants: all rows of the first agent but one, and all models. By (12) the
    gradient of the unknown row is K + eta v in every round, K and v being known. It points along that row in all
    rounds: K1 + eta1 v1 = c (K2 + eta2 v2) is linear in eta1, c and c eta2.
    """
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(2, rows, width))
    data /= np.linalg.norm(data, axis=2, keepdims=True)
    data *= rng.choice([-1.0, 1.0], size=(2, rows, 1))
    penalties = rng.uniform(THETA, 1.5, size=(2, 3)).cumsum(axis=1)
    models, dual, seen = np.zeros((2, width)), np.zeros((2, width)), []
    shards = [Shard(each, np.ones(rows)) for each in data]
    known_rows = Shard(data[0, 1:], np.ones(rows - 1))
    for t in range(3):
        middle, new = models.sum(axis=0), np.zeros_like(models)
        for i, penalty in enumerate(penalties[:, t]):
            asked = {"curvature": 1 + 2 * penalty, "linear": penalty * middle - 2 * dual[i], "start": models[i]}
            new[i], _ = minimise_local(shards[i], Logistic(), weight=1.0, tolerance=1e-15, **asked)
        known = local_gradient(new[0], known_rows, Logistic(), 0.0) * (rows - 1) / rows + new[0] + 2 * dual[0]
        seen.append((known, 2 * new[0] - middle))
        models, dual = new, dual + THETA / 2 * (new - new[::-1])
    (first, along), (second, beside) = seen[1], seen[2]
    system = np.column_stack([along, -second, -beside])
    eta, _, _ = np.linalg.lstsq(system, -first, rcond=None)[0]
    direction = -(first + eta * along)
    direction /= np.linalg.norm(direction)
    return float(min(np.linalg.norm(direction - data[0, 0]), np.linalg.norm(direction + data[0, 0])))


def spent(ledgers: Iterable[Any]) -> float:
    """The largest epsilon of an agent in any run at delta = 0, by the releases that the runs' ledgers count."""
    found: dict[Any, Counter[Charge]] = {}
    for run, ledger in enumerate(ledgers):
        names = [name for name in Charge._fields if name in ledger]
        for (agent, *row), count in ledger.groupby(["agent", *names], dropna=False)["count"].sum().items():
            found.setdefault((run, agent), Counter())[Charge(**dict(zip(names, row, strict=True)))] = int(count)
    return max(basic_composition_bound(histogram, 0.0) for histogram in found.values())
