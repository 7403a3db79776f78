"""A figure on its sheet: panels with shared axes, their titles, the legend, and what the marks mean below them."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...agents.errors import InputError
from ..analysis.results import Collection
from ..language.figure_style import CENTIMETRES, FigureStyle
from .kinds import shape
from .labels import LENGTHS, Label
from .lines import Entries
from .numbers import Plot, Spec, kind_for, select
from .series_style import ALARM, STYLE, characters, characters_along, literal, points, thin_ticks, wrapped
from .style import style_of, styled
from .words import caption, not_counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

CLAIMS = 0.5
"""Share of the height of the panels that a legend with claims of privacy may have before these are shortened."""

BESIDE = 0.45
"""Share of the width that a legend beside the panels may have."""

PLACES: dict[str, Any] = {
    "below": "outside lower center",
    "above": "outside upper center",
    "right": "outside right center",
}
"""Where matplotlib puts a legend."""

WRAPS = (60, 52, 44, 36, 28, 20, 14)
"""Characters that the lines of a legend of one column are wrapped to, until it fits."""


def draw(collection: Collection, spec: Spec, plots: Sequence[Plot]) -> Figure:
    """One figure in its style; to be called within `hushnet.simulator.figures.series_style.house_style` of that style.

    Parameters
    ----------
    collection : Collection
    spec : mapping
    plots : sequence of Plot
        From `hushnet.simulator.figures.plots`.
    """
    from matplotlib.figure import Figure

    collection, style = styled(collection, spec), style_of(collection, spec)
    kind, by_metric = kind_for(spec), isinstance(spec.get("facet"), list | tuple)
    columns, width, panel_height = shape(kind, len(plots), stacked=by_metric, style=style)
    rows = -(-len(plots) // columns)
    figure = Figure(figsize=(width, rows * panel_height), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=len(plots) > 1, sharey=len(plots) > 1 and not by_metric, squeeze=False)
    every = [axes for row in grid for axes in row]
    for axes in every[len(plots) :]:
        axes.remove()
    panels = list(zip(every, plots, strict=False))
    for axes, _ in panels:
        axes.set_axisbelow(True)
    shown = select(collection, spec.get("at") or {})
    entries = kind.function("draw")(panels, shown, spec)
    for place, (axes, plot) in enumerate(panels):
        if spec.get("x_label"):
            text = literal(str(spec["x_label"])) + not_counted(shown, str(spec["x"]))
            axes.set_xlabel(wrapped(text, characters_along(axes)))
        if spec.get("y_label"):
            axes.set_ylabel(literal(str(spec["y_label"])) + not_counted(shown, str(spec["y"])))
        _outer(axes, left=by_metric or place % columns == 0, bottom=place + columns >= len(plots))
        if plot.panel:
            axes.set_title(literal(wrapped(plot.panel, characters(width / columns, 15))), fontsize=points(7))
    height = figure.get_figheight() + _title(figure, spec)
    height += _legends(figure, entries, str(style.legend or "below"), _Caption(plots, spec, shown))
    figure.set_size_inches(width, height)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        try:
            figure.draw_without_rendering()
            for axes, _ in panels:
                _wrap_label(axes)
                thin_ticks(axes)
            figure.draw_without_rendering()
        except UserWarning:
            raise _no_room(figure, style) from None
    if (style.width, style.height, style.font_size) != (None, None, None):
        _check_room(figure, [axes for axes, _ in panels], style)
    return figure


def _check_room(figure: Figure, panels: Sequence[Axes], style: FigureStyle) -> None:
    """Refuse a size at which panels have no room beside their letters."""
    width, height = figure.bbox.size
    for axes in panels:
        box, around = axes.get_window_extent(), axes.get_tightbbox()
        assert around is not None
        cut = around.x0 < -SLACK or around.y0 < -SLACK or around.x1 > width + SLACK or around.y1 > height + SLACK
        if cut or box.width < LEAST_PANEL * figure.dpi or box.height < LEAST_PANEL * figure.dpi:
            raise _no_room(figure, style)


def _no_room(figure: Figure, style: FigureStyle) -> InputError:
    letters = f"letters of {style.font_size or STYLE['axes.labelsize']:g} points"
    size = f"{figure.get_figwidth() * CENTIMETRES:.3g} cm"
    sentence = f"figures: panels and {letters} do not fit into {size}; take smaller letters, or larger panels"
    return InputError(sentence, field=("style",))


SLACK = 3.0
"""Dots by which an axis may reach over the edge of the sheet: marks and caps at its very end."""

LEAST_PANEL = 0.35
"""Inches that a panel has at least, either way."""


class _Caption:
    """What is said below the panels, by how long the labels are."""

    def __init__(self, plots: Sequence[Plot], spec: Spec, collection: Collection) -> None:
        self._about = plots, spec, collection

    def said(self, labels: Sequence[Label], length: int) -> str:
        return caption(*self._about, labels, length)


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
    lines = textwrap.wrap(str(spec["title"]), characters(figure.get_size_inches()[0], 15))
    figure.suptitle(literal("\n".join(lines)), fontsize=points(8))
    return 0.14 * points(1) * len(lines)


def _legends(figure: Figure, entries: Entries, where: str, about: _Caption) -> float:
    """Put legend and caption where they belong; the inches that they add to the figure's height.

    Claims of privacy are shortened until the legend is no longer than the panels are high, or a share of that.
    """
    room = figure.get_figheight() * figure.dpi * (CLAIMS if where in ("below", "above") else 1.0)
    labels = [label if isinstance(label, Label) else Label(label) for label in entries]
    handles, added = list(entries.values()), 0.0
    shown = where != "none" and len(handles) > 0
    claimed = shown and any(label.claim is not None for label in labels)
    for length in LENGTHS if claimed else LENGTHS[:1]:
        _clear(figure)
        said = about.said(labels, length)
        if where == "below":
            height = added = _height(_legend(figure, handles, labels, where, length, said))
        else:
            note = added = _height(_legend(figure, [], [], "below", length, said))
            height = _height(_legend(figure, handles, labels, where, length, "")) if shown else 0.0
            if where == "above":
                added += height
            elif where == "right":  # in the middle of the sheet, and clear of what is said below
                added = max(added, height + 2 * note - figure.get_figheight() * figure.dpi)
        if height <= room:
            break
    return added / figure.dpi


def _clear(figure: Figure) -> None:
    """Take all legends away."""
    for legend in [*figure.legends, *(axes.get_legend() for axes in figure.axes)]:
        if legend is not None:
            legend.remove()


def _height(legend: Legend) -> float:
    """Dots."""
    return float(legend.get_window_extent().height)


def _legend(
    figure: Figure, handles: list[Any], labels: Sequence[Label], where: str, length: int, caption: str
) -> Legend:
    """The widest legend that fits: several columns, or one with its lines wrapped."""
    width = figure.get_size_inches()[0]
    # Width in characters that a single column is wrapped to; None leaves the lines whole.
    trials: list[tuple[int, int | None]] = [(1, None), *((1, wrap) for wrap in WRAPS)]
    if where in ("below", "above"):
        trials = [(columns, None) for columns in (5, 4, 3, 2) if columns <= len(handles)] + trials
    room = figure.bbox.width * (0.98 if where in ("below", "above") else BESIDE)
    style: dict[str, Any] = {"handlelength": 3.2, "columnspacing": 1.2, "labelspacing": 0.45, "borderaxespad": 0.3}
    for columns, wrap in trials:
        texts = [label.said(length) for label in labels]
        texts = [text if wrap is None else wrapped(text, wrap) for text in texts]
        shown = handles, [literal(text) for text in texts]
        if where == "inside":
            legend = figure.axes[0].legend(*shown, loc="best", framealpha=0.85, edgecolor="none", **style)
        else:
            title = wrapped(caption, characters(width, 18)) or None
            legend = figure.legend(*shown, loc=PLACES[where], ncols=columns, title=title, frameon=False, **style)
            legend.get_title().set_multialignment("center")
        for label, text in zip(labels, legend.get_texts(), strict=True):
            if label.loud:
                text.set_color(ALARM)
        if legend.get_window_extent().width <= room:
            return legend
        legend.remove()
    listed = ", ".join(label.text for label in labels)
    raise InputError(f"figures: the labels {listed} do not fit into a legend; give shorter ones, or a wider figure")
