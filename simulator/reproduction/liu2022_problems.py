"""Numbers that decide claims of Liu, Johansson and Shi (2022): the bound of theorem 2, and attacks on private runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from ...protocols.algorithms.subgradient_noise import verified_epsilon
from .reproduction_attacks import hinged_row, theorem_1_scale
from .reproduction_runs import Runs


def subsampled(rows: int, rounds: int, scale: float, delta: float) -> float:
    """Verified epsilon of rounds on the subgradient of one of so many rows, which moves by 2 L at L = 1."""
    return verified_epsilon(scale / 2, rounds, 1 / rows, delta)


def second_value(runs: Runs) -> float:
    """beta, the second largest singular value of the ring's mixing matrix with weights 1/3."""
    nodes = len(runs.collection.agents["agent"].unique())
    return (1 + 2 * math.cos(2 * math.pi / nodes)) / 3


def bound_7(runs: Runs, key: str, rounds: int) -> Any:
    """(t,) right side of (7) for t = 1 .. rounds at L = 1, without gamma d(x*) / A(t), which makes it larger."""
    given = runs.manifests(key)[0]["scenario"]["protocols"][key]
    t = np.arange(1, max(int(rounds), 1) + 1, dtype=np.float64)
    total, gap = t * (t + 1) / 2, 1 - second_value(runs)
    scale, budget = 0.0, (given.get("privacy") or {}).get("budget")
    if budget:
        rows = int(runs.collection.agents["samples"].max())
        scale = theorem_1_scale(rows, given["privacy"]["updates"], budget["epsilon"], budget["delta"])
    m = int(runs.manifests(key)[0]["task"]["dimension"])
    each = 0.5 + 2 / gap + m * scale**2 / 2 + 2 * math.sqrt(m) * scale / gap
    return np.cumsum(t**2 / (given["mu"] * total + given["gamma"])) * each / total


def over_bound(runs: Runs, key: str) -> Any:
    """The largest ratio of the suboptimality to the bound (7) at any record, by seed."""
    curves = runs.curve(key, "gap", "updates")
    last = max(int(places.max(initial=1)) for places, _ in curves.values())
    bound, found = bound_7(runs, key, last), {}
    for seed, (places, gaps) in curves.items():
        known = places >= 1
        found[seed] = float(np.max(gaps[known] / bound[places[known].astype(np.int64) - 1], initial=0.0))
    return pd.Series(found)


def slope(runs: Runs, key: str) -> Any:
    """Slope of the logarithm of the suboptimality over that of t, in the last nine tenths of the runs, by seed."""
    found = {}
    for seed, (places, gaps) in runs.curve(key, "gap", "updates").items():
        late = (places >= places[-1] / 10) & (gaps > 0)
        found[seed] = float(np.polyfit(np.log(places[late]), np.log(gaps[late]), 1)[0])
    return pd.Series(found)


def hinged(runs: Runs, key: str) -> float:
    """Lower bound on the epsilon of a node alone, with the noise and the constants of a private protocol's runs."""
    given = runs.manifests(key)[0]["scenario"]["protocols"][key]
    budget, rounds = given["privacy"]["budget"], given["privacy"]["updates"]
    rows = int(runs.collection.agents["samples"].max())
    scale = theorem_1_scale(rows, rounds, budget["epsilon"], budget["delta"])
    return hinged_row(rows, rounds, scale, budget["delta"], mu=given["mu"], gamma=given["gamma"])
