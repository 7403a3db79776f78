"""Events of a run, as plain numbers that a page can draw: no model, no vector, no record of the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..figures.graph_layout import graph_layout
from ..language.message_window import DELIVERED, FATES
from ..network.topology import TOPOLOGIES
from .rerun import Rerun

COLOURS = 12
"""Colours that models are told apart by."""
AGES = 200
"""Instants at which the age of what agents know is computed."""
MOST_EDGES = 6000
"""Edges that are drawn; further ones carry their messages all the same."""
DIGITS = 4
EPSILONS = ("epsilon_claimed", "epsilon_verified")


def animation(run: Rerun, grid: Sequence[str]) -> dict[str, Any]:
    """One run for the page, with its place in a sweep in words.

    It has ``messages``, columns ``from``, ``to``, ``start``, ``end`` (None where nobody knows) and ``fate`` (a rank of
    `FATES`); ``steps``, ``absences``, ``epsilons``, ``age``, ``models`` (None of private runs), ``places``.
    """
    manifest, events = run.entry.manifest, run.events
    ranks = {str(name): rank for rank, name in enumerate(run.task.ids)}
    messages = events[events["what"] == "message"]
    steps = events[events["what"] == "step"]
    absences = events[events["what"] == "absence"]
    topology = manifest["scenario"]["topology"]
    kind = TOPOLOGIES.get(str(topology.get("kind")))
    places = run.task.places
    if places is None:
        weights = run.graph.weights.tolist()
        pairs = zip(run.graph.tails.tolist(), run.graph.heads.tolist(), weights, strict=True)
        edges = tuple(pair for pair in pairs if pair[0] < pair[1])
        places = graph_layout(run.task.agents, edges, getattr(kind, "drawn_as", ""), topology.get("rows"))
    places = _scaled(np.asarray(places, dtype=np.float64))
    seen = _seen(run)
    return {
        "title": str(manifest["label"]),
        "seed": manifest["seed"],
        "seeds": [manifest["data_seed"], manifest["run_seed"]],
        "grid": list(grid),
        "network": network(manifest["scenario"]),
        "agents": [name for name in ranks if ranks[name] in seen],
        "of": run.task.agents,
        "places": np.round(places[list(seen)], DIGITS).tolist(),
        "edges": _edges(run, seen),
        "messages": {
            "from": [seen[ranks[name]] for name in messages["agent"]],
            "to": [seen[ranks[name]] for name in messages["other"]],
            "start": _times(messages["start"]),
            "end": _times(messages["end"]),
            "fate": [FATES.index(fate) for fate in messages["fate"]],
        },
        "steps": {"agent": [seen[ranks[name]] for name in steps["agent"]], "at": _times(steps["end"])},
        "absences": [
            [seen[ranks[name]], *_times([start, end])]
            for name, start, end in zip(absences["agent"], absences["start"], absences["end"], strict=True)
        ],
        "epsilons": {name: _series(run, name) for name in EPSILONS},
        "age": age(run),
        "models": None if run.private else _models(run, list(seen)),
        "private": run.private,
    }


def _scaled(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The places within the unit square."""
    low, high = points.min(axis=0), points.max(axis=0)
    return (points - low) / np.where(high > low, high - low, 1.0)


def network(scenario: dict[str, Any]) -> str:
    """Latency and loss in words, for a title."""
    latency, loss = scenario["network"]["latency"], scenario["network"]["loss"]
    words = [f"{latency['kind']} delays", *(f"{name} {value:g}" for name, value in latency.items() if _number(value))]
    lost = loss.get("probability")
    return ", ".join(words) + (f"; {100 * lost:g} % lost" if lost else "")


def age(run: Rerun) -> dict[str, list[float | None]]:
    """Return the age of what agents know of their neighbours: time since the newest message of each edge was sent.

    It has ``at``, instants, and ``mean``, age at each, over the directed edges that carried a message before, in time
    units.
    """
    first, last = run.window
    messages = run.events[(run.events["what"] == "message") & (run.events["fate"] == DELIVERED)]
    instants = np.linspace(first, last, AGES)
    edge = messages["agent"].astype(str) + "\n" + messages["other"].astype(str)
    total, count = np.zeros(AGES), np.zeros(AGES)
    for _, part in messages.groupby(edge, sort=False):
        ends = part["end"].to_numpy(dtype=np.float64)
        order = np.argsort(ends, kind="stable")
        newest = np.maximum.accumulate(part["start"].to_numpy(dtype=np.float64)[order])
        known = np.searchsorted(ends[order], instants, side="right")
        there = known > 0
        total[there] += instants[there] - newest[known[there] - 1]
        count += there
    with np.errstate(invalid="ignore"):
        mean = total / count
    return {"at": _times(instants), "mean": _times(mean)}


def _seen(run: Rerun) -> dict[int, int]:
    """Agents that are shown, by their index, in the order of the graph: those of the events, or all."""
    if run.shown is None:
        return {agent: agent for agent in range(run.task.agents)}
    return {agent: place for place, agent in enumerate(np.flatnonzero(run.shown).tolist())}


def _edges(run: Rerun, seen: dict[int, int]) -> list[list[int]]:
    pairs = zip(run.graph.tails.tolist(), run.graph.heads.tolist(), strict=True)
    return [[seen[a], seen[b]] for a, b in pairs if a < b and a in seen and b in seen][:MOST_EDGES]


def _series(run: Rerun, metric: str) -> list[list[float | None]]:
    """A metric's worst agent over time, where it was recorded and is finite; None for infinite."""
    rows = run.trace[(run.trace["metric"] == metric) & (run.trace["statistic"] == "worst")]
    return [[_time(at), _time(value)] for at, value in zip(rows["time"], rows["value"], strict=True)]


def _models(run: Rerun, shown: list[int]) -> dict[str, Any] | None:
    """Colours of models at instants: ranks along the direction in which models of the whole run differ most.

    No number of a model is shown: one of `COLOURS` ranks for each agent and instant.
    """
    if not run.looks:
        return None
    models = np.stack([look for _, look in run.looks])
    flat = models.reshape(-1, models.shape[2])
    finite = np.isfinite(flat).all(axis=1)
    if not finite.any():
        return None
    centred = flat[finite] - flat[finite].mean(axis=0)
    _, _, directions = np.linalg.svd(centred[-4 * models.shape[1] :], full_matrices=False)
    along = np.zeros(len(flat))
    along[finite] = centred @ directions[0]
    low, high = np.quantile(along[finite], [0.02, 0.98])
    ranks = np.clip(COLOURS * (along - low) / (high - low if high > low else 1.0), 0, COLOURS - 1).astype(np.int64)
    table = ranks.reshape(models.shape[:2])[:, shown]
    return {"at": _times([at for at, _ in run.looks]), "ranks": table.tolist(), "colours": COLOURS}


def _times(values: Any) -> list[float | None]:
    return [_time(value) for value in values]


def _time(value: Any) -> float | None:
    number = float(value)
    return round(number, DIGITS) if math.isfinite(number) else None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
