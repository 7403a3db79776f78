"""Table of claimed and verified privacy, with everything that either rests on."""

from __future__ import annotations

import math
from typing import Any

from ..analysis.claimed_privacy import claim_of, epsilon_text
from ..analysis.results import Collection
from .grid import Grid, Series

SOURCES = {
    "claimed": "claimed: the paper\N{RIGHT SINGLE QUOTATION MARK}s constant, which nothing enforces",
    "clip": "clip: a bound that clipping enforces",
    "data_check": "data check: a declared bound, checked row by row",
}


def privacy_rows(collection: Collection, grid: Grid) -> list[dict[str, Any]]:
    """A row per private protocol and grid point; one for all points where they do not differ."""
    rows: list[dict[str, Any]] = []
    for protocol in grid.protocols:
        series = [s for s in grid.series if s.protocol == protocol]
        own = [(s, row) for s in series if (row := _row(collection, s)) is not None]
        if len(own) == len(series) > 1 and all(row == own[0][1] for _, row in own):
            head = {"label": collection.labels[protocol], "everywhere": True}
            rows.append({**head, "at": ["all"] * len(grid.axes), **own[0][1]})
            continue
        head = {"label": collection.labels[protocol], "everywhere": not grid.axes}
        rows += [{**head, "at": grid.texts(s), **row} for s, row in own]
    return rows


def observed_rows(collection: Collection, grid: Grid) -> list[dict[str, Any]]:
    """A row per private protocol, grid point and group of observers, of the run in which they could learn most."""
    rows: list[dict[str, Any]] = []
    for series in grid.series:
        found: dict[str, dict[str, Any]] = {}
        for run in series.runs:
            for one in (collection.manifests[run].get("privacy") or {}).get("observers", ()):
                known = found.setdefault(one["against"], one)
                found[one["against"]] = max(known, one, key=lambda each: float(each["worst"]))
        for one in found.values():
            texts = {name: epsilon_text(float(one[name]), 4) for name in ("worst", "median")}
            place = {"label": collection.labels[series.protocol], "at": grid.texts(series)}
            rows.append({**one, **texts, **place, "bounds": ", ".join(one["bounds"])})
    return rows


def unprotected(collection: Collection, grid: Grid) -> list[str]:
    """Labels of the protocols that add no noise."""
    private = {manifest["protocol"] for manifest in collection.manifests if manifest.get("privacy")}
    return [collection.labels[protocol] for protocol in grid.protocols if protocol not in private]


def _row(collection: Collection, series: Series) -> dict[str, Any] | None:
    manifests = [collection.manifests[run] for run in series.runs]
    claim, entries = claim_of(manifests), [m["privacy"] for m in manifests if m.get("privacy")]
    if claim is None:
        return None
    digits = 4
    while claim.flagged and digits < 17 and _span(claim.claimed, digits) == _span(claim.verified, digits):
        digits += 1
    protected = " / ".join(filter(None, (_listed(entries, "unit"), _listed(entries, "adjacency"))))
    return {
        "mechanism": claim.mechanism or "not stated",
        "protected": protected or "not stated",
        "role": _listed(entries, "role"),
        "unprotected": _roles(entries),
        "sensitivity": "; ".join(SOURCES.get(name, name) for name in _names(entries, "sensitivity")) or "not stated",
        "claimed": _span(claim.claimed, digits) or "not stated",
        "claimed_by": _listed(entries, "claimed_by"),
        "verified": _span(claim.verified, digits) or "not verified",
        "delta": _span(claim.delta, 4) or "\N{EN DASH}",
        "because": _names(entries, "because"),
        "contract": list(claim.contract),
        "verified_by": ", ".join(claim.verified_by),
        "flagged": claim.flagged,
        "checked": bool(claim.verified),
        "unbounded": bool(claim.verified) and math.isinf(max(claim.verified)),
        "runs": claim.runs,
        "public": list(claim.assumed_public),
        "strict": any(entry.get("strict") for entry in entries),
    }


def _names(entries: list[dict[str, Any]], field: str) -> list[str]:
    found: dict[str, None] = {}
    for entry in entries:
        given = entry.get(field)
        values = given if isinstance(given, list | tuple) else [given] if given else []
        found |= dict.fromkeys(str(value) for value in values)
    return list(found)


def _listed(entries: list[dict[str, Any]], field: str) -> str:
    return ", ".join(_names(entries, field))


def _roles(entries: list[dict[str, Any]]) -> list[str]:
    found: dict[str, dict[str, None]] = {}
    for entry in entries:
        for role, reasons in (entry.get("unprotected") or {}).items():
            found.setdefault(str(role), {}).update(dict.fromkeys(map(str, reasons)))
    return [f"{role}: {'; '.join(reasons) or 'no noise'}" for role, reasons in found.items()]


def _span(values: tuple[float, ...], digits: int) -> str:
    return " to ".join(dict.fromkeys(epsilon_text(value, digits) for value in values))


def largest(values: tuple[float, ...]) -> str:
    """The largest of some epsilons, in three digits."""
    return epsilon_text(max(values, default=math.nan), 3)
