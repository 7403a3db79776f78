"""Winners at each point of a sweep: every protocol against every other, and how significant differences are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from ..analysis.aggregate import mean_interval
from ..analysis.apart import own_name, set_apart
from ..analysis.comparability import Kinds
from ..analysis.results import Collection
from ..analysis.targets import per_run
from ..storage.files import Frame
from .comparison import SIGNIFICANT, columns_of, groups, least_and_most, pairs_of, valued, verdict_of
from .measures import Measure, measures
from .statistics import NOTHING, holm, paired_difference

Cause = Literal[
    "", "open", "nothing to test", "too few pairs", "records too coarse", "kinds unknown", "not of one kind"
]
"""Why nobody is ahead of the other: nothing (somebody is), a difference that is not significant, differences that are
all the same, fewer than two pairs, records between which both got there, and numbers that may not be compared."""
TARGET = "time_to_target"


@dataclass(frozen=True)
class Duel:
    """Two protocols at one point."""

    one: str
    other: str
    """`one` and `other`: Keys, in the order of the scenario."""
    ahead: str
    """The key of the better one where the difference is significant; else empty."""
    cause: Cause
    """Why nobody is ahead."""
    n: int
    """Pairs of runs."""
    p: float
    """Corrected by Holm's method over all duels of the point; NaN where there is no test."""


@dataclass(frozen=True)
class Contest:
    """A point of the sweep."""

    at: dict[str, Any]
    """Swept values by path."""
    means: dict[str, float]
    """Mean over the seeds by protocol; infinite where some run never got there."""
    duels: tuple[Duel, ...]
    """One for each unordered pair."""
    leaders: tuple[str, ...]
    """Those that nobody is significantly ahead of, best mean first."""
    winner: str
    """Who is significantly ahead of each other one; empty where that is open."""

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Reasons why the contest among the leaders is open."""
        lead = set(self.leaders)
        return tuple(dict.fromkeys(d.cause for d in self.duels if d.cause and {d.one, d.other} <= lead))


@dataclass(frozen=True)
class Standings:
    """One measure at every point."""

    measure: str
    title: str
    more_is_better: bool
    places: tuple[Contest, ...]
    """In the order of the runs."""


def standings(collection: Collection, most: int = 3) -> list[Standings]:
    """Rank the protocols by the measures that matter most, at most so many, at each point of a sweep.

    They are the time to the target where the scenario has one, then what the task is measured by, then the others in
    the order of tables; none where there is one protocol only, or nothing has a better and a worse.
    """
    if len(collection.labels) < 2:
        return []
    directed = [m for m in measures(set_apart(collection)) if m.more_is_better is not None and m.metric]
    chosen = sorted(directed, key=lambda measure: _weight(measure, collection))[:most]
    tables = {key: pairs_of(collection, key) for key in list(collection.labels)[:-1]} if chosen else {}
    kinds = {key: Kinds(collection, key) for key in tables}
    return [_standings(measure, collection, tables, kinds) for measure in chosen]


def _weight(measure: Measure, collection: Collection) -> int:
    """Return a measure's rank: a target of the scenario first, then the task's metric at the end, then others."""
    own = str((collection.manifests[0].get("task") or {}).get("metric", ""))
    asked = bool(collection.index.get("target"))
    first = [TARGET] if asked else []
    wanted = [*first, own, "objective gap", *([] if asked else [TARGET])]
    return wanted.index(measure.name) if measure.name in wanted else len(wanted)


def _standings(
    measure: Measure, collection: Collection, tables: dict[str, Frame], kinds: dict[str, Kinds]
) -> Standings:
    keys, found = list(collection.labels), dict[tuple[Any, ...], list[tuple[str, str, Any]]]()
    at: dict[tuple[Any, ...], dict[str, Any]] = {}
    for rank, key in enumerate(keys[:-1]):
        later = tables[key][tables[key]["protocol"].isin(keys[rank + 1 :])]
        for place, here in groups(valued(measure, later), collection.grid):
            point = tuple(map(repr, place.values()))
            at.setdefault(point, place)
            found.setdefault(point, []).extend((key, str(other), pairs) for other, pairs in here.groupby("protocol"))
    better = bool(measure.more_is_better)
    means = _means(measure, collection)
    places = [_place(at[point], duels, means.get(point, {}), measure, kinds, better) for point, duels in found.items()]
    return Standings(measure.name, measure.title, better, tuple(places))


def _means(measure: Measure, collection: Collection) -> dict[tuple[Any, ...], dict[str, float]]:
    runs = per_run(collection)
    runs = runs.assign(value=runs["run"].map(measure.values).astype(np.float64)).dropna(subset="value")
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    for place, here in groups(runs, collection.grid):
        point = tuple(map(repr, place.values()))
        by_protocol = here.groupby("protocol")["value"]
        found[point] = {str(key): float(mean_interval(values)[0]) for key, values in by_protocol}
    return found


def _place(
    at: dict[str, Any],
    duels: Sequence[tuple[str, str, Frame]],
    means: dict[str, float],
    measure: Measure,
    kinds: dict[str, Kinds],
    more_is_better: bool,
) -> Contest:
    rows = [_row(one, other, pairs, measure, kinds[one]) for one, other, pairs in duels]
    corrected = holm([row["p"] for row in rows])
    judged = tuple(_duel(row, float(p), more_is_better) for row, p in zip(rows, corrected, strict=True))
    ahead = {(d.ahead, d.other if d.ahead == d.one else d.one) for d in judged if d.ahead}
    beaten = {loser for _, loser in ahead}
    order = sorted(means, key=lambda key: -means[key] if more_is_better else means[key])
    leaders = tuple(key for key in order if key not in beaten)
    wins = [key for key in leaders if all((key, other) in ahead for other in means if other != key)]
    return Contest(at, means, judged, leaders, wins[0] if wins and len(means) > 1 else "")


def _row(one: str, other: str, pairs: Frame, measure: Measure, kinds: Kinds) -> dict[str, Any]:
    """Numbers of a duel; ours are those of the other one, as of whoever is held against a baseline."""
    ruling = kinds.ruling(own_name(measure.metric))
    apart = other in ruling.apart
    found = paired_difference([] if apart else pairs["ours"], [] if apart else pairs["theirs"], interval=False)
    row = {**columns_of(asdict(found)), **least_and_most(pairs), "one": one, "other": other}
    row["cause"] = "not of one kind" if apart else "kinds unknown" if other in ruling.unknown else ""
    return row


def _duel(row: dict[str, Any], p: float, more_is_better: bool) -> Duel:
    verdict = "" if row["cause"] else verdict_of(row, p, more_is_better)
    ahead = {"better": row["other"], "worse": row["one"]}.get(verdict, "")
    return Duel(row["one"], row["other"], ahead, "" if ahead else _cause(row, p), row["n"], p)


def _cause(row: dict[str, Any], p: float) -> Cause:
    if row["cause"]:
        return row["cause"]
    if row["n"] < 2:
        return "too few pairs"
    if row["method"] == NOTHING:
        return "nothing to test"
    return "records too coarse" if p < SIGNIFICANT else "open"
