"""Number that decides about figure 5 of Vanhaesebrouck, Bellet and Tommasi (2017)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..analysis.targets import reached
from .reproduction_runs import Runs, jackknife


def linear_fit(runs: Runs, key: str, level_of: str, axis: str) -> Any:
    """R^2 of a straight line through the places on an axis where a level is met, against the number of agents.

    The level is 90 % of the final accuracy of another protocol. By seed, as the jackknife's pseudo-values.
    """
    places = reached(runs.collection, {"metric": "accuracy", "share": 0.9, "of": level_of}, axis)
    table = places[places["protocol"] == key].pivot(index="seed", columns="task.agents", values="value")

    def fit(rows: Any) -> float:
        needed = rows.mean().to_numpy()
        known = np.isfinite(needed).all() and np.ptp(needed) > 0
        return float(np.corrcoef(table.columns, needed)[0, 1] ** 2) if known else np.nan

    return jackknife(fit, table)
