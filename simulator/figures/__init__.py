"""Figures of an experiment, redrawn from its files alone, with the plotted numbers as CSV beside them.

Column width, colour-blind-safe (Okabe and Ito), legible in grey, and the same bytes every time. What a figure may ask
for is `hushnet.simulator.language.figure_parameters.Figure`; here it is a mapping with the same fields.
"""

from .facets import plots
from .files import redraw, save_figure
from .numbers import Plot
from .sheet import draw

__all__ = ["Plot", "draw", "plots", "redraw", "save_figure"]
