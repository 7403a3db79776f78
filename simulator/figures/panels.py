"""Layout of a figure: panels with shared axes, titles, a legend, and a caption that says what the marks mean."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...agents.authors import returned
from ...agents.errors import InputError
from ..analysis.results import Collection
from ..language.figure_kinds import FigureKind
from ..language.figure_style import CENTIMETRES, FigureStyle
from .figure_words import Label, caption, not_counted
from .lines import Entries
from .numbers import Plot, Spec, kind_for, select
from .series_style import ALARM, PAGE_WIDTH, STYLE, WIDTH, characters, characters_along, literal, points, wrapped
from .style import style_of, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NARROWEST_PANEL = 1.6
"""Inches; of a wide kind twice as much."""

SMALLEST_PANEL = 0.35
"""Inches that a panel has at least, either way, beside its letters."""

SLACK = 0.03
"""Inches by which something may reach over the edge of the figure: marks and caps at the very end of an axis."""

FULL_LEGEND = 5
"""Entries up to which a legend says epsilons at length, and"""

FULL_WIDTH = 30
"""characters that it needs to be wide for that."""

BESIDE = 0.45
"""Share of the width that the text of a legend beside or in a panel may have."""

PER_INCH = 17
"""Characters of a legend that go into an inch, at the usual size."""

HANDLE = 9
"""Characters that fit into the room of a legend's line, and of the gap to the next column."""

PLACES: dict[str, Any] = {
    "below": "outside lower center",
    "above": "outside upper center",
    "right": "outside right upper",
}
"""Where matplotlib puts a legend."""

LEGEND: dict[str, Any] = {"handlelength": 3.2, "columnspacing": 1.2, "labelspacing": 0.45, "borderaxespad": 0.3}


def draw(collection: Collection, spec: Spec, plots: Sequence[Plot]) -> Figure:
    """One figure in its style; to be called within `hushnet.simulator.figures.series_style.house_style` of that style.

    Raises `InputError` if labels and panels do not fit into the size that is asked for.
    """
    from matplotlib.figure import Figure

    collection, style = styled(collection, spec), style_of(collection, spec)
    kind, by_metric = kind_for(spec), isinstance(spec.get("facet"), list | tuple)
    columns, width, height = shape(kind, len(plots), stacked=by_metric, style=style)
    rows = -(-len(plots) // columns)
    figure = Figure(figsize=(width, rows * height), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=len(plots) > 1, sharey=len(plots) > 1 and not by_metric, squeeze=False)
    for axes in grid.flat[len(plots) :]:
        axes.remove()
    panels = list(zip(grid.flat, plots, strict=False))
    for axes, _ in panels:
        axes.set_axisbelow(True)
    shown = select(collection, spec.get("at") or {})
    draw = kind.function("draw")
    entries = returned(draw(panels, shown, spec), Mapping, draw)
    for place, (axes, plot) in enumerate(panels):
        outer = by_metric or place % columns == 0, place + columns >= len(plots)
        _label_axes(axes, shown, spec, left=outer[0], bottom=outer[1])
        if plot.panel:
            axes.set_title(wrapped(literal(plot.panel), characters(width / columns, 15)), fontsize=points(7))
    if spec.get("title"):
        title = wrapped(literal(str(spec["title"])), characters(width, 15))
        figure.set_figheight(figure.get_figheight() + 0.14 * points(1) * (title.count("\n") + 1))
        figure.suptitle(title, fontsize=points(8))
    _legends(figure, entries, str(style.legend or "below"), plots, spec, shown)
    _lay_out(figure, [axes for axes, _ in panels], style)
    return figure


def shape(kind: FigureKind, panels: int, *, stacked: bool, style: FigureStyle) -> tuple[int, float, float]:
    """Columns of panels, and inches: width of the figure and height of a panel."""
    columns, width, height = _usual_shape(kind, panels, stacked=stacked)
    if style.inches is not None:
        width = style.inches
        columns = max(1, min(columns, int(width / (NARROWEST_PANEL * (2 if kind.wide else 1)))))
    return columns, width, height if style.height is None else style.height / CENTIMETRES


def _usual_shape(kind: FigureKind, panels: int, *, stacked: bool) -> tuple[int, float, float]:
    if kind.stacked:
        return 1, PAGE_WIDTH, kind.height
    if panels == 1 or stacked:
        return 1, WIDTH, kind.height if panels == 1 else 0.72 * kind.height
    if panels in (2, 4):
        return 2, PAGE_WIDTH if kind.wide else WIDTH, kind.height if kind.wide else 0.72 * kind.height
    columns = min(panels, 3 if panels % 3 == 0 or panels == 5 else 4)
    return columns, PAGE_WIDTH, kind.height * (0.9 if kind.wide else 0.72)


def _label_axes(axes: Axes, shown: Collection, spec: Spec, *, left: bool, bottom: bool) -> None:
    if spec.get("x_label"):
        axes.set_xlabel(literal(str(spec["x_label"])) + not_counted(shown, str(spec["x"])))
    if spec.get("y_label"):
        axes.set_ylabel(literal(str(spec["y_label"])) + not_counted(shown, str(spec["y"])))
    axes.set_xlabel(wrapped(axes.get_xlabel(), characters_along(axes)) if bottom else "")
    axes.tick_params(labelbottom=bottom, which="both")
    if not left:
        axes.set_ylabel("")
        axes.tick_params(labelleft=False, which="both")


def _legends(
    figure: Figure, entries: Entries, where: str, plots: Sequence[Plot], spec: Spec, collection: Collection
) -> None:
    """Put the legend where it belongs and the caption below, and make the figure as much higher as they are."""
    labels = [label if isinstance(label, Label) else Label(label) for label in entries]
    width, height = figure.get_size_inches()
    lying = where in ("below", "above")
    room = characters(width if lying else BESIDE * width, PER_INCH)
    full, handles = len(labels) <= FULL_LEGEND and room >= FULL_WIDTH, list(entries.values())
    said = wrapped(caption(plots, spec, collection, labels, full=full), characters(width, PER_INCH))
    texts = [wrapped(literal(label.said(full=full)), max(room - HANDLE, 12)) for label in labels]
    longest = max((len(line) for text in texts for line in text.splitlines()), default=1)
    columns = min(max(room // (longest + HANDLE), 1), len(texts) or 1) if lying else 1
    style = {**LEGEND, "ncols": columns}
    if where == "inside":
        legend = figure.axes[0].legend(handles, texts, loc="best", framealpha=0.85, edgecolor="none", **style)
    elif where in PLACES and handles:
        legend = figure.legend(handles, texts, loc=PLACES[where], frameon=False, **style)
    else:
        legend = figure.legend([], [], loc=PLACES["below"], frameon=False, **style)
    below = legend
    if where in ("above", "right", "inside") and legend.get_texts():
        below = figure.legend([], [], loc=PLACES["below"], frameon=False, **LEGEND)
    if said:
        below.set_title(said)
        below.get_title().set_multialignment("center")
    for label, text in zip(labels, legend.get_texts(), strict=False):
        if label.loud:
            text.set_color(ALARM)
    inches = [each.get_window_extent().height / figure.dpi for each in (legend, below)]
    if where == "right":
        figure.set_figheight(max(height, inches[0]) + inches[1])
    else:
        figure.set_figheight(height + inches[0] * (where != "inside") + inches[1] * (below is not legend))


def _lay_out(figure: Figure, panels: Sequence[Axes], style: FigureStyle) -> None:
    """Lay out the figure, and refuse a size at which panels or letters have no room."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        try:
            figure.draw_without_rendering()
            for axes in figure.axes:  # no others: mathematics takes long to set
                if axes.xaxis.get_offset_text().get_text():
                    axes.ticklabel_format(axis="x", useMathText=True)
                if axes.yaxis.get_offset_text().get_text():
                    axes.ticklabel_format(axis="y", useMathText=True)
            for axes in panels:
                along = axes.get_window_extent().height / figure.dpi
                axes.set_ylabel(wrapped(axes.get_ylabel(), characters(along, 16)))
                factor = axes.xaxis.get_major_formatter().get_offset()
                if factor and axes.get_xlabel():  # which would lie across a long label's end
                    axes.set_xlabel(wrapped(f"{axes.get_xlabel()} {factor}", characters_along(axes) + 20))
                    axes.xaxis.get_offset_text().set_visible(False)
            figure.draw_without_rendering()
        except UserWarning:
            raise _no_room(figure, style) from None
    width, height = figure.get_size_inches()
    box = figure.get_tightbbox()
    cut = box.x0 < -SLACK or box.y0 < -SLACK or box.x1 > width + SLACK or box.y1 > height + SLACK
    boxes = [axes.get_window_extent() for axes in panels]
    smallest = min(min(box.width, box.height) for box in boxes) / figure.dpi
    asked = (style.width, style.height, style.font_size) != (None, None, None)
    if cut or (asked and smallest < SMALLEST_PANEL):
        raise _no_room(figure, style)


def _no_room(figure: Figure, style: FigureStyle) -> InputError:
    letters = f"labels in letters of {style.font_size or STYLE['axes.labelsize']:g} points"
    size = f"{figure.get_figwidth() * CENTIMETRES:.3g} cm"
    sentence = f"figures: panels and {letters} do not fit into {size}; take smaller letters, or larger panels"
    return InputError(sentence, field=("style",))
