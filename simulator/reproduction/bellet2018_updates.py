"""Table 1 of Bellet, Guerraoui, Taziki and Tommasi (2018) against what it leaves open: updates, and item features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ...protocols.privacy.budget import Privacy
from ...protocols.privacy.plans import plan
from ..analysis.apart import set_apart
from ..analysis.baselines import baselines
from .bellet2018_claims import MARGIN_RMSE, PRINTED_RMSE
from .claims import Claim, Finding, measured
from .runs import Point, Runs

FIGURE = "bellet2018-table1-updates"

BUDGETS = {"eps-1": 1.0, "eps-0-5": 0.5, "eps-0-1": 0.1}
"""Epsilons of the private rows, by key."""


def private_row(key: str) -> Claim:
    """The printed error of a private row, at some number of updates under some reading."""

    def check(runs: Runs) -> Finding:
        ends, numbers, printed = {}, [], PRINTED_RMSE[key]
        for reading in runs.values("reading"):
            tried = {
                f"{reading}, T = {updates}": runs.final(key, "rmse", point={"reading": reading, "T": updates})
                for updates in runs.values("T")
            }
            nearest = min(tried, key=lambda setting: abs(float(tried[setting].mean()) - printed))
            number = measured(f"RMSE, {nearest}, the nearest", tried[nearest], near=(printed, MARGIN_RMSE))
            numbers.append(replace(number, setting=nearest))
            ends |= tried
        best = min(ends, key=lambda setting: float(ends[setting].mean()))
        edge = ", the most updates that were tried" if best.endswith(f" = {max(runs.values('T'))}") else ""
        counts = ", ".join(map(str, runs.values("T")))
        why = f"Of T = {counts} each reading shows the one whose error is nearest to the printed one. "
        why += (
            f"The smallest is {ends[best].mean():.4f} ({best}{edge}), chosen on these very seeds; {users_mean(runs)}."
        )
        why = f"{why} {noise_of_row(runs, key)}"
        return Finding(tuple(numbers), why)

    text = f"Table 1's private error at a budget of {BUDGETS[key]:g} is reached with some number T of updates."
    return Claim(FIGURE, text, check, "exists a setting")


def users_mean(runs: Runs) -> str:
    """What predicting every user's mean comes to, in words, where it was recorded."""
    found = baselines(set_apart(runs.collection), "rmse")
    if "user's mean" not in found:
        return "the user's mean, which needs no model, is not known of these runs"
    mean = float(found["user's mean"].mean())
    return f"the user's mean, which needs no model, has {mean:.4f}"


def noise_of_row(runs: Runs, key: str) -> str:
    """How large the noise of the fewest and of the most updates is beside a clipped gradient, by manifests."""
    counts = runs.values("T")
    agents = runs.collection.agents
    rows = float(agents.loc[agents["protocol"] == key, "samples"].median())
    reading = runs.values("reading")[0]
    told = _scales(runs, key, rows, ({"reading": reading, "T": updates} for updates in (counts[0], counts[-1])))
    clip = _privacy(runs, key, {"reading": reading, "T": counts[0]}).clip
    return (
        f"A user with {rows:g} ratings (the median) adds Laplace noise of scale {' and '.join(told)} to each "
        f"coordinate of a gradient whose coordinates have absolute values that sum to at most {clip:g}."
    )


def noise_scale(privacy: Privacy, rows: float) -> float:
    """Scale of the Laplace noise on the mean of clipped gradients.

    Parameters
    ----------
    privacy : Privacy
        With a budget, updates and a clip.
    rows : float
        How many rows the mean is over, > 0.
    """
    if privacy.updates is None or privacy.clip is None:
        raise ValueError("the noise of a row needs updates and a clip")
    shares = np.full(privacy.updates, 1 / privacy.updates)
    return 2 * privacy.clip * float(np.median(plan(privacy, shares).multipliers)) / rows


def _scales(runs: Runs, key: str, rows: float, points: Iterable[Point]) -> list[str]:
    found = [_privacy(runs, key, point) for point in points]
    return [f"{noise_scale(privacy, rows):.2g} (T = {privacy.updates})" for privacy in found]


def _privacy(runs: Runs, key: str, point: Point) -> Privacy:
    return Privacy.model_validate(runs.manifests(key, point)[0]["scenario"]["protocols"][key]["privacy"])


CLAIMS_OVER_UPDATES = tuple(map(private_row, BUDGETS))
