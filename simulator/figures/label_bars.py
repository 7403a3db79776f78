"""Training rows of every agent of one run by their label, as stacked bars: who holds what."""

from __future__ import annotations

import numpy as np

from ...agents.errors import InputError
from ..analysis.results import Collection
from .lines import Entries, Panels
from .numbers import Plot, Spec
from .one_run import run_in_words, run_of
from .series_style import SEQUENTIAL, literal

COUNTS = "samples_of_"
"""What begins the columns of the table of agents that count rows of a label."""
MOST_LABELS = 20
"""Labels that have an entry in the legend; more have none."""
ROOM = 0.2
"""Share of the space of an agent that is left between two bars."""


def numbers(collection: Collection, spec: Spec) -> Plot:
    """Training rows of each agent by label, for all labels and agents; raises `InputError` if labels are no classes."""
    run, manifest = run_of(collection, spec)
    agents = collection.agents[collection.agents["run"] == run]
    counts = [name for name in agents if str(name).startswith(COUNTS) and agents[name].notna().all()]
    if not counts:
        raise InputError(
            "figures: the task's labels are no classes, so agents hold no rows of them", field=("figures",)
        )
    points = agents.melt(id_vars="agent", value_vars=counts, var_name="label")
    points["label"] = points["label"].str.removeprefix(COUNTS)
    note = f"one run: {run_in_words(collection, manifest)}"
    return Plot("labels", "agent", "samples", "", [], points[["agent", "label", "value"]], note=note)


def draw(panels: Panels, _collection: Collection, _spec: Spec) -> Entries:
    """Draw a bar for each agent, which has a part for each label, and say which colour is which."""
    from matplotlib import colormaps

    labels = list(dict.fromkeys(label for _, plot in panels for label in plot.points["label"]))
    colours = dict(zip(labels, colormaps[SEQUENTIAL](np.linspace(0, 1, len(labels))), strict=True))
    entries: Entries = {}
    for axes, plot in panels:
        table = plot.points.pivot(index="agent", columns="label", values="value")
        table = table.reindex(list(dict.fromkeys(plot.points["agent"])))
        below = np.zeros(len(table))
        for label in (one for one in labels if one in table):
            held = table[label].to_numpy(np.float64)
            bars = axes.bar(range(len(table)), held, 1 - ROOM, below, color=colours[label], linewidth=0)
            below += held
            if len(labels) <= MOST_LABELS:
                entries.setdefault(literal(f"label {label}"), bars)
        axes.set_xticks([])
        axes.grid(axis="x", visible=False)
        axes.set_xlabel("agents")
        axes.set_ylabel("training rows")
    return entries
