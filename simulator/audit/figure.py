"""The figure of an audit: delta by epsilon for every protocol, as claimed, as verified, and as an attack found it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..figures.figure_files import Drawing, save_drawing
from ..figures.series_style import COLOURS, LINES, MARKERS, PAGE_WIDTH, WIDTH, house_style, literal, wrapped
from ..language.figure_style import FigureStyle
from ..storage.files import Frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = ("claimed", "verified", "audited at least")
SIZES = (6.0, 4.0, 3.5)
COLUMNS = 3
PANEL = 1.9
"""Inches: height of a panel."""


def save_figure(profile: Frame, stem: Path, data: str = "") -> list[Path]:
    """Write ``<stem>.png``, ``.pdf``, ``.svg`` and the numbers as ``.csv``; nothing where there is no finite number.

    A profile has ``protocol, label, curve, epsilon, delta``; `data` names the stand-in that the audit was on, if any.
    """
    finite = profile[np.isfinite(profile["epsilon"].astype(float))]
    if finite.empty:
        return []
    with house_style():
        drawn = Drawing(stem.name, draw(profile, data), FigureStyle(), profile)
    return save_drawing(drawn, stem.parent, within=stem.parent.parent)


def draw(profile: Frame, data: str = "") -> Figure:
    """One panel per protocol, with the legend below; to be called within `house_style`."""
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(profile["label"]))
    columns = min(COLUMNS, len(labels))
    rows = -(-len(labels) // columns)
    width = WIDTH if columns == 1 else PAGE_WIDTH
    figure = Figure(figsize=(width, rows * PANEL + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    panels = [axes for row in grid for axes in row]
    for axes in panels[len(labels) :]:
        axes.remove()
    handles: dict[str, Any] = {}
    for place, (axes, label) in enumerate(zip(panels, labels, strict=False)):
        _panel(axes, profile[profile["label"] == label], handles)
        axes.set_title(literal(wrapped(str(label), round(15 * width / columns))), fontsize=7)
        axes.set_xlabel("\N{GREEK SMALL LETTER EPSILON} (nats)")
        if place % columns == 0:
            axes.set_ylabel("\N{GREEK SMALL LETTER DELTA} (probability)")
    shown = [name for name in CURVES if name in handles]
    figure.legend(
        [handles[name] for name in shown],
        shown,
        loc="outside lower center",
        ncols=len(shown),
        frameon=False,
        title=data or None,
        handlelength=3.2,
    )
    return figure


def _panel(axes: Axes, rows: Frame, handles: dict[str, Any]) -> None:
    """The curves of a protocol; one that is infinite everywhere is said in words."""
    infinite = []
    for rank, name in enumerate(CURVES):
        curve = rows[rows["curve"] == name].sort_values("delta")
        known = curve[np.isfinite(curve["epsilon"].astype(float))]
        if known.empty:
            infinite += [name] if len(curve) else []
            continue
        # Two curves that agree are seen both: a large mark below a smaller, open one.
        style = {"color": COLOURS[rank], "linestyle": LINES[rank], "marker": MARKERS[rank], "markersize": SIZES[rank]}
        style |= {"markerfacecolor": "white"} if rank == 1 else {}
        (line,) = axes.plot(known["epsilon"], known["delta"], label=name, **style)
        handles.setdefault(name, line)
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    if infinite:
        text = f"{' and '.join(infinite)}: \N{INFINITY}"
        # Profiles fall from the upper left: below them is room.
        axes.text(0.03, 0.05, text, transform=axes.transAxes, ha="left", va="bottom", fontsize=6.5)
