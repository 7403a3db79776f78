"""Number that decides about figure 5 of Vanhaesebrouck, Bellet and Tommasi (2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .reproduction_runs import Runs, jackknife


def linear_fit(runs: Runs, key: str, level_of: str, axis: str) -> Any:
    """R^2 of a straight line through the places on an axis where a level is met, against the number of agents.

    The level is 90 % of the final accuracy of another protocol. By seed, as the jackknife's pseudo-values.
    """
    sizes, met = runs.values("task.agents"), {}
    for agents in sizes:
        runs.point["task.agents"] = agents
        met[agents] = runs.first(0.9 * runs.final(level_of, "accuracy"), key, "accuracy", axis)
    runs.point.pop("task.agents")

    def fit(rows: Any) -> float:
        needed = rows.mean().to_numpy()
        known = np.isfinite(needed).all() and np.ptp(needed) > 0
        return float(np.corrcoef(sizes, needed)[0, 1] ** 2) if known else np.nan

    return jackknife(fit, pd.DataFrame(met))
