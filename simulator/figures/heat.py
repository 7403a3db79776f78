"""Heat maps over two swept parameters: final values, what it took to the target, or differences from a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...agents.errors import InputError
from ..analysis.labels import named, short, shown
from ..analysis.results import Collection
from ..storage.files import Frame
from .figure_words import value_label
from .intervals import FEW as FEWEST_RUNS
from .intervals import interval
from .lines import Entries, Panels
from .numbers import Plot, Spec, chosen, finals, level_of, require_points, swept, within_of
from .series_style import DIVERGING, SEQUENTIAL, ink_on, literal
from .series_style import points as size_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 64
"""Cells of a panel up to which each carries its number."""


def numbers(collection: Collection, spec: Spec) -> Plot:
    """One value per cell, in columns ``x, row, protocol, mean, low, high, n``; a cell without runs is left out."""
    x, row = swept(collection, str(spec["x"])), swept(collection, str(spec["rows"]), field="rows")
    protocols, level = chosen(collection, spec), level_of(spec.get("interval", "95%"))
    metric, statistic, values = finals(collection, spec)
    values = values[values["protocol"].isin(protocols)].dropna(subset=[x, row])
    require_points(values, metric, protocols)
    _require_cells(collection, values, [x, row])
    rows: list[dict[str, Any]] = []
    within = within_of(metric, statistic, spec)
    for (protocol, at_x, at_row), group in values.groupby(["protocol", x, row], sort=False):
        found = interval(group["value"], within, level)
        rows.append({"x": at_x, "row": at_row, "protocol": protocol, **found._asdict()})
    points = pd.DataFrame(rows)
    order = [_order(collection, path, points[column]) for path, column in ((x, "x"), (row, "row"))]
    ranks = pd.DataFrame({c: points[c].map(o.index) for c, o in zip(("row", "x"), reversed(order), strict=True)})
    points = points.loc[ranks.sort_values(["row", "x"], kind="stable").index].reset_index(drop=True)
    return Plot("heat", x, metric, statistic, [row], points, within=within)


def draw(panels: Panels, collection: Collection, spec: Spec) -> Entries:
    """Draw maps with common colours and one bar that explains them."""
    points = pd.concat([plot.points for _, plot in panels], ignore_index=True)
    norm, colours = colours_of(points["mean"], spec)
    for axes, plot in panels:
        _draw_map(axes, plot, collection, norm, colours, difference=spec.get("baseline") is not None)
    plot = panels[0][1]
    label = value_label(collection, plot.metric, plot.statistic, baseline=spec.get("baseline"))
    put_bar([axes for axes, _ in panels], norm, colours, label)
    return {}


def put_bar(panels: Sequence[Axes], norm: Any, colours: Any, label: str) -> None:
    """Put the bar below some panels that explains their colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    bar = panels[0].figure.colorbar(
        ScalarMappable(norm, colours),
        ax=list(panels),
        location="bottom",
        aspect=30 * len(panels) ** 0.5,
        shrink=0.9 if len(panels) == 1 else 0.6,
        pad=0.03,
    )
    if isinstance(norm, LogNorm):
        ticks = np.geomspace(float(norm.vmin or 0), float(norm.vmax or 1), 5)
        bar.set_ticks(ticks.tolist(), labels=[_number(tick) for tick in ticks])
        bar.minorticks_off()
    bar.set_label(label)
    bar.outline.set_linewidth(0.4)  # type: ignore[operator]  # a Spine, annotated as a function


def _require_cells(collection: Collection, values: Frame, axes: list[str]) -> None:
    """Refuse to average over what else was swept."""
    for protocol, group in values.groupby("protocol", sort=False):
        further = [path for path in collection.grid if path not in axes and group[path].nunique(dropna=False) > 1]
        if further:
            label, names = collection.labels[protocol], ", ".join(further)
            sentence = f"figures: the cells of {label} also differ in {names}; choose a value with at, or use facet"
            raise InputError(sentence, field=("figures",))


def _order(collection: Collection, path: str, found: Any) -> list[Any]:
    """Values in order: numbers by size, others as they were swept."""
    values = list(dict.fromkeys(value for value in collection.places[path].dropna() if value in set(found)))
    return sorted(values) if pd.api.types.is_numeric_dtype(collection.places[path]) else values


def colours_of(means: Any, spec: Spec) -> tuple[Any, Any]:
    """Scale and map of the colours; of differences, the same to either side of 0."""
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm, Normalize

    known = means[np.isfinite(means)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    if spec.get("baseline") is not None:
        most = max(abs(low), abs(high)) or 1.0
        return Normalize(-most, most), colormaps[DIVERGING].with_extremes(bad="#ffffff")
    colours = colormaps[SEQUENTIAL].with_extremes(bad="#ffffff")
    if str(spec.get("log")) in ("y", "both") and (known > 0).any():
        low = float(known[known > 0].min())
        return LogNorm(low, max(high, low * 1.0001)), colours
    return Normalize(low, high if high > low else low + 1e-9), colours


def _draw_map(axes: Axes, plot: Plot, collection: Collection, norm: Any, colours: Any, *, difference: bool) -> None:
    points, path = plot.points, plot.splits[0]
    columns, rows = _order(collection, plot.x, points["x"]), _order(collection, path, points["row"])
    table = points.pivot(index="row", columns="x", values="mean").reindex(index=rows, columns=columns)
    cells = table.to_numpy(np.float64)
    axes.grid(False)
    axes.pcolormesh(
        np.where(np.isfinite(cells), cells, np.nan), norm=norm, cmap=colours, edgecolors="white", linewidth=0.4
    )
    apart = (points["n"] >= FEWEST_RUNS) & ((points["low"] > 0) | (points["high"] < 0))
    bold = (
        points.assign(clear=apart & difference)
        .pivot(index="row", columns="x", values="clear")
        .reindex(index=rows, columns=columns)
    )
    for i, j in np.ndindex(*cells.shape):
        _cell(axes, (j, i), cells[i, j], norm, colours, numbered=cells.size <= FEW, bold=bold.iloc[i, j] is np.True_)
    _ticks(axes.set_xticks, columns)
    _ticks(axes.set_yticks, rows)
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel(literal(named(collection, plot.x, short(plot.x))))
    axes.set_ylabel(literal(named(collection, path, short(path))))


def _cell(
    axes: Axes, place: tuple[int, int], value: float, norm: Any, colours: Any, *, numbered: bool, bold: bool
) -> None:
    """The number of a cell, in black or white; what has none is hatched, with its sign of infinity."""
    from matplotlib.patches import Rectangle

    text, shade = _number(value), "black"
    if np.isfinite(value):
        shade = ink_on(colours(norm(value)))
        if not numbered:
            return
    elif not np.isnan(value):
        axes.add_patch(Rectangle(place, 1, 1, facecolor="#e8e8e8", edgecolor="#aaaaaa", hatch="////", linewidth=0))
    style = {"ha": "center", "va": "center", "fontsize": size_of(5.5), "fontweight": "bold" if bold else "normal"}
    axes.text(place[0] + 0.5, place[1] + 0.5, text, color=shade, **style)


def _number(value: float) -> str:
    if np.isnan(value):
        return "\N{EN DASH}"
    if np.isinf(value):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    text = f"{value:.2f}" if 0.01 <= abs(value) < 10 else f"{value:.3g}"
    return text.replace("-", "\N{MINUS SIGN}").replace("e+0", "e").replace("e\N{MINUS SIGN}0", "e\N{MINUS SIGN}")


def _ticks(put: Any, values: list[Any]) -> None:
    """A tick per value, or of many values every so many."""
    step = -(-len(values) // 8)
    put([place + 0.5 for place in range(0, len(values), step)], [literal(shown(v)) for v in values[::step]])
