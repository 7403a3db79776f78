"""Functions that the claims of single papers call by name: small problems, attacks, and what their runs need."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ...protocols.privacy.budget import Privacy
from . import bellet2018_problems, hu2019_problems, liu2022_problems, two_agents, zhang2018_problems
from . import reproduction_attacks as attacks
from .reproduction_runs import Point, Runs, jackknife


def privacy_of(runs: Runs, key: str, at: Point | None = None) -> Privacy:
    """What a private protocol's runs were given, by their manifests."""
    manifest = runs.manifests(key, at)[0]
    return Privacy.model_validate(manifest["scenario"]["protocols"][key]["privacy"])


def rows_of(runs: Runs, key: str) -> float:
    """How many rows the median agent has."""
    agents = runs.collection.agents
    return float(agents.loc[agents["protocol"] == key, "samples"].median())


def few_noise(runs: Runs, key: str) -> float:
    """Scale of the Laplace noise on a coordinate of the median agent's gradient at the fewest updates swept."""
    fewest_updates = {**runs.point, "T": min(runs.values("T"))}
    return bellet2018_problems.laplace_scale(privacy_of(runs, key, fewest_updates), rows_of(runs, key))


def divisor(runs: Runs, more: str, less: str) -> float:
    """Return by how much the noise of a protocol is smaller than that of another one."""
    return privacy_of(runs, more).lipschitz / privacy_of(runs, less).lipschitz


def turned_corner(runs: Runs, key: str) -> float:
    """Lower bound on epsilon by an attack on the label of a corner of the cube, see `attacks.turned_corner`."""
    return attacks.turned_corner(privacy_of(runs, key), runs.manifests(key)[0]["task"]["dimension"])


def linear_fit(runs: Runs, key: str, level_of: str, axis: str) -> Any:
    """R^2 of a straight line through the places where a level is met, against the number of agents, by jackknife.

    Parameters
    ----------
    runs : Runs
    key, level_of : str
        The protocol, and the one whose final accuracy the level is 90 % of.
    axis : str
    """
    sizes, met = runs.values("task.agents"), {}
    for agents in sizes:
        runs.point["task.agents"] = agents
        met[agents] = runs.first(0.9 * runs.final(level_of, "accuracy"), key, "accuracy", axis)
    runs.point.pop("task.agents")

    def fit(rows: Any) -> float:
        needed = rows.mean().to_numpy()
        known = np.isfinite(needed).all() and np.ptp(needed) > 0
        return float(np.corrcoef(sizes, needed)[0, 1] ** 2) if known else math.nan

    return jackknife(fit, pd.DataFrame(met))


def pure_epsilon(runs: Runs, key: str) -> float:
    """Verified epsilon of the worst run at delta = 0, by what its ledger counted."""
    return max(map(zhang2018_problems.pure_epsilon, runs.ledgers(key)))


def sizes(runs: Runs, key: str) -> list[float]:
    """Numbers of rows of the agents, the fewest first."""
    agents = runs.collection.agents
    return sorted(agents.loc[agents["protocol"] == key, "samples"].unique().tolist())


def bounds(runs: Runs, key: str) -> list[float]:
    """The agents' claimed epsilons, that of the one with the fewest rows first."""
    agents = runs.collection.agents
    table = agents[agents["protocol"] == key].groupby("agent")[["samples", "epsilon_claimed"]].max()
    return table.sort_values("samples")["epsilon_claimed"].tolist()


def promised(runs: Runs) -> list[str]:
    """Keys of the runs with printed noise of which a finite epsilon is claimed, the largest first."""
    given = runs.collection.manifests[0]["scenario"]["protocols"]
    claimed = {key: runs.epsilon("claimed", key) for key, entry in given.items() if entry.get("noise")}
    return sorted((key for key in claimed if math.isfinite(claimed[key])), key=claimed.__getitem__, reverse=True)


def _by_name(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {function.__name__: function for function in functions}


COMPUTED: dict[str, Any] = {
    "DRAWS": attacks.DRAWS,
    "LEVEL": attacks.LEVEL,
    "NODES": attacks.NODES,
    "UPDATES": bellet2018_problems.UPDATES,
    "ITERATIONS": hu2019_problems.ITERATIONS,
    "MESSAGES": hu2019_problems.DRAWS,
    "RHO": hu2019_problems.RHO,
    "RIDGE": hu2019_problems.RIDGE,
    "SLOPE": hu2019_problems.SLOPE,
    "C": two_agents.contraction(),
    **_by_name(attacks.drawn_row, attacks.theorem_1_scale, liu2022_problems.subsampled, two_agents.allocated_excess),
    **_by_name(bellet2018_problems.largest_gradient, bellet2018_problems.gaussian_step, bellet2018_problems.shrinking),
    **_by_name(bellet2018_problems.excess_over_bound, hu2019_problems.jacobi, hu2019_problems.largest_change),
    **_by_name(hu2019_problems.told_apart, zhang2018_problems.contraction, zhang2018_problems.recovered),
}
"""Names that need no runs."""

ABOUT_RUNS = {
    **_by_name(rows_of, few_noise, divisor, turned_corner, linear_fit, pure_epsilon, sizes, bounds, promised),
    **_by_name(liu2022_problems.second_value, liu2022_problems.bound_7, liu2022_problems.over_bound),
    **_by_name(liu2022_problems.slope, liu2022_problems.hinged),
}
"""Functions of a figure's `Runs`, which they are given first."""
