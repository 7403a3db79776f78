"""Figures, and what stands on them, and where; what is printed."""

from __future__ import annotations

from hushnet.simulator.figures import draw, plots
from hushnet.simulator.figures.series_style import house_style
from matplotlib.text import Text
from rich.console import Console


def printed(show, *given, width):
    """What a function prints on a console of so many columns."""
    console = Console(width=width)
    with console.capture() as capture:
        show(*given, console=console)
    return capture.get()


def figure_of(collection, spec):
    with house_style():
        return draw(collection, spec, plots(collection, spec))


def caption(figure):
    """The title of the legend that has one, in one line."""
    return next(text for legend in figure.legends if (text := legend.get_title().get_text())).replace("\n", " ")


def written(figure):
    """(text, box) of every visible text."""
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    ticks = {
        label: (axis, tick.get_loc())
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        for label in (tick.label1, tick.label2)
    }

    def shown(text):
        if text.axes is not None and not text.axes.axison and text in ticks:
            return False
        if text not in ticks:
            return True
        axis, place = ticks[text]
        low, high = sorted(axis.get_view_interval())
        return low <= place <= high

    with house_style():
        return [(text.get_text(), text.get_window_extent()) for text in texts if shown(text)]
