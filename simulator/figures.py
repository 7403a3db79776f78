"""Figures of an experiment, redrawn from its files alone, with the plotted numbers as CSV beside them.

Column width, colour-blind-safe (Okabe and Ito), legible in grey, and the same bytes every time. A figure's
specification is a mapping: ``y``; ``x`` (time, activations, vectors, messages, bytes or updates for curves; samples for
final values by the size of the agents' data; protocol for bars; or a swept parameter's path); and optionally ``name,
statistic, interval`` ("95%" or "none"), ``log`` ("none", "x", "y" or "both"), ``title`` and ``protocols``.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..agents.errors import InputError
from .aggregate import Plot, plot, series, time_scale
from .look import ALARM, PANEL_HEIGHT, WIDTH, Look, house_style, literal, looks, sparse_ticks, wrapped
from .results import Collection, load_all
from .storage import Frame
from .summary import MARK, claim_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

AXES = {
    "activations": "activations",
    "vectors": "vectors sent",
    "messages": "messages sent",
    "bytes": "bytes sent",
    "updates": "updates per agent",
    "samples": "samples of the agent",
    "rmse": "RMSE",
    "mse": "mean squared error",
    "training_loss": "training loss",
    "test_loss": "test loss",
    "epsilon_claimed": "\u03b5 claimed",
    "epsilon_tight": "\u03b5 verified",
    "age": "age of what is known of neighbours",
    "conserved": "off the conserved sum by",
}


def redraw(results: Path, *, out: Path | None = None) -> list[Path]:
    """Draw every figure of the latest experiment from its files.

    Parameters
    ----------
    results : Path
        ``results/<scenario>``, with its ``index.json``.
    out : Path, optional
        Where the figures go; ``results/<scenario>/figures`` by default.

    Returns
    -------
    list of Path
        PNG, PDF and CSV of every figure, in order.

    Raises
    ------
    InputError
        If the folder holds no results, a file is damaged, or a specification asks for what was not recorded.
    """
    results = Path(results)
    if not (results / "index.json").exists():
        raise InputError(f"{results}: holds no index.json; give a folder results/<scenario> of hushnet run")
    collection = load_all(results)
    folder = Path(out) if out is not None else results / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for number, spec in enumerate(collection.index.get("figures") or [], 1):
        name = spec.get("name") or f"{number}-{spec['y']}-vs-{spec['x']}"
        stem = re.sub(r"[^\w.-]+", "-", str(name)).strip(".-") or str(number)
        written += save_figure(collection, spec, folder / stem)
    return written


def save_figure(collection: Collection, spec: dict[str, Any], stem: Path) -> list[Path]:
    """Write one figure as ``<stem>.png``, ``.pdf`` and ``.csv``, and return the three paths."""
    numbers = plot(collection, spec)
    png, pdf, csv = (stem.with_name(f"{stem.name}.{suffix}") for suffix in ("png", "pdf", "csv"))
    with house_style():
        figure = draw(collection, spec, numbers)
        figure.savefig(png, dpi=300, metadata={"Software": None})
        figure.savefig(pdf, metadata={"CreationDate": None})
    numbers.points.to_csv(csv, index=False, lineterminator="\n")
    return [png, pdf, csv]


def draw(collection: Collection, spec: dict[str, Any], numbers: Plot) -> Figure:
    """One figure, legend below its panel; to be called within `house_style`.

    Parameters
    ----------
    collection : Collection
    spec : dict
    numbers : Plot
        From `hushnet.simulator.aggregate.plot`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, PANEL_HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axisbelow(True)
    handles, labels = _series(axes, collection, numbers)
    _scales(axes, numbers, str(spec.get("log") or "none"))
    axes.set_xlabel(literal(_x_label(collection, numbers.x)))
    axes.set_ylabel(_y_label(numbers.metric, numbers.statistic))
    if numbers.kind == "bars":
        axes.set_xticks([])
    height = PANEL_HEIGHT
    if spec.get("title"):
        lines = textwrap.wrap(str(spec["title"]), 52)
        axes.set_title(literal("\n".join(lines)))
        height += 0.14 * len(lines)
    legend = _legend(figure, handles, labels, _caption(numbers, spec))
    box = legend.get_window_extent()
    figure.set_size_inches(WIDTH, height + box.height / figure.dpi)
    figure.draw_without_rendering()
    return figure


def _series(axes: Axes, collection: Collection, numbers: Plot) -> tuple[list[Any], list[str]]:
    order = list(collection.labels)
    groups = list(series(numbers.points, order, numbers.splits))
    positions = _positions(numbers)
    drawn_as = looks([key for key, _ in groups], order)
    handles, labels = [], []
    for look, (key, points) in zip(drawn_as, groups, strict=True):
        if numbers.kind == "bars":
            handles.append(_bar(axes, points, look))
        elif numbers.kind == "curve":
            handles.append(_curve(axes, points, look, alone=len(points) == 1 and len(numbers.points) > 1))
        else:
            handles.append(_finals(axes, points.assign(x=[positions.get(x, x) for x in points["x"]]), look))
        labels.append(_label(collection, key, numbers))
    if positions:
        axes.set_xticks(list(positions.values()), [literal(str(name)) for name in positions])
    return handles, labels


def _positions(numbers: Plot) -> dict[Any, int]:
    """Places of the values of a swept parameter that are not numbers."""
    x = numbers.points["x"]
    if numbers.kind != "sweep" or (pd.api.types.is_numeric_dtype(x) and not pd.api.types.is_bool_dtype(x)):
        return {}
    return {value: place for place, value in enumerate(dict.fromkeys(x))}


def _curve(axes: Axes, points: Frame, look: Look, *, alone: bool) -> Any:
    """A line with its band; a series that never moves along x (nothing was sent) is a level across the panel."""
    if alone:
        low, mean, high = (float(points[name].iloc[0]) for name in ("low", "mean", "high"))
        if np.isfinite(high):
            axes.axhspan(low, high, color=look.colour, alpha=0.18, linewidth=0)
        return axes.axhline(mean, color=look.colour, linestyle=look.line)
    x, mean = points["x"].to_numpy(np.float64), points["mean"].to_numpy(np.float64)
    if points["low"].notna().any():
        axes.fill_between(x, points["low"], points["high"], color=look.colour, alpha=0.18, linewidth=0)
    step = max(1, len(points) // 7)
    marks = (look.place * max(1, step // 4) % step, step)
    (line,) = axes.plot(x, mean, color=look.colour, linestyle=look.line, marker=look.marker, markevery=marks)
    return line


def _finals(axes: Axes, points: Frame, look: Look) -> Any:
    half = (points["high"] - points["mean"]).to_numpy(np.float64)
    style = {"color": look.colour, "linestyle": look.line, "marker": look.marker}
    known = half if np.isfinite(half).any() else None
    return axes.errorbar(points["x"], points["mean"], yerr=known, capsize=2, elinewidth=0.8, **style)


def _bar(axes: Axes, points: Frame, look: Look) -> Any:
    mean, half = points["mean"].iloc[0], (points["high"] - points["mean"]).iloc[0]
    style: dict[str, Any] = {"color": look.colour, "edgecolor": "white", "hatch": look.hatch}
    known = half if np.isfinite(half) else None
    return axes.bar([look.place], [mean], width=0.7, yerr=known, capsize=2, error_kw={"elinewidth": 0.8}, **style)


def _scales(axes: Axes, numbers: Plot, log: str) -> None:
    """Logarithmic axes show what is positive; the lower edge of a band that is not ends at the panel's edge."""
    points = numbers.points
    if log in ("y", "both") and (points["mean"] > 0).any():
        lows = np.concatenate([points["mean"], points["low"]])
        highs = np.concatenate([points["mean"], points["high"]])
        bottom = points["mean"][points["mean"] > 0].min()
        lows = lows[(lows > bottom / 10) & np.isfinite(lows)]
        axes.set_yscale("log", nonpositive="clip")
        sparse_ticks(axes.yaxis)
        axes.set_ylim(min(lows, default=bottom) / 1.3, np.max(highs[np.isfinite(highs)]) * 1.3)
    numeric = numbers.kind != "bars" and not _positions(numbers)
    if log in ("x", "both") and numeric and (points["x"] > 0).any():
        positive = points["x"][points["x"] > 0]
        axes.set_xscale("log", nonpositive="mask")
        sparse_ticks(axes.xaxis)
        axes.set_xlim(positive.min() / 1.1, positive.max() * 1.1)


def _legend(figure: Figure, handles: list[Any], labels: list[str], caption: str) -> Legend:
    """The widest legend that fits below the panel: several columns, or one with its lines wrapped."""
    # Width in characters that a single column is wrapped to; None leaves the lines whole.
    trials: list[tuple[int, int | None]] = [(columns, None) for columns in (3, 2, 1) if columns <= len(handles)]
    trials += [(1, width) for width in (60, 52, 44, 36, 28, 20)]
    for columns, width in trials:
        texts = [text if width is None else wrapped(text, width) for text in labels]
        legend = figure.legend(
            handles,
            [literal(text) for text in texts],
            loc="outside lower center",
            ncols=columns,
            title=caption,
            frameon=False,
            handlelength=3.2,
            columnspacing=1.2,
            labelspacing=0.45,
            borderaxespad=0.3,
        )
        for text, shown in zip(labels, legend.get_texts(), strict=True):
            if MARK in text:
                shown.set(fontweight="bold", color=ALARM)
        if legend.get_window_extent().width <= 0.98 * figure.bbox.width:
            return legend
        legend.remove()
    raise InputError(f"figures: the labels {', '.join(labels)} do not fit into a legend; give shorter ones")


def _label(collection: Collection, key: tuple[Any, ...], numbers: Plot) -> str:
    """Label of a series: its protocol, where it stands in the grid, what it claims, and what broke off."""
    grid = dict(zip(numbers.splits, key[1:], strict=True))
    places = collection.places[collection.places["protocol"] == key[0]]
    for path, value in grid.items():
        places = places[places[path] == value]
    chosen = set(places["run"])
    runs = [manifest for run, manifest in zip(collection.runs, collection.manifests, strict=True) if run in chosen]
    text = collection.labels[key[0]]
    if grid:
        text += ", " + ", ".join(f"{path.rpartition('.')[2]} {value}" for path, value in grid.items())
    claim = claim_of(runs)
    lines = [text, claim.text] if claim else [text]
    stopped = sum(manifest.get("status") != "complete" for manifest in runs)
    if stopped:
        lines.append(f"{MARK} {stopped} of {len(runs)} runs broke off")
    return "\n".join(lines)


def _caption(numbers: Plot, spec: dict[str, Any]) -> str:
    n = numbers.points["n"]
    runs = f"n = {n.max()} runs" if n.min() == n.max() else f"n = {n.min()} to {n.max()} runs"
    if n.max() == 1:
        return "one run"
    interval = numbers.points["low"].notna().any()
    return (
        f"mean and {spec.get('interval', '95%').replace('%', ' %')} t interval, {runs}" if interval else f"mean, {runs}"
    )


def _x_label(collection: Collection, x: str) -> str:
    if x == "time":
        return f"time ({time_scale(collection.index.get('time_unit'))[1]})"
    return "" if x == "protocol" else AXES.get(x, x)


def _y_label(metric: str, statistic: str) -> str:
    if metric == "objective":
        return {"gap": "objective gap $Q - Q^*$", "value": "objective $Q$"}.get(statistic, f"objective, {statistic}")
    name = literal(AXES.get(metric, metric))
    aside = {"worst": "worst agent", "worst_decile": "worst decile", "mean": "", "value": "", "sent": ""}
    detail = aside.get(statistic, statistic)
    return f"{name}, {literal(detail)}" if detail else name
