"""Overview of the setting, the protocols and their final values, failures and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...agents.suggestions import counted
from ...protocols.user_files import is_file
from ..analysis.claimed_privacy import claim_of
from ..analysis.labels import words_of
from ..analysis.results import Collection
from ..analysis.summary import TrivialRow, broken_invariants, with_half_width
from ..figures.figure_words import stand_in
from ..network.graphs import graph_line
from .grid import Grid, value_text
from .naming import described
from .privacy import largest

PARTS = ("task", "topology", "clock", "compute", "network", "availability", "adversaries", "stop", "record")
"""Parts of a scenario that every protocol shares, in the order in which they are shown."""

HEADS = {
    "time_to_target": "time to target",
    "vectors_to_target": "vectors to target",
    "vectors_with_start_to_target": "with those before the start",
    "vectors": "vectors sent",
    "vectors_with_start": "vectors with start",
}
"""Columns of the headline table besides final values."""


def setting(collection: Collection) -> list[tuple[str, str]]:
    """Name and description of everything that the protocols share."""
    scenario = collection.manifests[0]["scenario"]
    record = scenario.get("record") or {}
    own = [words_of(name) if is_file(name) else name for name in record.get("metrics") or []]
    parts = {**scenario, "record": {**record, **({"metrics": own} if own else {})}}
    rows = [(name, described(parts[name])) for name in PARTS if parts.get(name)]
    graphs = {graph_line(m["topology"]).removeprefix("graph: ") for m in collection.manifests if m.get("topology")}
    if graphs:
        more = f" (and {len(graphs) - 1} others)" if len(graphs) > 1 else ""
        rows.append(("graph", f"{min(graphs)}{more}"))
    if collection.index.get("time_unit"):
        rows.append(("time unit", str(collection.index["time_unit"])))
    return rows


def protocols(collection: Collection) -> list[dict[str, str]]:
    """A row per protocol: how it is called, what it is, how it was simulated, and its runs."""
    rows = []
    for key, label in collection.labels.items():
        own = [manifest for manifest in collection.manifests if manifest["protocol"] == key]
        parameters = (own[0]["scenario"].get("protocols") or {}).get(key) or {}
        finished = sum(manifest.get("status") == "complete" for manifest in own)
        schedule = described(parameters["schedule"]) if parameters.get("schedule") else "as the protocol asks"
        central = "; starts computed centrally" if any(manifest.get("central") for manifest in own) else ""
        rows.append(
            {
                "label": label,
                "key": key,
                "kind": str(parameters.get("kind", "")),
                "schedule": f"{schedule}{central}",
                "engine": "; ".join(dict.fromkeys(str(m.get("engine", "event")) for m in own)),
                "runs": _of(finished, len(own)),
            }
        )
    return rows


def failures(collection: Collection, grid: Grid) -> list[dict[str, Any]]:
    """Every run that did not reach its end, or that failed and left nothing."""
    labels = {**(collection.index.get("labels") or {}), **collection.labels}
    failed = [
        {
            "label": labels.get(entry["protocol"], entry["protocol"]),
            "at": [value_text((entry.get("grid") or {}).get(axis.path)) for axis in grid.axes],
            "seed": str(entry.get("seed", "")),
            "status": "failed",
            "error": str(entry.get("error") or ""),
        }
        for entry in collection.index.get("failed") or []
    ]
    return failed + [
        {
            "label": collection.labels[series.protocol],
            "at": grid.texts(series),
            "seed": str(manifest.get("seed", "")),
            "status": str(manifest.get("status")),
            "error": str(manifest.get("error") or ""),
        }
        for series in grid.series
        for manifest in (collection.manifests[run] for run in series.runs)
        if manifest.get("status") != "complete"
    ]


def warnings(collection: Collection) -> list[str]:
    """List the runs' distinct warnings, and the invariants that they have broken."""
    found = [str(text) for manifest in collection.manifests for text in manifest.get("warnings") or []]
    for protocol, label in collection.labels.items():
        found += broken_invariants(label, [m for m in collection.manifests if m["protocol"] == protocol])
    return list(dict.fromkeys(found))


def headline(
    collection: Collection, grid: Grid, table: dict[str, Any], trivial: Iterable[TrivialRow]
) -> dict[str, Any]:
    """The headline table: what every series came to, and its claimed and verified epsilon.

    It has what `charts.finals` gives, and rows of trivial predictions below the protocols'.
    """
    columns = [m for m in table["metrics"] if m["name"].startswith("final ") or m["id"] in HEADS]
    claims = [claim_of(collection.manifests[run] for run in series.runs) for series in grid.series]
    private = any(claims)
    rows = []
    for series, values, claim in zip(grid.series, table["values"], claims, strict=True):
        cells = [_cell(values[column["id"]], never=column["id"].endswith("_to_target")) for column in columns]
        if private:
            cells += [largest(claim.claimed), largest(claim.verified)] if claim else ["\N{EN DASH}"] * 2
        rows.append(
            {
                "label": collection.labels[series.protocol],
                "at": grid.texts(series),
                "cells": cells,
                "runs": _of(len(series.finished), len(series.runs)),
                "flagged": claim is not None and claim.flagged > 0,
            }
        )
    for constant in trivial:
        shown = [with_half_width(*constant.values[c["id"]]) if c["id"] in constant.values else "" for c in columns]
        at = [value_text(constant.at[axis.path]) if axis.path in constant.at else "" for axis in grid.axes]
        rows.append(
            {"label": constant.label, "at": at, "cells": shown + [""] * (2 * private), "runs": "", "flagged": False}
        )
    names = [HEADS.get(column["id"], column["name"].removeprefix("final ")) for column in columns]
    return {"columns": names + (["\u03b5 claimed", "\u03b5 verified"] if private else []), "rows": rows}


def _of(finished: int, runs: int) -> str:
    return str(runs) if finished == runs else f"{finished} of {runs}"


def _cell(value: list[Any] | None, *, never: bool) -> str:
    """Mean and half-width; where some or all runs are infinite, what can be said of the others."""
    if value is None:
        return "\N{EN DASH}"
    mean, half, finite, infinite = value[:4]
    if finite == 0:
        return "never" if never else "\N{INFINITY}"
    if mean is None:  # of numbers whose sum is beyond what a float holds
        return "\N{INFINITY}"
    text = with_half_width(mean, math.nan if half is None else half)
    return f"{text} (in {finite} of {finite + infinite} runs)" if infinite else text


def lead(collection: Collection, name: str) -> str:
    """Summarise the results in one line: numbers of protocols, points, seeds and runs, and stand-in data."""
    seeds = len({manifest.get("seed") for manifest in collection.manifests})
    points = len({tuple(map(str, (m.get("grid") or {}).values())) for m in collection.manifests})
    parts = [counted(len(collection.labels), "protocol"), counted(seeds, "seed"), counted(len(collection.runs), "run")]
    if collection.grid:
        parts.insert(1, counted(points, "point") + " of the sweep")
    data = stand_in(collection)
    return f"{name}: {', '.join(parts)}" + (f"; {data}" if data else "")


def alarms(collection: Collection, shown: dict[str, Any]) -> list[str]:
    """List what a reader must not miss: broken claims, runs that broke off, runs that are missing."""
    found: list[str] = [*shown["kinds"], *shown["beaten"]]
    named = [*collection.labels.values(), *(row["label"] for row in shown["failures"])]
    for label in dict.fromkeys(named):
        broken = [row for row in shown["privacy"] if row["label"] == label and row["flagged"]]
        if broken:
            worst = broken[0]
            where = f" at {len(broken)} points of the sweep, for instance" if len(broken) > 1 else ""
            found.append(
                f"{label}: the claim does not hold{where}: \u03b5 claimed {worst['claimed']}, "
                f"verified {worst['verified']} (\u03b4 = {worst['delta']})."
            )
        stopped = [row for row in shown["failures"] if row["label"] == label]
        if stopped:
            kinds = ", ".join(dict.fromkeys(row["status"] for row in stopped))
            found.append(
                f"{label}: {counted(len(stopped), 'run')} did not reach the end ({kinds}) and count in no mean of "
                "final values."
            )
    if collection.missing:
        total = collection.missing + len(collection.runs)
        found.append(f"{collection.missing} of {counted(total, 'run')} have not been finished.")
    return found


def thinned(curves: dict[str, Any]) -> str:
    """Return the note below the curves on how they were thinned."""
    text = (
        f"Curves have at most {curves['places']} places, evenly spaced among those where something was recorded, and "
        "numbers have six digits; the parquet files have everything. Hover over a chart for its values, drag to zoom, "
        "double-click to zoom out."
    )
    if curves["left_out"]:
        number = counted(curves["left_out"], "series", "series")
        text += f" {number} of the sweep have no curve here, to keep the page small."
    return text
