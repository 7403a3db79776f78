"""Figures of an experiment, redrawn from its files alone, with the plotted numbers as CSV beside them.

Colour-blind-safe (Okabe and Ito), legible in grey, the same bytes every time, and otherwise in the style that scenario,
figure or command ask for (`hushnet.simulator.language.figure_style.FigureStyle`), column width by default. What a
figure may ask for is `hushnet.simulator.language.figure_parameters.Figure`; here it is a mapping with the same fields.
"""

from .facets import plots
from .figure_files import Drawing, drawings, redraw, save_figure
from .numbers import Plot
from .panels import draw

__all__ = ["Drawing", "Plot", "draw", "drawings", "plots", "redraw", "save_figure"]
