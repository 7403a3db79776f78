"""One run by itself: its own curves and what each of its agents ended with, for whoever follows a point to its runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..analysis.results import Collection
from ..figures.one_run import store_of
from ..figures.portrait import layout, own_places
from .charts import metric_id
from .grid import Grid
from .recording import RunRecord

NUMBERS = 160_000
"""Numbers of all curves of single runs together, and likewise of all their agents."""

TIMELINE_NUMBERS = 60_000
"""Numbers of all timelines together; where a dozen instants of each run take more, there are none."""

GRAPH_NUMBERS = 12_000
"""Numbers of all graphs together."""

TIMELINES = 6
"""Numbers of an instant of a timeline, at most."""

PLACES = (12, 80)
"""Places of a run's curve: as many as the numbers allow, within these limits."""


def single_runs(collection: Collection, grid: Grid, start: dict[str, Any], recording: RunRecord) -> dict[str, Any]:
    """What the page can show of every single run.

    Where all metrics would take too many numbers, only the one that the page's curves start with is kept, and where
    all agents would, none are.

    Parameters
    ----------
    collection : Collection
    grid : Grid
    start : dict
        The ``metric`` that curves start with, and the ``agents``' column that spreads start with.
    recording : RunRecord
        Of all metrics, each of one kind (`hushnet.simulator.analysis.apart`).

    Returns
    -------
    dict
        ``runs`` by name: series ``s``, times ``x``, ``m`` a curve by metric, ``a`` the agents' values, ``g`` the graph,
        ``t`` the timeline: times ``x`` and rates from each to the next by name.
        ``agents``, what they are, or "" where there are none. ``graphs`` by name: places ``at`` and ``edges``.
    """
    pairs, count = recording.pairs, len(collection.runs)
    if NUMBERS // (count * (1 + len(pairs))) < PLACES[0]:
        pairs = [pair for pair in pairs if metric_id(pair) == start["metric"]]
    most = int(np.clip(NUMBERS // (count * (1 + len(pairs))), *PLACES))
    whole, agents = recording, _agents(collection, start["agents"])
    recording, instants = recording.only(pairs), TIMELINE_NUMBERS // (count * TIMELINES)
    runs: dict[str, Any] = {}
    for rank, series in enumerate(grid.series):
        for run in series.runs:
            x, values = recording.own(run, most)
            known = {metric_id(pair): _short(column) for pair, column in zip(pairs, values.T, strict=True)}
            entry = {
                "s": rank,
                "x": _short(x),
                "m": {name: y for name, y in known.items() if any(v is not None for v in y)},
            }
            if instants >= PLACES[0]:
                times, rates = whole.pace(run, min(instants, PLACES[1]))
                entry["t"] = {"x": _short(times)} | {name: _short(rate) for name, rate in rates.items()}
            if agents is not None and collection.runs[run] in agents:
                entry["a"] = _short(agents[collection.runs[run]][start["agents"]].to_numpy(np.float64))
                entry["g"] = (collection.manifests[run].get("topology") or {}).get("graph")
            runs[collection.runs[run]] = entry
    return {
        "runs": runs,
        "metrics": [metric_id(pair) for pair in pairs],
        "agents": start["agents"] if agents is not None else "",
        "graphs": _graphs(collection, agents),
    }


def _agents(collection: Collection, column: str) -> dict[str, pd.DataFrame] | None:
    """The agents of every run, in their order; None if they have no such column or are too many."""
    table = collection.agents
    if column not in table.columns or not 0 < len(table) <= NUMBERS:
        return None
    return {str(run): rows for run, rows in table.groupby("run", sort=False)}


def _graphs(collection: Collection, agents: dict[str, pd.DataFrame] | None) -> dict[str, Any]:
    """Graphs by their name: (n, 2) places of the agents, laid out as portraits are, and pairs of neighbours."""
    found: dict[str, Any] = {}
    left = GRAPH_NUMBERS
    for run, manifest in zip(collection.runs, collection.manifests, strict=True):
        name = (manifest.get("topology") or {}).get("graph")
        if agents is None or run not in agents or name is None or name in found:
            continue
        edges = store_of(collection).load_graph(name)
        edges = edges[edges["tail"] < edges["head"]]
        left -= 2 * (len(agents[run]) + len(edges))
        if left < 0:
            break
        pairs = tuple(zip(edges["tail"].tolist(), edges["head"].tolist(), edges["weight"].tolist(), strict=True))
        places = own_places(agents[run])
        places = layout(len(agents[run]), pairs) if places is None else places
        found[name] = {"at": np.round(places, 4).tolist(), "edges": [[tail, head] for tail, head, _ in pairs]}
    return found


def _short(values: NDArray[np.float64]) -> list[float | None]:
    """Four digits of finite numbers, else None."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values.tolist()]
