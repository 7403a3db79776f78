"""Curves, sweeps, final values by size of data, and bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...agents.errors import InputError
from ..analysis.aggregate import series
from ..analysis.labels import shown
from ..analysis.results import Collection
from ..analysis.targets import describe, levels, per_run, target_of
from ..language.figure_parameters import TO_TARGET
from ..storage.files import Frame
from .axis_ends import BREAK, BrokenAxis, include, show
from .figure_words import Label, axis_label, series_label, split_label, value_label
from .numbers import Plot, Spec
from .series_style import SeriesStyle, series_styles, tick_places
from .series_style import points as size_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Panels = Sequence[tuple[Any, Plot]]
"""(axes, numbers) of every panel."""

Entries = dict[Label | str, Any]
"""Handles of a legend by their label."""

DODGE = 1.2
"""Points between the intervals of two series at one place of a sweep."""

DEEPEST = 1e-3
"""How far single runs may take a logarithmic axis below the smallest mean."""

ROOM = 0.08
"""Share of a sweep's width that is left free on either side, so that the outermost intervals are seen."""


def draw(panels: Panels, collection: Collection, spec: Spec) -> Entries:
    """Draw lines or bars into their panels and return what the legend says."""
    order = list(collection.labels)
    found = {key: plot.splits for _, plot in panels for key, _ in series(plot.points, order, plot.splits)}
    # Where every panel has one protocol, which its title names, the series stand for what was swept alone.
    swept_only = spec.get("facet") == "protocol" and all(found.values())
    keys = list(dict.fromkeys((order[0], *key[1:]) if swept_only else key for key in found))
    drawn_as = dict(zip(keys, series_styles(keys, order), strict=True))
    handles: dict[Any, Any] = {}
    for rank, (axes, plot) in enumerate(panels):
        shared = [other for other, at in panels if _same(at, plot)]
        for key, points in series(plot.points.assign(low=plot.ends[:, 0], high=plot.ends[:, 1]), order, plot.splits):
            look = drawn_as[(order[0], *key[1:]) if swept_only else key]
            said = (
                Label(split_label(collection, key, plot.splits))
                if swept_only
                else series_label(collection, key, plot.splits)
            )
            if plot.kind == "curve" and plot.statistic == "gap" and not spec.get("baseline"):
                _mark_disagreement(axes, points, look)
            aside = DODGE * (look.place - (len(keys) - 1) / 2)
            handles[said] = _draw_series(axes, plot, points, look, aside=aside, log=str(spec.get("log") or "none"))
        _ticks(axes, plot)
        if axes is shared[-1]:
            _scales(shared, [at for _, at in panels[: rank + 1]], str(spec.get("log") or "none"))
            if spec.get("wins"):
                show(axes, np.array([0.0, 1.0]))
        axes.set_xlabel(axis_label(collection, plot.x))
        said = {"baseline": spec.get("baseline"), "wins": bool(spec.get("wins"))}
        axes.set_ylabel(value_label(collection, plot.metric, plot.statistic, **said))
    return handles | (_targets(panels, collection) if spec.get("target") else {})


DISAGREEMENT = "\N{WHITE DOWN-POINTING TRIANGLE} below the minimum: models differ"
DIGITS = 1e-14
"""Share of the largest gap below which a logarithmic axis would show rounding."""
ROUNDING = 1e-9
"""Share of the largest gap below which one that is negative counts as 0."""


def _above_rounding(points: Frame, runs: Frame, plot: Plot) -> tuple[Frame, Frame]:
    """A gap without what is nothing but rounding of the two numbers that it is the difference of."""
    means = np.abs(plot.points["mean"].to_numpy(np.float64))
    least = DIGITS * means[np.isfinite(means)].max(initial=0.0)
    seen = points["mean"] > least
    shown = points.assign(**{name: points[name].where(seen) for name in ("mean", "low", "high")})
    return shown, runs.where(runs > least)


def _draw_series(axes: Axes, plot: Plot, points: Frame, look: SeriesStyle, *, aside: float, log: str) -> Any:
    """Draw one series; points of a sweep lie so many points aside of their place."""
    runs = plot.singled(points.index)
    if plot.kind == "curve" and plot.statistic == "gap" and log in ("y", "both"):
        points, runs = _above_rounding(points, runs, plot)
    if plot.kind == "bars":
        return _bar(axes, points, look, runs)
    if plot.kind == "curve":
        return _curve(axes, points, look, runs, alone=len(points) == 1 and len(plot.points) > 1)
    positions = _positions(plot)
    points = points.assign(x=[positions.get(x, x) for x in points["x"]])
    return _finals(axes, points, look, runs, aside=aside)


def _ticks(axes: Axes, plot: Plot) -> None:
    """Places on the x axis that are no numbers."""
    if plot.kind == "bars":
        axes.set_xticks([])
        if (plot.extent < 0).any():
            axes.axhline(0, color="#555555", linewidth=0.6)
    elif positions := _positions(plot):
        tick_places(axes, list(positions.values()), [shown(name) for name in positions])


def _positions(plot: Plot) -> dict[Any, int]:
    """Places of the values of a swept parameter that are not numbers."""
    x = plot.points["x"]
    if plot.kind != "sweep" or (pd.api.types.is_numeric_dtype(x) and not pd.api.types.is_bool_dtype(x)):
        return {}
    return {value: place for place, value in enumerate(dict.fromkeys(x))}


def _curve(axes: Axes, points: Frame, look: SeriesStyle, runs: Frame, *, alone: bool) -> Any:
    """A line with its band or its runs; a series that never moves along x (nothing was sent) is a level across."""
    if alone:
        for level in runs.to_numpy(np.float64)[0]:
            axes.axhline(level, **look.thin, markevery=[])
        low, mean, high = (float(points[name].iloc[0]) for name in ("low", "mean", "high"))
        if np.isfinite(high):
            axes.axhspan(low, high, color=look.colour, alpha=0.18, linewidth=0)
        if np.isfinite(mean):
            return _level_across(axes, mean, look)
    x, mean = points["x"].to_numpy(np.float64), points["mean"].to_numpy(np.float64)
    if points["low"].notna().any():
        axes.fill_between(x, points["low"], points["high"], color=look.colour, alpha=0.18, linewidth=0)
    step = max(1, len(points) // 7)
    every = (look.place * max(1, step // 4) % step, step)
    for values in runs.to_numpy(np.float64).T:
        known = np.isfinite(values)
        axes.plot(x[known], values[known], **look.thin, markevery=every, scaley=False)
    style = {"color": look.colour, "linestyle": look.line, "marker": look.marker, "markevery": every}
    (line,) = axes.plot(x, mean, **style)
    mark_beyond(axes, x[np.isposinf(mean)], look)
    return line


def height_of(place: int) -> float:
    """Height, as a share of the panel, at which the series of this place marks what is infinite."""
    return 1 - BREAK / (1 + BREAK) * (0.25 + 0.5 * (place % 4) / 3)


def mark_beyond(axes: Axes, x: Any, look: SeriesStyle) -> None:
    """Open marks above the axis, each series at a height of its own."""
    if len(x):
        style = {"color": look.colour, "linestyle": look.line, "marker": look.marker, "linewidth": 0.8}
        height = np.full(len(x), height_of(look.place))
        axes.plot(x, height, transform=axes.get_xaxis_transform(), markerfacecolor="white", clip_on=False, **style)


LEVEL_MARKS = 6
"""Marks on a level across a panel."""


def _level_across(axes: Axes, level: float, look: SeriesStyle) -> Any:
    """A level from one side of a panel to the other, with marks at shares of its width that are those of its series."""
    inside = (np.arange(LEVEL_MARKS) + 0.1 + 0.8 * (look.place % 8) / 7) / LEVEL_MARKS
    x = np.concatenate([[0.0], inside, [1.0]])
    style = {"color": look.colour, "linestyle": look.line, "marker": look.marker, "markevery": slice(1, -1)}
    (line,) = axes.plot(x, np.full(len(x), level), transform=axes.get_yaxis_transform(), **style)
    return line


def _mark_disagreement(axes: Axes, points: Frame, look: SeriesStyle) -> None:
    """Open triangles at the lower edge where a mean gap is below 0, which it is only while agents' models differ.

    The minimum of what agents have to agree on bounds models that do (`Objective.minimum_over`), and a logarithmic axis
    would not show such places at all.
    """
    mean = points["mean"].to_numpy(np.float64)
    largest = np.abs(mean[np.isfinite(mean)]).max(initial=0.0)
    below = np.flatnonzero(mean < -ROUNDING * largest)
    if not len(below):
        return
    below = below[:: max(1, len(below) // 12)]
    style = {"linestyle": "none", "marker": "v", "markersize": 3.5, "markerfacecolor": "white"}
    edge, inside = axes.get_xaxis_transform(), 0.03 + 0.03 * look.place
    x = points["x"].to_numpy(np.float64)[below]
    axes.plot(x, np.full(len(x), inside), transform=edge, markeredgecolor=look.colour, zorder=3, **style)
    if not any(text.get_text() == DISAGREEMENT for text in axes.texts):
        axes.text(0.98, 0.97, DISAGREEMENT, transform=axes.transAxes, fontsize=size_of(5), va="top", ha="right")


def _finals(axes: Axes, points: Frame, look: SeriesStyle, runs: Frame, *, aside: float) -> Any:
    """A line through the places of a sweep; with intervals a little aside, so that those of several series are seen."""
    from matplotlib.transforms import ScaledTranslation

    x, mean = points["x"].to_numpy(np.float64), points["mean"].to_numpy(np.float64)
    known = _half_widths(points)
    style = {"color": look.colour, "linestyle": look.line, "marker": look.marker}
    handle = axes.errorbar(x, np.where(np.isfinite(mean), mean, np.nan), yerr=known, capsize=2, elinewidth=0.8, **style)
    thin = axes.plot(x, np.where(np.isfinite(runs), runs, np.nan), **look.thin)
    if known is not None or thin:
        line, caps, bars = handle
        moved = axes.transData + ScaledTranslation(aside / 72, 0, axes.figure.dpi_scale_trans)
        for artist in (line, *caps, *bars, *thin):
            artist.set_transform(moved)
    beyond = np.isposinf(mean)
    mark_beyond(axes, x[beyond], look)
    if "reached" in points:
        height = height_of(look.place)
        for place, reached, n in points.loc[beyond, ["x", "reached", "n"]].itertuples(index=False):
            if reached:
                text = {
                    "xytext": (4, 0),
                    "textcoords": "offset points",
                    "ha": "left",
                    "va": "center",
                    "fontsize": size_of(5),
                }
                axes.annotate(f"{reached}/{n}", (place, height), xycoords=axes.get_xaxis_transform(), **text)
    return handle


def _half_widths(points: Frame) -> Any:
    """(2, k) widths of the intervals below and above the means; None where there are none."""
    halves = np.array([points["mean"] - points["low"], points["high"] - points["mean"]], dtype=np.float64)
    return halves if np.isfinite(halves).any() else None


def _bar(axes: Axes, points: Frame, look: SeriesStyle, runs: Frame) -> Any:
    mean, known = float(points["mean"].iloc[0]), _half_widths(points)
    style: dict[str, Any] = {"color": look.colour, "edgecolor": "white", "hatch": look.hatch}
    if np.isposinf(mean):
        mark_beyond(axes, np.array([float(look.place)]), look)
    height = mean if np.isfinite(mean) else 0.0
    values = runs.to_numpy(np.float64).ravel()
    places = look.place + 0.4 * (np.arange(len(values)) - (len(values) - 1) / 2) / max(len(values), 1)
    dots = {"linestyle": "none", "markersize": 2.5, "markeredgewidth": 0.4, "markeredgecolor": "white", "zorder": 3}
    axes.plot(places, np.where(np.isfinite(values), values, np.nan), marker="o", color="black", **dots)
    return axes.bar([look.place], [height], width=0.7, yerr=known, capsize=2, error_kw={"elinewidth": 0.8}, **style)


def _same(one: Plot, other: Plot) -> bool:
    """True if two panels share a y axis."""
    return (one.metric, one.statistic) == (other.metric, other.statistic)


def _scales(shared: Sequence[Axes], plots: Sequence[Plot], log: str) -> None:
    """Axes show what runs came to; logarithmic ones what of it is positive."""
    plot, axes = plots[-1], shared[0]
    points: Frame = pd.concat([other.points for other in plots if _same(other, plot)], ignore_index=True)
    finite = points[np.isfinite(points["mean"])]
    ends = np.concatenate([other.extent for other in plots if _same(other, plot)])
    if log in ("y", "both") and (finite["mean"] > 0).any():
        axes.set_yscale("log", nonpositive="clip")
        means = finite["mean"][finite["mean"] > (DIGITS * finite["mean"].max() if plot.statistic == "gap" else 0)]
        ends = ends[ends > DEEPEST * means.min()]
        ends = ends[ends > DIGITS * finite["mean"].max()] if plot.statistic == "gap" else ends
        show(axes, ends[np.isfinite(ends)])
    else:
        show(axes, np.append(ends[np.isfinite(ends)], [0.0] if plot.kind == "bars" else []))
    numeric = plot.kind != "bars" and not _positions(plot)
    if plot.kind == "sweep":
        axes.margins(x=ROOM)
    if log in ("x", "both") and numeric and (points["x"] > 0).any():
        positive = points["x"][points["x"] > 0]
        axes.set_xscale("log", nonpositive="mask")
        ratio = positive.max() / positive.min()
        room = ratio**ROOM if plot.kind == "sweep" and ratio > 1 else 1.1
        axes.set_xlim(positive.min() / room, positive.max() * room)
        if plot.kind == "sweep":
            swept = sorted(set(positive))
            tick_places(axes, swept, [f"{value:.3g}" for value in swept])
    if np.isposinf(points["mean"]).any():
        word = "never" if plot.metric in TO_TARGET else "\N{INFINITY}"
        logarithmic, known = axes.get_yscale() == "log", len(finite) > 0
        broken = BrokenAxis(*axes.get_ylim(), log=logarithmic, infinite=word, known=known)
        for each in shared:
            broken.finish(each, "y")


def _targets(panels: Panels, collection: Collection) -> Entries:
    target = target_of(collection)
    entries: Entries = {}
    for axes, plot in panels:
        level = _level(collection, target, plot)
        if level is not None:
            line = axes.axhline(level, color="black", linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=1.5)
            entries[f"target: {describe(target)}"] = line
            include(axes, level)
    if not entries:
        complaint = f"figures: no panel shows what the target is about, {describe(target)}; leave out target"
        raise InputError(complaint, field=("figures",))
    return entries


def _level(collection: Collection, target: Any, plot: Plot) -> float | None:
    """Mean of what is asked of the runs of a panel; None where it shows something else."""
    asks_a_share = target.get("level") is None
    if target["metric"] != plot.metric or (asks_a_share and plot.metric == "objective" and plot.statistic != "gap"):
        return None
    asked, table = levels(collection, target), per_run(collection)
    shown = table["protocol"].isin(plot.points["protocol"])
    return float(asked.reindex(table.loc[shown, "run"]).mean())
