"""The network of one run: its graph, with every agent coloured by what it ended with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...agents.errors import InputError
from ..analysis.results import Collection
from ..storage.files import Frame
from .figure_words import value_label
from .graph_layout import graph_layout
from .lines import Entries, Panels
from .numbers import Plot, Spec
from .one_run import run_in_words, run_of, store_of
from .series import agent_column
from .series_style import SEQUENTIAL, ink_on, literal
from .series_style import points as size_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 40
"""Agents up to which each carries its name."""

CROWD = 5
"""Edges per agent beyond which they crowd: all are paler, and those with less than `FAINT` are left out."""

FAINT = 0.01
"""Share of the heaviest weight that an edge of a crowd needs to be drawn."""

TAILS = (0.02, 0.98)
"""Quantiles at which colours end if an agent lies farther beyond one than half of what they are apart."""

UNKNOWN, BEYOND = "#ffffff", "#b0b0b0"
"""Colours of agents without a value, and with an infinite one."""

ATTACKER = "#d55e00"
"""Colour of the edge of byzantine agents."""


def numbers(collection: Collection, spec: Spec) -> Plot:
    """Agents and edges of a run: the place of an agent and its value, the weight of an edge; in a crowd no faint ones.

    Raises `InputError` if the run kept no graph, or there is no such value per agent.
    """
    run, manifest = run_of(collection, spec)
    metric = agent_column(collection, str(spec["y"]))
    agents = collection.agents[collection.agents["run"] == run]
    names = [str(name) for name in agents["agent"]]
    graph = (manifest.get("topology") or {}).get("graph")
    if graph is None:
        raise InputError("figures: a portrait needs the graph of the run, which these results lack; run again")
    edges = store_of(collection).load_graph(graph)
    ends = np.sort(edges[["tail", "head"]].to_numpy(), axis=1)
    edges = edges.assign(tail=ends[:, 0], head=ends[:, 1]).drop_duplicates(["tail", "head"])
    pairs = tuple(zip(edges["tail"].tolist(), edges["head"].tolist(), edges["weight"].tolist(), strict=True))
    places = own_places(agents)
    if places is None:
        places = graph_layout(len(names), pairs)
    nodes = pd.DataFrame({"what": "agent", "agent": names, "other": "", "x": places[:, 0], "y": places[:, 1]})
    nodes["value"] = agents[metric].to_numpy(np.float64)
    if "role" in agents:
        nodes["role"] = agents["role"].to_numpy()
    if len(pairs) > CROWD * len(names):
        heaviest = max(weight for *_, weight in pairs)
        pairs = tuple(pair for pair in pairs if pair[2] >= FAINT * heaviest)
    links = pd.DataFrame(
        {
            "what": "edge",
            "agent": [names[tail] for tail, _, _ in pairs],
            "other": [names[head] for _, head, _ in pairs],
            "value": [weight for *_, weight in pairs],
        }
    )
    points = pd.concat([nodes, links], ignore_index=True)
    return Plot("portrait", "", metric, "", [], points, note=f"one run: {run_in_words(collection, manifest)}")


def own_places(agents: Frame) -> Any:
    """(n, 2) places of the agents where their task has them; None where it has none."""
    if "place_x" not in agents or agents[["place_x", "place_y"]].isna().to_numpy().any():
        return None
    return agents[["place_x", "place_y"]].to_numpy(np.float64)


def limits(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the limits of the colour scale: the extremes, or the quantiles `TAILS` where extremes are far off."""
    low, high = float(values.min()), float(values.max())
    inner, outer = (float(value) for value in np.quantile(values, TAILS))
    most = (outer - inner) / 2 or np.inf
    return inner if inner - low > most else low, outer if high - outer > most else high


def draw(panels: Panels, collection: Collection, _spec: Spec) -> Entries:
    """Draw the portraits with common colours and one bar that explains them."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.lines import Line2D

    values = np.concatenate([plot.points.loc[plot.points["what"] == "agent", "value"] for _, plot in panels])
    known = values[np.isfinite(values)]
    low, high = limits(known) if len(known) else (0.0, 1.0)
    colours = ScalarMappable(Normalize(low, high if high > low else low + 1e-9), colormaps[SEQUENTIAL])
    for axes, plot in panels:
        _draw_graph(axes, plot.points, colours)
    _fit(panels)
    entries: Entries = {}
    style: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgecolor": "black", "markeredgewidth": 0.5}
    if np.isinf(values).any():
        entries["\N{INFINITY}"] = Line2D([], [], markerfacecolor=BEYOND, **style)
    if any((plot.points.get("role") == "byzantine").any() for _, plot in panels if "role" in plot.points):
        attacker = {**style, "markeredgecolor": ATTACKER, "markeredgewidth": 1.5}
        entries["byzantine"] = Line2D([], [], markerfacecolor=UNKNOWN, **attacker)
    if np.isnan(values).any():
        entries["not known"] = Line2D([], [], markerfacecolor=UNKNOWN, **style)
    if len(known):
        axes = [axes for axes, _ in panels]
        beyond = bool((known < low).any()), bool((known > high).any())
        extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(beyond, "neither")
        bar = axes[0].figure.colorbar(
            colours, ax=axes, location="bottom", aspect=35, shrink=0.7, pad=0.02, extend=extend
        )
        bar.outline.set_linewidth(0.4)
        if high == low:
            bar.set_ticks([low])
        bar.set_label(value_label(collection, panels[0][1].metric, ""))
    return entries


def _fit(panels: Panels) -> None:
    """Take from the figure's height what graphs that are wider than high leave empty."""
    shapes = [plot.points[["x", "y"]].max() - plot.points[["x", "y"]].min() for _, plot in panels]
    tallest = max((shape["y"] / shape["x"] if shape["x"] > 0 else 1.0) for shape in shapes)
    grid, figure = panels[0][0].get_gridspec(), panels[0][0].figure
    empty = grid.nrows * max(0.0, 1 - tallest) * figure.get_figwidth() / grid.ncols
    figure.set_figheight(max(0.5 * figure.get_figheight(), figure.get_figheight() - empty))


def _draw_graph(axes: Axes, points: Frame, colours: Any) -> None:
    from matplotlib.collections import LineCollection

    nodes, edges = points[points["what"] == "agent"], points[points["what"] == "edge"]
    place = dict(zip(nodes["agent"], nodes[["x", "y"]].to_numpy(np.float64), strict=True))
    heaviest = float(edges["value"].max()) if len(edges) else 1.0
    crowd = min(1.0, CROWD * len(nodes) / max(len(edges), 1))
    shades = crowd * (0.12 + 0.5 * edges["value"].to_numpy(np.float64) / heaviest)
    lines = [(place[a], place[b]) for a, b in zip(edges["agent"], edges["other"], strict=True)]
    axes.add_collection(LineCollection(lines, colors=[(0, 0, 0, shade) for shade in shades], linewidths=0.5, zorder=1))
    values = nodes["value"].to_numpy(np.float64)
    faces = [UNKNOWN if np.isnan(value) else BEYOND if np.isinf(value) else colours.to_rgba(value) for value in values]
    size = float(np.clip(3600 / len(nodes), 14, 130))
    edged = [ATTACKER if role == "byzantine" else "black" for role in nodes.get("role", nodes["other"])]
    widths = [0.5 if colour == "black" else 1.5 for colour in edged]
    axes.scatter(nodes["x"], nodes["y"], s=size, c=faces, edgecolors=edged, linewidths=widths, zorder=2)
    if len(nodes) <= NAMED:
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size_of(4.5), "zorder": 3}
        for name, face, (x, y) in zip(nodes["agent"], faces, place.values(), strict=True):
            text = name if len(name) <= 4 else f"{name[:3]}\N{HORIZONTAL ELLIPSIS}"
            axes.text(x, y, literal(text), color=ink_on(face), **style)
    axes.set_aspect("equal", adjustable="box")
    axes.margins(0.08)
    axes.axis("off")
