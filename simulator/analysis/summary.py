"""Summary of an experiment: one row per protocol and grid point, and every privacy claim beside its check."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..metrics.epsilon import VERIFIED
from ..metrics.metric import of_learning
from .aggregate import final_values, mean_interval, resolve, series
from .apart import set_apart
from .claimed_privacy import MARK, PASSED, ClaimedPrivacy, briefly, claim_of, epsilon_text
from .labels import column_name, swept_name
from .results import Collection
from .trivial_values import at_places, axes_that_matter, baselines, unbeaten, with_baselines

COLUMNS = {"vectors_with_start": "with start"}
"""What columns are called whose name is too long."""


def summarise(collection: Collection) -> pd.DataFrame:
    """Final numbers, one row per protocol and grid point.

    Columns are ``protocol, label``, the swept parameters, ``n`` (runs that reached their end), ``stopped`` (runs that
    did not), per metric its mean and ``<metric> half_width`` (95 % t interval over runs), ``vectors`` and its
    half-width, the same with those exchanged before the start where there are some, ``epsilon_claimed``,
    ``epsilon_verified`` (the largest over runs; NaN without privacy), ``delta`` and ``flagged`` (whether a claim is
    below what was verified).
    """
    collection, grid = set_apart(collection), collection.grid
    metrics = of_learning(dict.fromkeys(collection.trace["metric"]))
    finals = {}
    for name in [*metrics, "vectors", *(["vectors_with_start"] if collection.started_with_vectors else [])]:
        metric, statistic = resolve(collection, name)
        finals[column_of(metric, statistic)] = final_values(collection, metric, statistic).set_index("run")["value"]
    rows = []
    for key, group in series(collection.places, collection.labels, grid):
        finished = [run for run in group["run"] if run in collection.complete]
        row = {"protocol": key[0], "label": collection.labels[key[0]], **dict(zip(grid, key[1:], strict=True))}
        row |= {"n": len(finished), "stopped": len(group) - len(finished)}
        for column, values in finals.items():
            mean, half, _ = mean_interval(values.reindex(finished).to_numpy(np.float64))
            row |= {column: mean, f"{column} half_width": half}
        rows.append(row | _privacy_columns(claim_of(collection.by_run[run] for run in group["run"])))
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class TrivialRow:
    """Row of the summary with the values of a trivial prediction."""

    label: str
    at: Mapping[str, Any]
    """Values of the swept parameters that it depends on, by path."""
    values: Mapping[str, tuple[float, float]]
    """Mean and half-width over seeds, by the summary's column."""


def trivial_rows(collection: Collection) -> list[TrivialRow]:
    """Trivial predictions, a row for each; where one changes along the sweep, a row for each point of it."""
    apart, rows = set_apart(collection), []
    seeds = apart.seeds
    tables = {column_of(*resolve(apart, metric)): baselines(apart, metric) for metric in with_baselines(apart)}
    for name in dict.fromkeys(str(name) for table in tables.values() for name in table):
        known = {column: table[name].dropna() for column, table in tables.items() if name in table}
        for at, runs in at_places(apart, axes_that_matter(apart, known.values())):
            values = {}
            for column, numbers in known.items():
                here = numbers[numbers.index.isin(runs)]
                if len(here):
                    mean, half, _ = mean_interval(here.groupby(seeds).mean().to_numpy(np.float64))
                    values[column] = (float(mean), float(half))
            rows.append(TrivialRow(f"({name})", at, values))
    return rows


def print_summary(collection: Collection, console: Console) -> None:
    """Print the summary as a table, and below it every claim that does not hold and what it assumes.

    Nothing may be cut off: a narrow console gets two-line cells, and a yet narrower one lines that are too long.
    """
    table = _table(collection, " ")
    print_whole(table if least_width(table, console) <= console.width else _table(collection, "\n"), console)
    for line, loud in notes_on(collection):
        console.print(Text(line, style="bold red" if loud else "dim"))


def least_width(table: Table, console: Console) -> int:
    """Columns of a terminal that a table needs, so that nothing is cut off."""
    return console.measure(table, options=console.options.update(width=1000)).minimum


def print_whole(table: Table, console: Console) -> None:
    """Print a table whole: in a window that is too narrow its lines are too long rather than cut off."""
    least = least_width(table, console)
    table.width = least if least > console.width else None
    console.print(table, crop=False)


def fix_widths(table: Table) -> Table:
    """Make columns of numbers so wide that none is wrapped or cut."""
    for column in table.columns:
        if column.no_wrap:
            cells = [str(cell) for cell in (column.header, *column.cells)]
            column.min_width = max(len(line) for cell in cells for line in cell.split("\n"))
    return table


def _table(collection: Collection, between: str) -> Table:
    """The summary with a space or a line break between mean and half-width."""
    frame = summarise(collection)
    metrics = [name.removesuffix(" half_width") for name in frame.columns if name.endswith(" half_width")]
    private = bool(frame["epsilon_claimed"].notna().any() or frame["epsilon_verified"].notna().any())
    epsilons = ["\u03b5\nclaimed", "\u03b5\nverified"] if private else []
    swept = [swept_name(collection, path) for path in collection.grid]
    counted = "; vectors do not count what was exchanged before the start" if collection.started_with_vectors else ""
    table = Table(caption=f"mean \N{PLUS-MINUS SIGN} 95 % t interval over n runs{counted}")
    longest = max(len(word) for label in frame["label"] for word in str(label).split() or [""])
    table.add_column("protocol", overflow="fold", min_width=min(max(longest, 8), 20))
    for name in swept:
        table.add_column(escape(name), overflow="fold", min_width=4)
    for name in [*metrics, *epsilons, "n"]:
        shown = COLUMNS.get(str(name)) or column_name(collection, *parted(str(name)))
        table.add_column(escape(shown.replace(" ", between)), justify="right", no_wrap=True)
    for row in frame.to_dict("records"):
        cells = [row["label"], *(str(row[path]) for path in collection.grid)]
        cells += [with_half_width(row[name], row[f"{name} half_width"], between) for name in metrics]
        if private:
            mark = f" {MARK}" if row["flagged"] else ""
            cells += [epsilon_text(row["epsilon_claimed"]), epsilon_text(row["epsilon_verified"]) + mark]
        table.add_row(*map(escape, map(str, cells)), str(row["n"]), style="bold red" if row["flagged"] else None)
    for row in trivial_rows(collection):
        cells = [row.label, *(str(row.at.get(path, "")) for path in collection.grid)]
        cells += [with_half_width(*row.values[name], between) if name in row.values else "" for name in metrics]
        table.add_row(*map(escape, cells), *("" for _ in [*epsilons, "n"]), style="dim")
    return fix_widths(table)


def notes_on(collection: Collection) -> list[tuple[str, bool]]:
    """Return the sentences below the table, each with whether it is loud."""
    found = [(f"{MARK} {said}" if loud else said, loud) for said, loud in unbeaten(set_apart(collection))]
    found += [(f"{MARK} {said}", True) for said in collection.kinds.sentences(held_against_each_other(collection))]
    for protocol, label in collection.labels.items():
        manifests = [manifest for manifest in collection.manifests if manifest["protocol"] == protocol]
        stopped = [str(manifest.get("status")) for manifest in manifests if manifest.get("status") != "complete"]
        if stopped:
            kinds = ", ".join(dict.fromkeys(stopped))
            sentence = f"{MARK} {label}: {len(stopped)} of {len(manifests)} runs did not reach their end ({kinds})"
            found.append((f"{sentence} and are left out of the means.", True))
        found += [(f"{MARK} {sentence}", True) for sentence in broken_invariants(label, manifests)]
        if any(manifest.get("no_invariant") == "" for manifest in manifests):
            found.append((f"{label} declares no invariant, so nothing that it should keep was checked.", False))
        claim = claim_of(manifests)
        if claim is None:
            found += [(f"{mark}{label}: privacy contract {text}.", bool(mark)) for text, mark in _contracts(manifests)]
            continue
        if claim.flagged:
            found.append((f"{MARK} {label}: {claim.text.removeprefix(MARK).strip()}; {claim.details}.", True))
        else:
            found.append((f"{label} {claim.text}; {claim.details}.", False))
    found += [(sentence, False) for sentence in uncovered(collection)]
    if collection.missing:
        total = collection.missing + len(collection.runs)
        found.append((f"{MARK} {collection.missing} of {total} runs have not been finished.", True))
    return found


def column_of(metric: str, statistic: str) -> str:
    """Name of the column that holds a metric's final value in tables."""
    return f"{metric} {statistic}" if statistic in ("gap", "worst") else metric


def parted(column: str) -> tuple[str, str]:
    """Metric and statistic of a column of `column_of`; the statistic is empty where the column does not name it."""
    metric, _, statistic = column.rpartition(" ")
    return (metric, statistic) if metric and statistic in ("gap", "worst") else (column, "")


def held_against_each_other(collection: Collection) -> list[str]:
    """Recorded metrics by which protocols stand side by side."""
    return [*of_learning(collection.kinds.metrics), VERIFIED.name]


def uncovered(collection: Collection) -> list[str]:
    """Sentences about what the epsilons of private runs do not cover, with the protocols concerned if not all are."""
    found: dict[str, dict[str, None]] = {}
    private = [manifest for manifest in collection.manifests if manifest.get("privacy")]
    for manifest in private:
        for text in manifest["privacy"].get("not_covered") or ():
            found.setdefault(text, {})[manifest["protocol"]] = None
    protocols = {manifest["protocol"] for manifest in private}
    said = []
    for text, keys in found.items():
        of = "" if set(keys) == protocols else f" of {', '.join(collection.labels[key] for key in keys)}"
        said.append(f"No epsilon{of} covers {text}.")
    return said


def broken_invariants(label: str, manifests: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence about every invariant that some of a protocol's runs have broken."""
    found: dict[str, list[dict[str, Any]]] = {}
    for manifest in manifests:
        for entry in manifest.get("invariants") or ():
            if entry["broken"]:
                found.setdefault(entry["name"], []).append(entry)
    return [_broken(label, name, entries, len(manifests)) for name, entries in found.items()]


def _broken(label: str, name: str, entries: Sequence[dict[str, Any]], runs: int) -> str:
    first = min((entry["first"] for entry in entries), key=lambda first: first["time"])
    worst = max(float(entry["worst"]) for entry in entries)
    who = " and ".join(f"agent {name}" for name in first["agents"])
    return (
        f"{label}: the invariant {name!r} is broken in {len(entries)} of {runs} runs, first at time "
        f"{first['time']:.6g}{who and f' ({who})'}: off by {worst:.3g} of its size at worst, where "
        f"{entries[0]['tolerance']:g} would be rounding; what these runs learned may be wrong."
    )


def _contracts(manifests: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    found = [manifest["contract"] for manifest in manifests if manifest.get("contract")]
    own = briefly(contract["text"] for contract in found if contract["status"] != "shipped")
    return [(text, "" if text.startswith(PASSED) else f"{MARK} ") for text in own]


def _privacy_columns(claim: ClaimedPrivacy | None) -> dict[str, Any]:
    if claim is None:
        return {"epsilon_claimed": np.nan, "epsilon_verified": np.nan, "delta": np.nan, "flagged": False}
    largest = {
        "epsilon_claimed": claim.claimed,
        "epsilon_verified": claim.verified,
        "delta": claim.delta,
    }
    return {name: max(values, default=math.nan) for name, values in largest.items()} | {"flagged": claim.flagged > 0}


def with_half_width(mean: float, half: float, between: str = " ") -> str:
    """Mean to the accuracy that its half-width deserves: 0.8312 ± 0.0046."""
    if not math.isfinite(mean):
        return epsilon_text(mean)
    if not math.isfinite(half):
        return f"{mean:.4g}"
    sign = f"{between}\N{PLUS-MINUS SIGN} "
    if half <= 1e-12 * abs(mean):  # nothing but rounding
        return f"{mean:.4g}{sign}0"
    if abs(mean) >= 1e6 or (mean != 0 and abs(mean) < 1e-4):
        return f"{mean:.3g}{sign}{half:.1g}"
    digits = min(max(1 - math.floor(math.log10(half)), 0), 8)
    return f"{mean:.{digits}f}{sign}{half:.{digits}f}"
