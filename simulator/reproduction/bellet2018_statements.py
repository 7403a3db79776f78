"""Theorems 1 and 2 and proposition 2 of Bellet, Guerraoui, Taziki and Tommasi (2018), decided by direct computation."""

from __future__ import annotations

import numpy as np

from ...agents.losses import Logistic, local_gradient
from ...agents.tables import Shard
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
        "Theorem 1",
        "noise of scale 2 L0 / (eps m) makes a step eps-differentially private if the loss is L0-Lipschitz; the "
        "logistic loss is taken to be 1-Lipschitz (section 5.1).",
        theorem_1,
    ),
    Statement("Theorem 2", "the expected excess is at most the contracted start plus weighted noise.", theorem_2),
    Statement("Proposition 2", "shares of the budget proportional to C^(t/3) minimise the loss.", proposition_2),
)
