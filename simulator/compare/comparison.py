"""Protocols compared run by run: what changes when all meet the same clocks, delays, losses and absences.

Runs are paired by seed at every point of the grid, and every protocol is held against one, the baseline.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from ...agents.errors import InputError
from ..analysis.apart import set_apart
from ..analysis.claimed_privacy import MARK, replayed_elsewhere
from ..analysis.comparability import Kinds
from ..analysis.labels import swept_name
from ..analysis.results import Collection
from ..analysis.summary import held_against_each_other
from ..analysis.targets import describe, per_run, target_of
from ..storage.files import Frame
from .common_random_numbers import not_shared
from .measures import AXES_TO_TARGET, Measure, measures
from .statistics import crossings, holm, less, paired_difference

SIGNIFICANT = 0.05
DRAWS = 415
"""Seed of the bootstraps: the same results give the same intervals."""


@dataclass(frozen=True)
class Comparison:
    """Every protocol against the baseline."""

    baseline: str
    """Key of the protocol that the others are held against."""
    labels: dict[str, str]
    """Label by protocol key, in drawing order."""
    grid: list[str]
    """Paths of the swept parameters."""
    differences: Frame
    """A row per measure, protocol and grid point: ``measure, title, protocol, label``, the swept parameters, ``n``
    (pairs), ``baseline_mean, mean, difference, low, high`` (95 % interval), ``method``, ``p``, ``p_holm`` (corrected
    over the protocols and grid points of a measure), ``pairing`` (how many times smaller the variance is than that of
    unpaired runs), ``finite`` and ``baseline_finite`` (pairs in which each got there), ``larger`` and ``smaller``
    (pairs in which the protocol's value is), ``least`` and ``most`` (what the mean difference may be where values are
    places of records, NaN elsewhere), ``verdict`` (better, worse, larger, smaller; empty where ``p_holm`` is not below
    0.05, where records leave open who was first, and where it is unknown whether both are of one kind)."""
    break_even: Frame
    """A row per change of sign along a numeric axis of the sweep: ``measure, title, protocol, label, axis``, the other
    swept parameters, ``at, low, high, after, before, seen``, ``points`` (values of the axis at which the difference is
    known), and ``first`` and ``then``: how the protocol stands before and after. Where the metric is another function
    at other values of the axis, ``at, low, high`` and ``seen`` are NaN."""
    target: str
    """What the target is, in words."""
    warnings: list[str]
    """Sentences about what is not of one kind, not shared, not finished or not paired."""
    names: dict[str, str] = field(default_factory=dict[str, str])
    """What tables call swept parameters, with their units, by path."""

    def _repr_html_(self) -> str:
        heads = ["title", "label", *self.grid, "n", "baseline_mean", "difference", "low", "high", "p_holm", "verdict"]
        said = "".join(f"<li>{escape(text)}</li>" for text in self.warnings)
        parts = [f"<p>Differences from {escape(self.labels[self.baseline])}, run by run.</p><ul>{said}</ul>"]
        for table, names in ((self.differences, heads), (self.break_even, list(self.break_even.columns))):
            if not table.empty:
                parts.append(table[names].to_html(index=False, border=0, float_format=lambda x: f"{x:.4g}"))
        return "".join(parts)


def compare(collection: Collection, baseline: str | None = None, *, only: Container[str] | None = None) -> Comparison:
    """Hold every protocol against a baseline, over pairs of runs with the same seed at the same grid point.

    The baseline is a protocol's key or label, by default the scenario's first; `only` has names of measures, all by
    default. Numbers that are not of one kind with the baseline's (`hushnet.simulator.analysis.comparability`) are left
    out, and a warning says so; where scales differ they are compared as means.

    Raises `InputError` if there is no such protocol, nothing to compare it with, or a seed was run twice.
    """
    chosen = _baseline(collection, baseline)
    pairs = pairs_of(collection, chosen)
    kinds = Kinds(collection, chosen)
    found = [each for each in measures(set_apart(collection, chosen)) if only is None or each.name in only]
    rng = np.random.default_rng(DRAWS)
    known = [(measure, valued(measure, _of_one_kind(measure, pairs, kinds))) for measure in found]
    rows = [row for measure, table in known for row in _measured(measure, table, collection, kinds)]
    differences = pd.DataFrame(rows)
    crossed = [row for measure, table in known for row in _break_even(measure, table, collection, kinds, rng)]
    said = [f"{MARK} {sentence}" for sentence in kinds.sentences(held_against_each_other(collection))]
    return Comparison(
        chosen,
        collection.labels,
        collection.grid,
        differences,
        pd.DataFrame(crossed),
        describe(target_of(collection)),
        [*said, *_changing(found, collection, kinds), *_warnings(collection, chosen, pairs)],
        {path: swept_name(collection, path) for path in collection.grid},
    )


def _baseline(collection: Collection, wanted: str | None) -> str:
    keys = list(collection.labels)
    if len(keys) < 2:
        raise InputError(f"there is nothing to compare {keys[0]} with; give results of two or more protocols")
    if wanted is None:
        return keys[0]
    found = [key for key, label in collection.labels.items() if wanted in (key, label)]
    if not found:
        raise InputError(f"baseline {wanted!r} is not in the results; it must be one of {', '.join(keys)}")
    return found[0]


def pairs_of(collection: Collection, baseline: str) -> Frame:
    """One row per run and its partner: ``run, protocol, seed, baseline_run`` and the grid; partners may be missing."""
    table = per_run(collection)
    keys = ["seed", *collection.grid]
    twice = table[table.duplicated(["protocol", *keys])]
    if len(twice):
        row = twice.iloc[0]
        raise InputError(
            f"protocol {row['protocol']}, seed {row['seed']} was run more than once (runs of older code lie beside new "
            "ones and no index.json says which count); run the scenario again"
        )
    theirs = table.loc[table["protocol"] == baseline, ["run", *keys]].rename(columns={"run": "baseline_run"})
    return table[table["protocol"] != baseline].merge(theirs, on=keys, how="left")


def _of_one_kind(measure: Measure, pairs: Frame, kinds: Kinds) -> Frame:
    """Pairs of protocols whose numbers are of the baseline's kind."""
    return pairs[~pairs["protocol"].isin(list(kinds.ruling(measure.metric).apart))] if measure.metric else pairs


def valued(measure: Measure, pairs: Frame) -> Frame:
    """Pairs with what a measure says of both: ``ours`` and ``theirs``, and after what places, if they are some."""
    found = {"": measure.values, "_after": measure.values if measure.after is None else measure.after}
    columns = {
        f"{name}{end}": pairs[column].map(values).astype(np.float64)
        for name, column in (("ours", "run"), ("theirs", "baseline_run"))
        for end, values in found.items()
    }
    return pairs.assign(**columns)


def groups(table: Frame, by: list[str]) -> Iterator[tuple[dict[str, Any], Frame]]:
    """Rows by swept parameters; everything at once without any."""
    if not by:
        yield {}, table
        return
    for values, group in table.groupby(by, sort=False, dropna=False):
        yield dict(zip(by, values, strict=True)), group


def _measured(measure: Measure, valued: Frame, collection: Collection, kinds: Kinds) -> list[dict[str, Any]]:
    """Rows of one measure, corrected over all protocols and grid points; no verdict where kinds are unknown.

    Runs of two protocols that a sweep does not concern stand at all its points: these rows are one test.
    """
    rows, tests = list[dict[str, Any]](), list[tuple[str, ...]]()
    labels = collection.labels
    unknown = kinds.ruling(measure.metric).unknown if measure.metric else frozenset()
    for place, here in groups(valued, collection.grid):
        for key, group in here.groupby("protocol", sort=False):
            found = asdict(paired_difference(group["ours"], group["theirs"]))
            if found["n"]:
                rows.append({**_head(measure, str(key), labels), **place, **columns_of(found), **least_and_most(group)})
                runs = group[["run", "baseline_run"]].astype(str).replace(r"#\d+$", "", regex=True)
                tests.append(tuple(runs.to_numpy().ravel()))
    once = dict(zip(tests, (row["p"] for row in rows), strict=True))
    corrected = dict(zip(once, holm(list(once.values())).tolist(), strict=True))
    for row, test in zip(rows, tests, strict=True):
        p = corrected[test]
        verdict = "" if row["protocol"] in unknown else verdict_of(row, p, measure.more_is_better)
        row |= {"p_holm": p, "verdict": verdict}
    return rows


def _head(measure: Measure, protocol: str, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "measure": measure.name,
        "title": measure.title,
        "protocol": protocol,
        "label": labels[protocol],
    }


def columns_of(found: dict[str, Any]) -> dict[str, Any]:
    """A row's numbers, from the fields of a `Difference`."""
    return {
        "n": found["n"],
        "baseline_mean": found["theirs"],
        "mean": found["ours"],
        "difference": found["mean"],
        **{name: found[name] for name in ("low", "high", "method", "p", "pairing", "finite")},
        "baseline_finite": found["theirs_finite"],
        "larger": found["larger"],
        "smaller": found["smaller"],
    }


def least_and_most(group: Frame) -> dict[str, float]:
    """Bound the mean difference of values that are known up to the interval between record instants only."""
    both = group[np.isfinite(group["ours"]) & np.isfinite(group["theirs"])]
    if (both["ours_after"] == both["ours"]).all() and (both["theirs_after"] == both["theirs"]).all():
        return {"least": np.nan, "most": np.nan}
    return {
        "least": float((both["ours_after"] - both["theirs"]).mean()),
        "most": float((both["ours"] - both["theirs_after"]).mean()),
    }


def verdict_of(row: dict[str, Any], p: float, more_is_better: bool | None) -> str:
    """Return the verdict on a protocol against the baseline; empty if not significant, or too close for the records."""
    if not p < SIGNIFICANT or (row["method"] != "sign test" and row["least"] < 0 < row["most"]):
        return ""
    up = row["larger"] > row["smaller"] if row["method"] == "sign test" else row["difference"] > 0
    return _stands(bool(up), more_is_better)


def _stands(up: bool, more_is_better: bool | None) -> str:
    if more_is_better is None:
        return "larger" if up else "smaller"
    return "better" if up == more_is_better else "worse"


def _break_even(
    measure: Measure, valued: Frame, collection: Collection, kinds: Kinds, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Changes of sign of the mean difference along every numeric axis of the sweep.

    Where a metric is another function from value to value, its differences are of no common unit: the sign is known at
    both, and neither a place between them nor what resampled seeds would say of it.
    """
    labels = collection.labels
    differences = valued.assign(difference=less(valued["ours"], valued["theirs"]))
    for axis in collection.grid:
        if not pd.api.types.is_numeric_dtype(valued[axis]) or pd.api.types.is_bool_dtype(valued[axis]):
            continue
        others = [path for path in collection.grid if path != axis]
        nowhere = dict.fromkeys(("at", "low", "high", "seen"), np.nan) if _changes(measure, axis, kinds) else {}
        for key, ours in differences.groupby("protocol", sort=False):
            for place, here in groups(ours, others):
                table = here.groupby([axis, "seed"])["difference"].first().unstack("seed")
                x = table.index.to_numpy(np.float64)
                for found in crossings(x, table.to_numpy(np.float64), log=_geometric(x), rng=rng):
                    stands = [_stands(up, measure.more_is_better) for up in (not found.rising, found.rising)]
                    numbers = {name: value for name, value in asdict(found).items() if name != "rising"}
                    head = {**_head(measure, str(key), labels), "axis": axis, **place}
                    yield {**head, **numbers, **nowhere, "first": stands[0], "then": stands[1]}


def _changes(measure: Measure, axis: str, kinds: Kinds) -> bool:
    """True if a measure is in units of a metric that is a different function at different values of an axis."""
    return bool(measure.metric) and measure.name not in AXES_TO_TARGET and kinds.changes_along(measure.metric, axis)


def _changing(found: list[Measure], collection: Collection, kinds: Kinds) -> Iterator[str]:
    """Sentences about metrics whose numbers at two points of the sweep are not of one kind."""
    for axis in collection.grid:
        for metric in dict.fromkeys(measure.metric for measure in found if _changes(measure, axis, kinds)):
            yield (
                f"{metric} is another function at other values of {axis}: its numbers are compared at each value, and "
                "not from one to another; where differences change sign is not interpolated."
            )


def _geometric(x: np.ndarray[Any, Any]) -> bool:
    """True if positive values are spaced more evenly on a logarithmic axis than on a linear one."""
    if len(x) < 3 or not (x > 0).all():
        return False
    spread = [np.std(steps) / np.mean(steps) for steps in (np.diff(x), np.diff(np.log(x)))]
    return bool(spread[1] < spread[0])


def _warnings(collection: Collection, baseline: str, pairs: Frame) -> list[str]:
    manifests = collection.by_run
    said = []
    for key, group in pairs.groupby("protocol", sort=False):
        label, other = collection.labels[str(key)], collection.labels[baseline]
        whole = group.dropna(subset="baseline_run")
        met = ((manifests[a], manifests[b]) for a, b in zip(whole["run"], whole["baseline_run"], strict=True))
        for words in not_shared(met):
            said.append(f"{label} and {other} did not share {words}.")
        if len(whole) < len(group):
            said.append(f"{len(group) - len(whole)} of {len(group)} runs of {label} have no partner and do not count.")
    for key, label in collection.labels.items():
        here = [manifest for manifest in collection.manifests if manifest["protocol"] == key]
        stopped = [str(manifest.get("status")) for manifest in here if manifest.get("status") != "complete"]
        if stopped:
            kinds = ", ".join(dict.fromkeys(stopped))
            said.append(
                f"{len(stopped)} of {len(here)} runs of {label} did not reach their end ({kinds}); final values and "
                "means over time leave their pairs out, which flatters it."
            )
        elsewhere = sum(replayed_elsewhere(one) for one in here if one.get("privacy"))
        if elsewhere:
            said.append(
                f"{elsewhere} of {len(here)} runs of {label} have no verified epsilon to compare: its privacy contract "
                "was replayed at other points of the sweep, not there."
            )
    unfinished = collection.missing + len(collection.index.get("failed") or [])
    if unfinished:
        said.append(f"{unfinished} runs failed or have not been finished.")
    return [f"{MARK} {sentence}" for sentence in said]
