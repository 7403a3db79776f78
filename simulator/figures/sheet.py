"""A figure on its sheet: panels with shared axes, their titles, and the legend below them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...agents.errors import InputError
from ..look import ALARM, characters_along, literal, thin_ticks, wrapped
from ..results import Collection
from ..summary import MARK
from .kinds import kind_for, shape
from .numbers import Plot, Spec, select
from .words import caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend


def draw(collection: Collection, spec: Spec, plots: Sequence[Plot]) -> Figure:
    """One figure, legend below its panels; to be called within `hushnet.simulator.look.house_style`.

    Parameters
    ----------
    collection : Collection
    spec : mapping
    plots : sequence of Plot
        From `hushnet.simulator.figures.plots`.
    """
    from matplotlib.figure import Figure

    kind, by_metric = kind_for(spec), isinstance(spec.get("facet"), list | tuple)
    columns, width, panel_height = shape(kind, len(plots), stacked=by_metric)
    rows = -(-len(plots) // columns)
    figure = Figure(figsize=(width, rows * panel_height), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=len(plots) > 1, sharey=len(plots) > 1 and not by_metric, squeeze=False)
    every = [axes for row in grid for axes in row]
    for axes in every[len(plots) :]:
        axes.remove()
    panels = list(zip(every, plots, strict=False))
    for axes, _ in panels:
        axes.set_axisbelow(True)
    entries = kind.draw(panels, select(collection, spec.get("at") or {}), spec)
    for place, (axes, plot) in enumerate(panels):
        if spec.get("x_label"):
            axes.set_xlabel(wrapped(literal(str(spec["x_label"])), characters_along(axes)))
        if spec.get("y_label"):
            axes.set_ylabel(literal(str(spec["y_label"])))
        _outer(axes, left=by_metric or place % columns == 0, bottom=place + columns >= len(plots))
        if plot.panel:
            axes.set_title(literal(wrapped(plot.panel, round(15 * width / columns))), fontsize=7)
    height = figure.get_figheight() + _title(figure, spec)
    legend = _legend(figure, list(entries.values()), list(entries), caption(plots, spec, collection))
    box = legend.get_window_extent()
    figure.set_size_inches(width, height + box.height / figure.dpi)
    figure.draw_without_rendering()
    for axes, _ in panels:
        _wrap_label(axes)
        thin_ticks(axes)
    figure.draw_without_rendering()
    return figure


def _outer(axes: Axes, *, left: bool, bottom: bool) -> None:
    """Leave out the labels of shared axes inside the figure."""
    if not left:
        axes.set_ylabel("")
        axes.tick_params(labelleft=False, which="both")
    axes.tick_params(labelbottom=bottom, which="both")
    if not bottom:
        axes.set_xlabel("")


def _wrap_label(axes: Axes) -> None:
    """Break the label of a y axis between its words into lines that are no longer than the panel is high."""
    label, room = axes.yaxis.label, axes.get_window_extent().height
    whole = label.get_text()
    longest = max(map(len, whole.split()), default=0)
    for width in range(len(whole), longest - 1, -1):
        if label.get_window_extent().height <= room:
            return
        label.set_text(wrapped(whole, width))


def _title(figure: Figure, spec: Spec) -> float:
    """Write the title over all panels; the inches that it takes."""
    if not spec.get("title"):
        return 0.0
    lines = textwrap.wrap(str(spec["title"]), round(15 * figure.get_size_inches()[0]))
    figure.suptitle(literal("\n".join(lines)), fontsize=8)
    return 0.14 * len(lines)


def _legend(figure: Figure, handles: list[Any], labels: list[str], caption: str) -> Legend:
    """The widest legend that fits below the panels: several columns, or one with its lines wrapped."""
    # Width in characters that a single column is wrapped to; None leaves the lines whole.
    trials: list[tuple[int, int | None]] = [(columns, None) for columns in (5, 4, 3, 2, 1) if columns <= len(handles)]
    trials += [(1, width) for width in (60, 52, 44, 36, 28, 20)]
    for columns, width in trials:
        texts = [text if width is None else wrapped(text, width) for text in labels]
        legend = figure.legend(
            handles,
            [literal(text) for text in texts],
            loc="outside lower center",
            ncols=columns,
            title=wrapped(caption, round(18 * figure.get_size_inches()[0])),
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
