"""Every protocol against the first, on common random numbers, for the page."""

from __future__ import annotations

from collections.abc import Collection as Collection_
from typing import Any

from ...agents.errors import InputError
from ..analysis.results import Collection
from ..compare import Comparison, compare
from ..compare.statistics import NOTHING
from ..compare.tables import (
    CAPTION,
    CENSORED,
    DASH,
    NUMBERS,
    PLACES,
    TIMES,
    about_break_even,
    number,
    on_records,
    p_value,
)
from .grid import Grid, value_text

MOST_POINTS = 40
"""Points of a sweep up to which differences of all measures are listed."""


def comparison(collection: Collection, grid: Grid, most: Collection_[str] = ()) -> dict[str, Any] | None:
    """What ``hushnet compare`` finds; None where there is nothing to compare.

    Parameters
    ----------
    collection : Collection
    grid : Grid
    most : collection of str
        Measures that matter most: where the sweep has more than `MOST_POINTS` points, the page lists these only, and
        ``points`` says how many there are.
    """
    points = len({series.at for series in grid.series})
    many = points > MOST_POINTS
    try:
        found = compare(collection, only=most if many else None)
    except InputError:
        return None
    if found.differences.empty:
        return None
    rows = [_row(found, row) for row in found.differences.to_dict("records")]
    return {
        "points": points if many else 0,
        "baseline": found.labels[found.baseline],
        "caption": CAPTION,
        "numbers": NUMBERS,
        "rows": rows,
        "censored": CENSORED if any(row["censored"] for row in rows) else "",
        "places": PLACES if any(map(on_records, found.differences.to_dict("records"))) else "",
        "break_even": [_crossing(found, row) for row in found.break_even.to_dict("records")],
        "about_break_even": about_break_even(found.break_even) if len(found.break_even) else "",
        "warnings": found.warnings,
    }


def _row(found: Comparison, row: dict[str, Any]) -> dict[str, Any]:
    half = (row["high"] - row["low"]) / 2
    censored = min(row["finite"], row["baseline_finite"]) < row["n"]
    reached = f"reached {row['finite']} against {row['baseline_finite']}"
    cells = [
        number(row["baseline_mean"], half),
        number(row["difference"], half),
        reached if censored else _interval(row, half),
        NOTHING if row["method"] == NOTHING else p_value(row["p_holm"]),
        f"{number(row['pairing'], 0.1)}{TIMES}" if row["pairing"] == row["pairing"] else DASH,
        str(row["n"]),
    ]
    at = [value_text(row[path]) for path in found.grid]
    named = {name: row[name] for name in ("title", "label", "verdict")}
    return {**named, "at": at, "cells": cells, "censored": censored}


def _crossing(found: Comparison, row: dict[str, Any]) -> dict[str, Any]:
    others = [f"{path} {value_text(row[path])}" for path in found.grid if path != row["axis"]]
    half = (row["high"] - row["low"]) / 2
    return {
        **{name: row[name] for name in ("title", "label", "axis", "first", "then")},
        "elsewhere": ", ".join(others),
        "at": number(row["at"], half),
        "points": str(row["points"]),
        "interval": _interval(row, half),
        "seen": f"{row['seen']:.0%}" if row["seen"] == row["seen"] else DASH,
    }


def _interval(row: dict[str, Any], half: float) -> str:
    low, high = (number(row[name], half) for name in ("low", "high"))
    return DASH if DASH in (low, high) else f"{low} to {high}"
