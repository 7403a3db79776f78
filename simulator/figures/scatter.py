"""Scatter plot of each agent's gain over a baseline against its contribution: one mark per agent and seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..analysis.aggregate import series
from ..analysis.results import Collection
from .figure_words import axis_label, series_label, value_label
from .lines import Entries, Panels
from .numbers import Plot, Spec, chosen, minus_baseline, require_points, with_baseline
from .series import agent_column, size_classes
from .series_style import series_styles


def numbers(collection: Collection, spec: Spec) -> Plot:
    """One row per agent, seed and protocol: ``x, protocol, agent, seed, value, class_x, class_mean`` and one per split.

    The value is the agent's own metric less that of the same agent in the baseline's run of the same seed, the class
    has about a sixth of all.
    """
    metric, x, protocols = agent_column(collection, str(spec["y"])), str(spec["x"]), chosen(collection, spec)
    agents = collection.agents[collection.agents["run"].isin(collection.complete)]
    agents = agents.assign(
        value=agents[metric], x=agents[x].astype(np.float64), seed=agents["run"].map(collection.seeds)
    )
    gains = minus_baseline(with_baseline(collection, agents, spec, ["seed", "agent", *collection.grid]))
    gains = gains[gains["protocol"].isin(protocols) & gains["value"].notna()]
    require_points(gains, metric, [key for key in protocols if key != spec["baseline"]])
    splits = [path for path in collection.grid if gains[path].nunique(dropna=False) > 1]
    classes, centres = size_classes(gains["x"].to_numpy(np.float64))
    gains = gains.assign(class_x=centres[classes])
    means = gains.groupby(["protocol", *splits, "class_x"], sort=False, dropna=False)["value"].transform("mean")
    columns = ["x", "protocol", "agent", "seed", "value", "class_x", "class_mean", *splits]
    points = gains.assign(class_mean=means)[columns].reset_index(drop=True)
    return Plot("scatter", x, metric, "", splits, points, note="one mark per agent and seed; lines: means of classes")


def draw(panels: Panels, collection: Collection, spec: Spec) -> Entries:
    """Draw all panels on common axes."""
    order = list(collection.labels)
    found = {key: plot.splits for _, plot in panels for key, _ in series(plot.points, order, plot.splits)}
    drawn_as = dict(zip(found, series_styles(list(found), order), strict=True))
    entries: Entries = {}
    for axes, plot in panels:
        axes.axhline(0, color="#555555", linewidth=0.6)
        for key, points in series(plot.points, order, plot.splits):
            look = drawn_as[key]
            finite = points[np.isfinite(points["value"])]
            faint: dict[str, Any] = {"alpha": 0.5, "markersize": 2.5, "markeredgewidth": 0, "zorder": 1.5}
            axes.plot(finite["x"], finite["value"], look.marker, color=look.colour, **faint)
            means = points.drop_duplicates("class_x").sort_values("class_x")
            style = {"color": look.colour, "linestyle": look.line, "marker": look.marker, "markeredgecolor": "white"}
            (line,) = axes.plot(means["class_x"], means["class_mean"], markeredgewidth=0.4, **style)
            entries[series_label(collection, key, plot.splits)] = line
        if str(spec.get("log")) in ("x", "both") and (plot.points["x"] > 0).any():
            axes.set_xscale("log")
        axes.set_xlabel(axis_label(collection, plot.x))
        axes.set_ylabel(value_label(collection, plot.metric, "", baseline=str(spec["baseline"])))
    return entries
