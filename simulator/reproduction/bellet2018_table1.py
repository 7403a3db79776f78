"""Table 1 of Bellet, Guerraoui, Taziki and Tommasi (2018), and what it leaves open: updates, and item features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ...protocols.privacy.budget import Privacy
from ...protocols.privacy.plans import plan
from ..analysis.apart import set_apart
from ..analysis.baselines import baselines
from .bellet2018_claims import privacy_of
from .claims import Claim, Finding, measured
from .comparisons import ahead
from .runs import Point, Runs

FIGURE = "bellet2018-table1-updates"

PRINTED_RMSE = {"local": 1.2834, "cd": 0.9502, "eps-1": 0.9527, "eps-0-5": 0.9545, "eps-0-1": 0.9855}
"""Table 1."""

MARGIN_RMSE = 0.02

USER = "user's mean"
"""What predicts without a model, as manifests call it."""


BUDGETS = {"eps-1": 1.0, "eps-0-5": 0.5, "eps-0-1": 0.1}
"""Epsilons of the private rows, by key."""


def users_mean(runs: Runs) -> str:
    """What predicting every user's mean comes to, in words, where it was recorded."""
    found = baselines(set_apart(runs.collection), "rmse")
    if USER not in found:
        return f"the {USER}, which needs no model, is not known of these runs"
    mean = float(found[USER].mean())
    return f"the {USER}, which needs no model, has {mean:.4f}"


def table_1(runs: Runs) -> Finding:
    """The printed per-user test errors."""
    numbers = [
        measured(f"RMSE of {key}", runs.final(key, "rmse"), near=(printed, MARGIN_RMSE))
        for key, printed in PRINTED_RMSE.items()
    ]
    local = runs.final("local", "rmse").mean()
    why = (
        f"The error of local models ({local:.3f} here, {PRINTED_RMSE['local']} in the paper) depends wholly on how "
        "the item features are regularised and scaled, which the paper leaves open."
    )
    return Finding(tuple(numbers), why)


def some_reading(runs: Runs) -> Finding:
    """Local and collaborative errors under every reading of how item features are made, beside the printed ones."""
    numbers = []
    for regularisation in runs.values("task.als_regularisation"):
        for scaling in runs.values("task.feature_scaling"):
            point = {"task.als_regularisation": regularisation, "task.feature_scaling": scaling}
            setting = f"lambda {regularisation:g}, scaling {scaling}"
            for key in ("local", "cd"):
                ends = runs.final(key, "rmse", point=point)
                number = measured(f"RMSE of {key}, {setting}", ends, near=(PRINTED_RMSE[key], MARGIN_RMSE))
                numbers.append(replace(number, setting=setting))
    return Finding(tuple(numbers), f"Beside them {users_mean(runs)}.")


def table_1_order(runs: Runs) -> Finding:
    """Collaboration beats local models, privately too."""
    numbers = []
    for key in PRINTED_RMSE:
        if key != "local":
            lead = ahead(runs, key, "local", "rmse", higher_is_better=False)
            numbers.append(measured(f"RMSE of local above that of {key}", lead, above=0))
    return Finding(
        tuple(numbers),
        "Local models are better here than in the paper (see the row above), which leaves less to gain; the paper "
        "prints no intervals.",
    )


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
        why = (
            f"Of T = {counts} each reading shows the one whose error is nearest to the printed one, chosen on these "
            "very seeds, and each row of the table by itself: no reading is asked for all of them. The smallest is "
            f"{ends[best].mean():.4f} ({best}{edge}); {users_mean(runs)}."
        )
        why = f"{why} {noise_of_row(runs, key)}"
        return Finding(tuple(numbers), why)

    text = (
        f"Table 1's private error at a budget of {BUDGETS[key]:g} is reached with some number T of updates under some "
        "reading."
    )
    return Claim(FIGURE, text, check, "exists a setting")


def noise_of_row(runs: Runs, key: str) -> str:
    """How large the noise of the fewest and of the most updates is beside a clipped gradient, by manifests."""
    counts = runs.values("T")
    agents = runs.collection.agents
    rows = float(agents.loc[agents["protocol"] == key, "samples"].median())
    reading = runs.values("reading")[0]
    told = _scales(runs, key, rows, ({"reading": reading, "T": updates} for updates in (counts[0], counts[-1])))
    clip = privacy_of(runs, key, {"reading": reading, "T": counts[0]}).clip
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
    found = [privacy_of(runs, key, point) for point in points]
    return [f"{noise_scale(privacy, rows):.2g} (T = {privacy.updates})" for privacy in found]


def errors_over_updates(runs: Runs) -> list[list[str]]:
    """Rows of a table: mean errors by budget, reading and T, the printed ones, and the user's mean at the end."""
    counts = runs.values("T")
    rows = [["budget", "reading", *(f"T = {count}" for count in counts), "printed"]]
    for key, budget in BUDGETS.items():
        for reading in runs.values("reading"):
            ends = [runs.final(key, "rmse", point={"reading": reading, "T": count}).mean() for count in counts]
            rows.append([f"{budget:g}", str(reading), *(f"{end:.4f}" for end in ends), f"{PRINTED_RMSE[key]:g}"])
    found = baselines(set_apart(runs.collection), "rmse")
    known = f"{found[USER].mean():.4f}" if USER in found else "not known"
    return [*rows, ["none", USER, *[known] * len(counts), ""]]


CLAIMS = (
    Claim("bellet2018-table1", "The printed errors.", table_1, "all of these parts"),
    Claim(
        "bellet2018-table1-readings",
        "Some reading of the item features gives the printed errors of local and collaborative models.",
        some_reading,
        "exists a setting",
    ),
    Claim("bellet2018-table1", "All collaborative models beat the purely local ones.", table_1_order, "for all"),
    *map(private_row, BUDGETS),
)
