"""What agents could learn of each other: a map of one run's pairs, and the largest epsilon by distance over runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...agents.errors import InputError
from ..analysis.aggregate import final_values
from ..analysis.results import Collection
from ..metrics.epsilon import PAIRS
from ..storage.files import Frame
from .figure_words import value_label
from .heat import colours_of, put_bar
from .lines import Entries, Panels
from .numbers import Plot, Spec
from .one_run import run_in_words, run_of, store_of
from .series import plot_of
from .series_style import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DISTANCE = "distance "
"""What begins the statistics of pairs at a distance."""
AGENTS_ALONE = "each other agent by itself"
"""Group of observers that a map shows, as the table of a run calls it."""
MOST_NAMES = 12
"""Names beside a map at most; of more agents every so many has one."""


def numbers(collection: Collection, spec: Spec) -> Plot:
    """Epsilon of each agent against each other one, at the end of a run.

    Raises `InputError` if the run has no such observers.
    """
    run, manifest = run_of(collection, spec)
    table = store_of(collection).load(run.partition("#")[0]).extras.get("observers")
    pairs: Frame | None = None if table is None else table.loc[table["against"] == AGENTS_ALONE]
    if pairs is None or pairs.empty:
        asked = "give the scenario observers: [agents] and run again"
        raise InputError(f"figures: a map of pairs needs agents as observers; {asked}", field=("figures",))
    points = pairs[["observer", "agent", "distance", "bound"]].assign(value=pairs["epsilon"])
    note = f"one run: {run_in_words(collection, manifest)}"
    return Plot("pairs", "observer", PAIRS.name, "", [], points.reset_index(drop=True), note=note)


def by_distance(collection: Collection, spec: Spec) -> Plot:
    """Largest epsilon of protected agents against observers at each distance, at the end of runs.

    Raises `InputError` if no run has recorded it.
    """
    trace = collection.trace
    found = trace.loc[trace["metric"] == PAIRS.name, "statistic"].unique()
    distances = sorted(int(one.removeprefix(DISTANCE)) for one in found if one.startswith(DISTANCE))
    if not distances:
        raise InputError("figures: no run has observers at a distance; give observers: [agents]", field=("figures",))
    parts = [final_values(collection, PAIRS.name, f"{DISTANCE}{k}").assign(x=float(k)) for k in distances]
    return plot_of("by_distance", "graph_distance", (PAIRS.name, "worst"), collection, spec, pd.concat(parts))


def draw(panels: Panels, collection: Collection, spec: Spec) -> Entries:
    """Draw maps with common colours: observers from left to right, agents from top to bottom."""
    values = pd.concat([plot.points["value"] for _, plot in panels], ignore_index=True)
    norm, colours = colours_of(values, spec)
    for axes, plot in panels:
        _draw_map(axes, plot, collection, norm, colours)
    put_bar([axes for axes, _ in panels], norm, colours, value_label(collection, PAIRS.name, ""))
    return {}


def _draw_map(axes: Axes, plot: Plot, collection: Collection, norm: Any, colours: Any) -> None:
    names = list(dict.fromkeys(plot.points["agent"]))
    order = [name for name in dict.fromkeys(collection.agents["agent"]) if name in names]
    cells = plot.points.pivot(index="agent", columns="observer", values="value").reindex(index=order, columns=order)
    axes.grid(False)
    axes.set_facecolor("#dddddd")
    shown = np.ma.masked_invalid(cells.to_numpy(np.float64))
    axes.pcolormesh(shown, norm=norm, cmap=colours, edgecolors="none", linewidth=0)
    step = -(-len(order) // MOST_NAMES)
    places = list(range(0, len(order), step))
    labels = [literal(str(order[k])) for k in places]
    axes.set_xticks([k + 0.5 for k in places], labels)
    axes.set_yticks([k + 0.5 for k in places], labels)
    axes.tick_params(length=0)
    axes.set_ylim(len(order), 0)
    axes.set_aspect("equal")
    axes.set_xlabel("who observes")
    axes.set_ylabel("whose data")
