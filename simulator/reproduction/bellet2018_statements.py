"""Propositions 1 and 2, remark 4, theorems 1 and 2 of Bellet, Guerraoui, Taziki and Tommasi (2018), computed."""

from __future__ import annotations

import numpy as np

from ...agents.losses import Logistic, local_gradient
from ...agents.tables import Shard
from ...protocols.privacy.composition import gaussian
from .claims import Finding, Number, Promise, Statement
from .two_agents import allocated_excess, contraction, expected_excess, noise_bound

UPDATES = 20
"""Updates in the exact checks of theorem 2."""


def largest_gradient(dimension: int) -> float:
    """l1 norm of the logistic gradient at the corner (1, ..., 1) of the cube, for a model that gets it wrong."""
    corner = Shard(np.ones((1, dimension)), np.array([1.0]))
    return float(np.abs(local_gradient(np.full(dimension, -100.0 / dimension), corner, Logistic(), 0.0)).sum())


def theorem_1() -> Finding:
    """The Lipschitz constant that the proof needs."""
    numbers = [
        Promise(f"verified epsilon of a step, claimed 1, p = {p}", largest_gradient(p), high=1.0, at_least=p / 2)
        for p in (2, 100)
    ]
    return Finding(
        tuple(numbers),
        "The printed statement asks for a loss that is Lipschitz in the l1 norm; that bounds the *largest* coordinate "
        "of its gradient. Lemma 1 needs their *sum*, which reaches p at the corner (1, ..., 1) of the cube. "
        "Counterexample: that corner with its label turned. The slopes of the logistic loss at both labels add up to "
        "1, so that every coordinate moves by 1 / m, and the logarithm of the ratio of densities reaches p eps / 2. "
        "With L0 read as a bound on the l1 norm of the gradient (`sensitivity: clip` or `data_check`) the theorem "
        "holds.",
    )


DELTA = 0.001
"""Delta at which remark 4 is checked."""


def remark_4() -> Finding:
    """One step with the printed Gaussian noise, whose exact curve says what it is worth."""
    numbers, cases = [], ((1.0, 1), (10.0, 1), (100.0, 1), (1.0, 100))
    for claimed, rows in cases:
        deviation = 2 * np.sqrt(2 * np.log(2 / DELTA)) / claimed
        epsilon = gaussian([deviation * rows / 2], DELTA)  # over the sensitivity of a mean of so many gradients
        name = f"verified epsilon of a step, claimed {claimed:g}, m = {rows}"
        numbers.append(Promise(name, epsilon, high=claimed, at_least=epsilon))
    return Finding(
        tuple(numbers),
        f"Exact, at delta = {DELTA:g}, for gradients of norm at most L0 = 1, whose mean over m points moves by 2 / m. "
        "The printed deviation lacks the 1 / m: noise is m times what is needed. And the remark allows any "
        "epsilon above 0, where a deviation that falls as 1 / epsilon is too small from some epsilon on; the exact one "
        "falls as its square root.",
    )


def proposition_1() -> Finding:
    """Expected shrinking of the excess by one update of a random agent, from the worst start."""
    rng, numbers = np.random.default_rng(1), []
    for agents in (2, 5, 20):
        weights = rng.uniform(0.2, 1.0, (agents, agents))
        weights = np.triu(weights, 1) + np.triu(weights, 1).T
        hessian = np.diag(weights.sum(axis=1) * (1 + rng.uniform(0.1, 2.0, agents))) - weights
        steps, sigma = 1 / np.diag(hessian), np.linalg.eigvalsh(hessian)[0]
        # E (I - e e'H / L)' H (I - e e'H / L) = H - H diag(1 / L) H / n, an agent drawn from n.
        after = hessian - hessian @ np.diag(steps) @ hessian / agents
        root = np.linalg.inv(np.linalg.cholesky(hessian))
        worst = float(np.linalg.eigvalsh(root @ after @ root.T)[-1])
        bound = 1 - sigma / (agents * np.diag(hessian).max())
        numbers.append(
            Number(f"expected factor of an update / bound, {agents} agents", worst / bound, high=1.0 + 1e-12)
        )
    return Finding(
        tuple(numbers),
        "Exact for quadratic losses with weights and confidences at random, over all starts: the largest eigenvalue of "
        "the expected excess after one update, relative to the excess before.",
    )


def theorem_2() -> Finding:
    """The printed bound, and with its factor p and the order of its weights put right."""
    even, late = np.ones(UPDATES), np.zeros(UPDATES)
    late[-1] = 1.0
    cases = {
        "even noise, p = 1": (even, 1),
        "even noise, p = 100": (even, 100),
        "noise in the last update, p = 1": (late, 1),
    }
    numbers = [
        Number(f"expected excess / bound, {name}", expected_excess(scales, p) / noise_bound(scales), high=1.0)
        for name, (scales, p) in cases.items()
    ]
    mended = max(
        expected_excess(scales, p) / noise_bound(scales, dimension=p, newest_counts_most=True)
        for scales, p in cases.values()
    )
    return Finding(
        tuple(numbers),
        f"Exact expectations for two agents with quadratic losses and {UPDATES} updates. E|eta|^2 = 2 p s^2 asks for "
        "a factor p, and noise of update t is contracted by the T - 1 - t updates after it, so its weight is "
        f"C^(T-1-t) and not C^t. With both, the largest ratio of the three is {mended:.3g}: the bound is reached, and "
        "not exceeded.",
    )


def proposition_2() -> Finding:
    """The printed allocation against an even one, and the reversed order."""
    even = allocated_excess("uniform", UPDATES // 2)
    printed, reverse = (allocated_excess(kind, UPDATES // 2) / even for kind in ("proposition2", "late"))
    return Finding(
        (Number("expected excess, printed allocation / equal split", printed, high=1.0),),
        f"It follows from theorem 2's weights in the printed order. Exact for two agents with {UPDATES // 2} updates "
        f"each and C = {contraction():.3g}. Spending more on *late* updates (C^(-t/3)) gives {reverse:.3g} of an "
        "equal split's excess.",
    )


STATEMENTS = (
    Statement(
        "Proposition 1",
        "without noise the expected excess shrinks by 1 - sigma / (n L_max) with every update.",
        proposition_1,
    ),
    Statement(
        "Theorem 1",
        "noise of scale 2 L0 / (eps m) makes a step eps-differentially private if the loss is L0-Lipschitz; the "
        "logistic loss is taken to be 1-Lipschitz (section 5.1).",
        theorem_1,
    ),
    Statement(
        "Remark 4",
        "Gaussian noise of deviation 2 L0 sqrt(2 ln(2 / delta)) / eps makes a step (eps, delta)-differentially "
        "private, for any eps > 0.",
        remark_4,
    ),
    Statement("Theorem 2", "the expected excess is at most the contracted start plus weighted noise.", theorem_2),
    Statement("Proposition 2", "shares of the budget proportional to C^(t/3) minimise the loss.", proposition_2),
)
