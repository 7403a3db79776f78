"""First section of the page: the winner at each point of the sweep, and where no difference is significant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

from ...agents.suggestions import counted
from ..analysis.results import Collection
from ..compare.winners import Contest, Standings, standings
from ..figures.series_style import COLOURS
from .grid import Grid, value_text

CAUSES = {
    "open": "differences are within chance",
    "nothing to test": "differences do not vary, so that there is nothing to test",
    "too few pairs": "fewer than two pairs of runs",
    "records too coarse": "records are too far apart to tell who was first",
    "kinds unknown": "nobody knows whether both numbers are of one kind",
    "not of one kind": "the numbers are not of one kind",
}
"""Why nobody is ahead, in words."""
MOST_NAMED = 3
METHOD = "pairs of runs with the same seed, 5 % level, Holm’s correction over all pairs of protocols at a point"


def winners(collection: Collection, grid: Grid) -> list[dict[str, Any]]:
    """One part for each measure, the one that matters most first; none where there is nothing to compare."""
    return [_part(found, collection, grid) for found in standings(collection)]


def _part(found: Standings, collection: Collection, grid: Grid) -> dict[str, Any]:
    labels = collection.labels
    # The axis with most values goes across, the others down.
    across = max(grid.axes, key=lambda axis: (axis.numeric, len(axis.values)), default=None)
    down = [axis for axis in grid.axes if axis is not across]
    cells = {grid.ranks(place.at): _cell(place, labels, grid) for place in found.places}
    rows = []
    for at in product(*(range(len(axis.values)) for axis in down)):
        fixed = dict(zip(down, at, strict=True))
        lines = [{**fixed, across: rank} for rank in range(len(across.values))] if across else [fixed]
        ranks = [tuple(line[axis] for axis in grid.axes) for line in lines]
        if any(each in cells for each in ranks):
            heads = [value_text(axis.values[rank]) for axis, rank in fixed.items()]
            rows.append({"heads": heads, "cells": [cells.get(each) for each in ranks]})
    better = "more is better" if found.more_is_better else "less is better"
    return {
        "measure": found.measure,
        "title": found.title,
        "better": better,
        "sentence": sentence(found, labels),
        "across": across.name if across else "",
        "columns": [value_text(value) for value in across.values] if across else [],
        "down": [axis.name for axis in down],
        "rows": rows,
    }


def sentence(found: Standings, labels: dict[str, str]) -> str:
    """Return one sentence on the winners by one measure, with the protocols' labels."""
    better = "more is better" if found.more_is_better else "less is better"
    begin = f"By {found.title} ({better}), "
    places = found.places
    won = Counter(place.winner for place in places if place.winner)
    still = [place for place in places if not place.winner]
    if len(places) == 1:
        place = places[0]
        if place.winner:
            pairs = min((d.n for d in place.duels if place.winner in (d.one, d.other)), default=0)
            others = "the other protocol" if len(place.means) == 2 else "each other protocol"
            ahead = f"{labels[place.winner]} is significantly ahead of {others}"
            return f"{begin}{ahead} ({pairs} pairs of runs, 5 % level)."
        return f"{begin}it is open who is ahead: {named(place.leaders, labels)} ({why(place)})."
    parts = [f"{labels[key]} wins at {count}" for key, count in won.most_common()]
    if not parts:
        reasons = list(dict.fromkeys(cause for place in still for cause in place.causes))
        said = "; ".join(CAUSES[cause] for cause in reasons)
        return f"{begin}nobody is significantly ahead anywhere: at all {len(places)} points it is open ({said})."
    end = f", and at {len(still)} it is open" if still else ""
    parts[0] += f" of {counted(len(places), 'point')}"
    return f"{begin}{', '.join(parts)}{end}."


def why(place: Contest) -> str:
    """Return the reasons why a point is open."""
    return "; ".join(CAUSES[cause] for cause in place.causes) or "nobody is ahead of all others"


def named(keys: Sequence[str], labels: dict[str, str]) -> str:
    """Some protocols, as many as one reads."""
    shown = [labels[key] for key in keys[:MOST_NAMED]]
    more = len(keys) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _cell(place: Contest, labels: dict[str, str], grid: Grid) -> dict[str, Any]:
    rank = list(labels).index(place.winner) if place.winner else -1
    means = ", ".join(f"{labels[key]} {mean:.4g}" for key, mean in place.means.items())
    return {
        "winner": labels[place.winner] if place.winner else "",
        "colour": COLOURS[rank % len(COLOURS)] if rank >= 0 else "",
        "text": labels[place.winner] if place.winner else f"open: {named(place.leaders, labels)}",
        "why": f"significant; means: {means}" if place.winner else f"{why(place)}; means: {means}",
        "at": ",".join(map(str, grid.ranks(place.at))),
    }
